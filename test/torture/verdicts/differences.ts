import { chainOf, flags, hasBlankEnd, headOf, listOf, type SignatureFacts, unfolded } from './facts.ts'
import { tagsOf } from './signer.ts'

/** A kind of disagreement that is not a fault of the box. */
export interface Difference {
  name: string
  rfc: string
  why: string
}

/** What the box refuses though the second implementation verifies it. */
export interface Stricter extends Difference {
  /** The reason that the box gives. */
  says: RegExp
  /** True where the reason is so, read from the message alone: then the box must not pass it, unless it `mayPass`. */
  holds?: (facts: SignatureFacts) => boolean
  mayPass?: true
}

export const stricter: Stricter[] = [
  {
    name: 'length',
    rfc: 'RFC 6376 8.2',
    why: 'l= leaves the rest of the body unsigned',
    says: /^l= leaves/,
    holds: ({ tags }) => tags['l'] !== undefined,
  },
  {
    name: 'sha1',
    rfc: 'RFC 8301 3.1',
    why: 'rsa-sha1 must not be used for verifying',
    says: /^weak algorithm$|^unknown algorithm$/,
    holds: ({ tags }) => /sha1$/i.test(tags['a'] ?? ''),
  },
  {
    name: 'testing',
    rfc: 'RFC 6376 3.6.1',
    why: 'a key with t=y is for testing: the message counts as unsigned',
    says: /^the key is in testing/,
    holds: ({ record }) => flags(record).includes('y'),
  },
  {
    name: 'author',
    rfc: 'RFC 6376 5.4',
    why: 'From must be signed',
    says: /^From field not signed$/,
    holds: ({ tags }) => !listOf(tags['h']).includes('from'),
  },
  {
    name: 'future',
    rfc: 'RFC 6376 3.5',
    why: 'a signature of the future may be ignored',
    says: /^its time is in the future/,
    holds: ({ tags }) => Number(tags['t']) > Date.now() / 1000 + 300,
  },
  {
    name: 'expired',
    rfc: 'RFC 6376 3.5',
    why: 'a signature is invalid after x=, without leeway',
    says: /^expired$/,
    holds: ({ tags }) => tags['x'] !== undefined && Number(tags['x']) < Date.now() / 1000,
  },
  {
    name: 'record-version',
    rfc: 'RFC 6376 3.6.1',
    why: 'v= of a record is DKIM1, and comes first',
    says: /^unknown key version/,
    holds: ({ record }) => {
      const version = tagsOf(record ?? '')['v']
      return version !== undefined && (version !== 'DKIM1' || !/^\s*v\s*=/.test(record!))
    },
  },
  {
    name: 'key-type',
    rfc: 'RFC 6376 6.1.2',
    why: 'the key must be of the kind that a= names',
    says: /^inappropriate key algorithm|^unknown key type/,
  },
  {
    name: 'key-hash',
    rfc: 'RFC 6376 6.1.2',
    why: 'h= of a record lists the hashes that are allowed',
    says: /^inappropriate hash algorithm/,
    holds: ({ record }) => {
      const hashes = tagsOf(record ?? '')['h']
      return hashes !== undefined && !listOf(hashes).includes('sha256')
    },
  },
  {
    name: 'key-service',
    rfc: 'RFC 6376 3.6.1',
    why: 's= of a record must list e-mail',
    says: /^key not for email/,
    holds: ({ record }) => {
      const services = tagsOf(record ?? '')['s']
      return services !== undefined && !listOf(services).some((service) => service === '*' || service === 'email')
    },
  },
  {
    name: 'record-syntax',
    rfc: 'RFC 6376 3.2',
    why: 'a record with a syntax error, or a tag twice, is ignored',
    says: /^invalid public key/,
  },
  {
    name: 'syntax',
    rfc: 'RFC 6376 6.1.1',
    why: 'a signature with a syntax error is ignored',
    says: /^(?:signature syntax error|incompatible version|domain mismatch|invalid expiration|unsupported query method|signature missing required tag|unknown algorithm|d= is not a valid|c= is not)/,
  },
  {
    name: 'duplicates',
    rfc: 'RFC 6376 8.15',
    why: 'of a field that occurs once, an unsigned instance may be the one that is shown',
    says: /^there is more than one | is ambiguous$/,
  },
  {
    name: 'subject',
    rfc: 'RFC 6376 5.4.1',
    why: 'an unsigned Subject may be anybody’s',
    says: /^Subject is not signed$/,
    holds: ({ tags, message }) => !listOf(tags['h']).includes('subject') && /^subject:.*\S/im.test(unfolded(message)),
  },
  {
    name: 'decoding',
    rfc: 'RFC 6376 5.4.1',
    why: 'an unsigned field that decides how the body is decoded may change what is shown',
    says: /is not signed, and is not (?:plainly|unambiguously)|octets that are not UTF-8/,
  },
  {
    name: 'blanks',
    rfc: 'RFC 6376 3.4.4',
    why: 'blanks that relaxed canonicalization ignores decide where a part begins',
    says: /^the (?:parts of the body|text) (?:are|is) ambiguous/,
  },
  {
    name: 'instances',
    rfc: 'RFC 8617 4.2.1',
    why: 'each field of a chain has an instance of 1 to 50; dkimpy leaves out those without a number',
    says: /^invalid \w+ instance/,
  },
  {
    name: 'end-of-field-added',
    rfc: 'RFC 6376 3.4.1',
    why: 'the simple form keeps blanks at the end of the field of the signature, which may be added on the way; dkimpy removes them',
    says: /^bad signature$/,
    holds: hasBlankEnd,
    mayPass: true,
  },
  {
    name: 'bare-cr',
    rfc: 'RFC 6376 3.4.2',
    why: 'the relaxed form removes spaces and tabs around a value; dkimpy removes a bare CR too',
    says: /^bad signature$/,
    holds: ({ message }) => /\r(?!\n)/.test(headOf(message)),
    mayPass: true,
  },
  {
    name: 'length-covered',
    rfc: 'RFC 6376 8.2',
    why: 'of the signatures with l=, none of which counts, those after the first are left out, also where another signature covers them',
    says: /^bad signature$/,
    holds: ({ tags, message }) =>
      listOf(tags['h']).includes('dkim-signature') &&
      (unfolded(message).match(/^dkim-signature:(?:.*;)?[ \t]*l[ \t]*=/gim)?.length ?? 0) > 1,
    mayPass: true,
  },
  {
    name: 'lines',
    rfc: 'RFC 5322 2.2',
    why: 'a header with a line that is not a field is read in several ways',
    says: /^the header has a line that is not a field/,
  },
]

/** Of a message whose signatures the box does not tell apart, as one alone or none at all is read: none of them passes. */
export const uncounted: Difference = {
  name: 'uncounted',
  rfc: 'RFC 6376 6.1',
  why: 'of a header that cannot be read the signatures are not judged one by one, and none passes',
}

/** What the box verifies though the second implementation does not. */
export interface Looser extends Difference {
  holds: (facts: SignatureFacts) => boolean
}

/** Of dkimpy 1.1 where Mail::DKIM cannot decide, as it has no Ed25519. */
export const looser: Looser[] = [
  {
    name: 'capitals',
    rfc: 'RFC 5234 2.3',
    why: 'names of algorithms and canonicalizations are in any case; dkimpy knows them in lower case alone',
    holds: ({ tags }) => /[A-Z]/.test(`${tags['a']}${tags['c']}`),
  },
  {
    name: 'end-of-field',
    rfc: 'RFC 6376 3.4.1',
    why: 'the simple form keeps blanks at the end of the field of the signature; dkimpy removes them',
    holds: hasBlankEnd,
  },
  {
    name: 'blank-body',
    rfc: 'RFC 6376 3.4.4',
    why: 'blanks at the end of a last line without a line end are ignored too; dkimpy adds the line end first',
    holds: ({ message, tags }) => /[ \t]$/.test(message) && /\/relaxed/i.test(tags['c'] ?? ''),
  },
  {
    name: 'query-methods',
    rfc: 'RFC 6376 3.5',
    why: 'q= is a list, of which unknown methods are ignored; dkimpy takes dns/txt alone',
    holds: ({ tags }) => listOf(tags['q']).includes('dns/txt') && listOf(tags['q']).length > 1,
  },
  {
    name: 'services',
    rfc: 'RFC 6376 3.6.1',
    why: 's= of a record is a list; dkimpy takes one service alone',
    holds: ({ record }) => listOf(tagsOf(record ?? '')['s']).length > 1,
  },
  {
    name: 'key-padding',
    rfc: 'RFC 6376 2.10',
    why: 'base64 may end without its padding; dkimpy reads no such key',
    holds: ({ record }) => {
      const letters = tagsOf(record ?? '')['p']?.replaceAll(/\s/g, '') ?? ''
      return /^[A-Za-z0-9+/]+$/.test(letters) && letters.length % 4 > 1
    },
  },
]

/** Of the chain of dkimpy and Mail::DKIM. */
export const looserChain: Looser[] = [
  {
    name: 'arc-ed25519',
    rfc: 'RFC 8463 3',
    why: 'Ed25519 is an algorithm of ARC too; neither dkimpy nor Mail::DKIM knows it there',
    holds: ({ message }) => /^arc-[^:]*:[^:]*ed25519/im.test(unfolded(message)),
  },
  {
    name: 'arc-instance',
    rfc: 'RFC 6376 3.2',
    why: 'white space around i= and its place are free; dkimpy and Mail::DKIM find an instance that is written in one way',
    holds: ({ message }) => /^arc-(?:seal|message-signature):(?! i=\d+;)/im.test(message),
  },
  {
    name: 'arc-status',
    rfc: 'RFC 5234 2.3',
    why: 'cv= is in any case; dkimpy knows it in lower case alone',
    holds: ({ message }) => /^[A-Za-z]{3}-[A-Za-z]{4}:.*\bcv=[a-z]*[A-Z]/m.test(unfolded(message)),
  },
  {
    name: 'arc-body',
    rfc: 'RFC 6376 3.5',
    why: 'where c= has one name the body is simple; Mail::DKIM takes it for relaxed in a chain',
    holds: ({ tags }) => /^(?:relaxed|simple)$/i.test(tags['c'] ?? ''),
  },
  {
    name: 'arc-order',
    rfc: 'RFC 8617 5.1.1',
    why: 'a seal covers the sets in the order of their instances, wherever they are; dkimpy wants the newest on top',
    holds: ({ message }) => {
      const instances = chainOf(message).map((field) => Number(tagsOf(field.slice(field.indexOf(':') + 1))['i']))
      return instances.some((instance, index) => instance > (instances[index - 1] ?? Infinity))
    },
  },
  {
    name: 'arc-line',
    rfc: 'RFC 5322 2.2',
    why: 'a line that is no field, or continues none, does not end the header, and the chain counts for acceptance alone; dkimpy reads no such header, and Mail::DKIM takes the rest for the body',
    holds: ({ message }) => {
      const header = message.slice(0, message.indexOf('\r\n\r\n') + 2)
      return (
        /^[ \t]/.test(message) ||
        /^(?![ \t])[^:\r\n]+\r\n/m.test(header) ||
        /^[\x21-\x39\x3b-\x7e]*[\x80-\xff][^:\r\n]*:/m.test(header)
      )
    },
  },
  {
    name: 'arc-older',
    rfc: 'RFC 8617 5.2',
    why: 'of the message signatures only the newest is verified, and tags that a seal does not have are ignored; others check those too',
    holds: ({ message, field }) =>
      chainOf(message).some(
        (other) => other !== field && (other.startsWith('ARC-Seal') ? unknownToSeals : invalidInOlder).test(other),
      ),
  },
]

const unknownToSeals = /[;:\s](?:x|bh)=/
const invalidInOlder = /[;:\s](?:x=|c=(?!relaxed|simple)|c=\w+\/\w+\/)/

/** Of the tree of DMARC and of the author. */
export const policyDifferences = {
  tree: {
    name: 'dmarc-tree',
    rfc: 'RFC 9989 4.10',
    why: 'records are found by a walk up the tree, by the rules of RFC 9989; authheaders asks a list of public suffixes (RFC 7489)',
  },
  suffix: {
    name: 'dmarc-suffix',
    rfc: 'RFC 9989 4.10.2',
    why: 'domains under a public suffix are not aligned with one another, whatever the suffix publishes (docs/decisions/0029)',
  },
  author: {
    name: 'dmarc-author',
    rfc: 'RFC 9989 11.5',
    why: 'a message without exactly one author, or with an ambiguous one, does not pass',
  },
  phrase: {
    name: 'dmarc-phrase',
    rfc: 'RFC 5322 3.4',
    why: 'a display name may be written like an address without quotes, before the only address in angle brackets; Python reads none',
  },
  syntax: {
    name: 'dmarc-syntax',
    rfc: 'RFC 9989 4.7',
    why: 'a tag without a value makes that tag invalid, and without a valid p= there is no policy',
  },
  version: {
    name: 'dmarc-version',
    rfc: 'RFC 9989 4.8',
    why: 'the name of the tag v is in any case, and blanks are around it and its =, as its ABNF says; authheaders knows v= at the beginning alone',
  },
  reporting: {
    name: 'dmarc-reporting',
    rfc: 'RFC 9989 4.10.1',
    why: 'a record without a valid policy counts as p=none where its rua= has an address; authheaders takes it for none',
  },
  quoted: {
    name: 'dmarc-quoted',
    rfc: 'RFC 5322 3.4.1',
    why: 'a quoted local part may have an @ in it; authheaders takes what follows that for the domain of the author',
  },
  record: {
    name: 'dmarc-record',
    rfc: 'RFC 9989 4.7',
    why: 'a record with a syntax error is none; authheaders reads a part of it',
  },
  alignment: {
    name: 'dmarc-alignment',
    rfc: 'RFC 9989 4.7',
    why: 'a value of adkim= or aspf= that is not r or s is ignored; authheaders takes it for s',
  },
  header: {
    name: 'dmarc-header',
    rfc: 'RFC 5322 2.2',
    why: 'a line that is no field does not end the header; authheaders reads no such header, and has no opinion',
  },
  failure: {
    name: 'dmarc-failure',
    rfc: 'RFC 9989 4.10',
    why: 'a lookup failed that decides nothing, or may have decided',
  },
} satisfies Record<string, Difference>

/** What the results of both say where they differ on SPF. */
interface SpfDifference extends Difference {
  holds: (facts: { box: string; oracle: string; records: string }) => boolean
}

export const spfDifferences: SpfDifference[] = [
  {
    name: 'spf-capitals',
    rfc: 'RFC 7208 4.6.1',
    why: 'names of modifiers are in any case; pyspf knows them in lower case alone',
    holds: ({ records }) => /\bRedirect=/.test(records),
  },
  {
    name: 'spf-digits',
    rfc: 'RFC 7208 7.3',
    why: 'the number of parts in a macro must not be zero; pyspf takes it',
    holds: ({ box }) => box.startsWith('permerror') && box.includes('must be nonzero'),
  },
  {
    name: 'spf-exists',
    rfc: 'RFC 7208 5.7',
    why: 'exists without a domain is a syntax error; pyspf takes it for unknown and goes on',
    holds: ({ box }) => box.startsWith('permerror') && box.includes('Missing domain-spec for "exists"'),
  },
  {
    name: 'spf-void',
    rfc: 'RFC 7208 4.6.4',
    why: 'terms are counted that find nothing; pyspf counts each query, of addresses of mail servers too',
    holds: ({ oracle }) => oracle.includes('Void lookup limit'),
  },
  {
    name: 'spf-order',
    rfc: 'RFC 7208 5.4',
    why: 'mail servers are compared in their order, and a match ends it; pyspf looks all of them up first',
    holds: ({ oracle, records }) => /DNS failure|More than 10 MX/.test(oracle) && /mx/i.test(records),
  },
  {
    name: 'spf-syntax-first',
    rfc: 'RFC 7208 4.6',
    why: 'a syntax error anywhere in a record is found before it is evaluated; pyspf finds it where it gets to',
    holds: ({ box, oracle }) => box.startsWith('permerror') && !oracle.startsWith('permerror'),
  },
  {
    name: 'spf-unknown-modifier',
    rfc: 'RFC 7208 6',
    why: 'an unknown modifier is ignored; pyspf expands its macros',
    holds: ({ oracle, records }) => oracle.includes('macros allowed in exp') && records.includes('other='),
  },
]
