import { arc as verifyArc } from 'mailauth/lib/arc/index.js'
import { evaluateDmarc } from 'mailauth/lib/dmarc/index.js'
import { spf as verifySpf } from 'mailauth/lib/spf/index.js'
import { isIP } from 'node:net'
import { domainNameOf, organizationOf } from '../core/domain-names.ts'
import { oneLine } from './authentication-results.ts'
import { type Resolver, type Verified, verifySignatures } from './dkim-verifier.ts'
import { DnsError, type Inquiry, type Lookup } from '../net/dns.ts'
import { isAbsent } from '../net/resolve.ts'
import { authorOf, type Header } from './author.ts'
import { domainOf, longestAddress } from '../message/addresses.ts'
import { excessOf, hasLongRuns, maxSeals, maxSignatures, named, without } from './header-limits.ts'
import type { Authentication, AuthResult, Envelope, PublishedPolicy } from '../mail/model.ts'
import { SignedHeader } from './signed-fields.ts'

export type Spf = Authentication['spf']
/** A DKIM signature. One that is valid but does not cover what is displayed has the result `policy` (RFC 8601 2.7.1). */
export type Signature = Authentication['dkim'][number]
/** The ARC chain. `trustedSealer` is the trusted sealer that reported a DMARC pass at the first hop. */
export type Arc = Authentication['arc'] & { trustedSealer: string | null }

/** The results of the signatures of a message. */
export interface SignatureResults {
  dkim: Signature[]
  /** Valid signatures whose result is `policy` because the signed content is ambiguous. They prove the author, but not what is displayed. */
  ambiguous: ReadonlySet<Signature>
  arc: Arc
  /** The From addresses as read by the verifier; null when it did not run. */
  authors: string[] | null
}

/** The DMARC result for an author. */
export interface DmarcPolicy {
  result: AuthResult
  domain: string | null
  policy: Authentication['dmarc']['policy']
  /** True if SPF is aligned. */
  spf: boolean
  /** The signing domains that are aligned. */
  aligned: Set<string>
  reason: string | null
  /** The record, when it asks for reports. */
  published: PublishedPolicy | null
}

type VerifiedSignature = Verified['results'][number]

/** Field names that are reported of one signature, and characters of each. */
const maxSignedFields = 50
const longestName = 100
/** How far the clock of a signer may be ahead, in milliseconds; the value of OpenDKIM. */
const clockDrift = 300_000
const canonicalization = /^(?:simple|relaxed)(?:\/(?:simple|relaxed))?$/i
const base64 = /^[A-Za-z0-9+/]*={0,2}$/
const strictOptions = { strict: true, minBitLength: 1024 }
const noArc: Arc = { result: 'none', chain: 0, reason: null, trustedSealer: null }
const noPolicy: DmarcPolicy = {
  result: 'fail',
  domain: null,
  policy: null,
  spf: false,
  aligned: new Set(),
  reason: null,
  published: null,
}
const results: readonly AuthResult[] = ['pass', 'fail', 'softfail', 'neutral', 'none', 'temperror', 'permerror', 'policy']

/** SPF for MAIL FROM, or for the HELO name with the null sender (RFC 7208 2.4). `none` without a valid domain name (4.3). */
export async function checkSpf(
  envelope: Pick<Envelope, 'helo' | 'mail_from' | 'remote_address'>,
  inquiry: Inquiry,
  mta: string,
): Promise<Spf> {
  const at = envelope.mail_from.lastIndexOf('@') + 1
  const domain = domainNameOf(envelope.mail_from === '' ? envelope.helo : envelope.mail_from.slice(at))
  if (domain === undefined) return { result: 'none', domain: null, reason: 'the sender has no domain name' }
  const from = envelope.mail_from === '' ? '' : `${envelope.mail_from.slice(0, at)}${domain}`
  const client = {
    sender: from,
    ip: envelope.remote_address,
    helo: isIP(envelope.helo) ? `[${envelope.helo}]` : envelope.helo,
    mta,
  }
  const { status } = await verifySpf({ ...client, ...strictOptions, resolver: resolverOf(inquiry) })
  const comment = status.comment?.replace(`${mta}: `, '')
  return {
    result: resultOf(status.result),
    domain,
    reason: comment ? oneLine(comment) : null,
  }
}

/** Starts the lookups of the keys of the first ten signatures in parallel. The inquiry caches the answers. */
export function prefetchKeys(header: Header, inquiry: Inquiry) {
  for (const { value } of named(header, 'dkim-signature').slice(0, maxSignatures)) {
    const domain = domainNameOf(/(?:^|;)\s*d\s*=\s*([^;\s]+)/.exec(value)?.[1] ?? '')
    const selector = /(?:^|;)\s*s\s*=\s*([^;\s]+)/.exec(value)?.[1]
    if (domain && selector) inquiry.lookup(`${selector}._domainkey.${domain}`, 'TXT').catch(() => undefined)
  }
}

/**
 * DKIM and ARC: the first ten signatures, and a chain of at most five sets. The time of the verifier depends on the number of header lines, on
 * runs of blanks and dots, and on the fields listed in a signature. A header with too many lines is not complete; in one with long runs no
 * signature is checked; a signature that lists too many fields is skipped.
 */
export async function checkSignatures(
  raw: Buffer,
  header: Header,
  inquiry: Inquiry,
  trusted: string[],
): Promise<SignatureResults> {
  const sealed = header.fields.some(({ name }) => name.startsWith('arc-'))
  const signed = sealed || header.fields.some(({ name }) => name === 'dkim-signature')
  // Nearly all of the work is hashing the body, which an unsigned message does not need.
  const nothing: SignatureResults = { dkim: [], ambiguous: new Set(), arc: noArc, authors: null }
  if (!signed || !header.complete) return nothing
  if (hasLongRuns(raw)) {
    const arc: Arc = sealed ? { ...noArc, result: 'fail', reason: 'the header has too long runs of blanks or dots' } : noArc
    return { ...nothing, arc }
  }
  const excess = excessOf(header)
  // With `sender` the library does not look for one in the header.
  const options = { ...strictOptions, resolver: keyResolverOf(inquiry), sender: '<>' }
  const verified = await verifySignatures(without(raw, excess.fields), options)
  const names = verified.headers?.parsed.map(({ key }) => key) ?? []
  const signedHeader = new SignedHeader(raw, header.fields, names)
  const arc = excess.seals
    ? { ...noArc, result: 'fail' as const, reason: `more than ${maxSeals} ARC sets, or one that names too many fields` }
    : await checkArc(verified, signedHeader, inquiry, { trusted, author: domainOf(authorOf(header).address ?? '') })
  const signatures = verified.results.map((row) => signatureOf(row, signedHeader))
  return {
    dkim: signatures.map(({ signature }) => signature),
    ambiguous: new Set(signatures.filter(({ isAmbiguous }) => isAmbiguous).map(({ signature }) => signature)),
    arc,
    authors: verified.headerFrom,
  }
}

/**
 * DMARC for one author, whose domain is in A-labels, and the domains that passed SPF and DKIM (RFC 9989). `aligned` are the
 * aligned signing domains. Domains under a public suffix are not aligned with one another, whatever the suffix publishes (docs/decisions/0029).
 */
export async function checkPolicy(address: string, spf: string[], dkim: string[], inquiry: Inquiry): Promise<DmarcPolicy> {
  if (Buffer.byteLength(address) > longestAddress) return { ...noPolicy, reason: 'the address in From is too long' }
  const author = domainOf(address) ?? ''
  const isRelated = (domain: string) => domain === author || organizationOf(domain) === organizationOf(author)
  const { response, dkimAligned, reason } = await evaluateDmarc({
    headerFrom: [address],
    fromFields: 1,
    spfDomains: spf.filter(isRelated),
    dkimDomains: dkim.filter(isRelated).map((domain) => ({ domain })),
    resolver: resolverOf(inquiry),
    strict: true,
  })
  if (!response) return { ...noPolicy, reason: reason ?? null }
  return {
    result: resultOf(response.status.result),
    domain: response.status.header?.from ?? null,
    policy: policyOf(response.policy),
    spf: Boolean(response.alignment?.spf?.result),
    aligned: dkimAligned ?? new Set(),
    reason: response.error ?? null,
    published: publishedIn(response),
  }
}

/** The current DMARC record of a domain, where it was found, and the organizational domain (RFC 9989 4.10). */
export interface Discovery {
  record: string | null
  found_at: string | null
  organizational: string | null
}

/** Throws when the DNS gives no definite answer. */
export async function discoverDmarc(domain: string, lookup: Lookup): Promise<Discovery> {
  const { response } = await evaluateDmarc({
    headerFrom: [`postmaster@${domain}`],
    fromFields: 1,
    spfDomains: [],
    dkimDomains: [],
    resolver: lookup as Resolver,
    strict: true,
  })
  if (!response) return { record: null, found_at: null, organizational: null }
  if (response.status.result === 'temperror') throw new Error(response.error ?? 'the DNS lookup failed')
  return {
    record: response.rr ?? null,
    found_at: response.policyDomain ?? null,
    organizational: response.domain ?? null,
  }
}

function publishedIn(response: Exclude<Awaited<ReturnType<typeof evaluateDmarc>>['response'], false>): PublishedPolicy | null {
  const { policyDomain, rr, p, sp, np, testMode, alignment } = response
  if (!policyDomain || !rr || !/;\s*rua\s*=[^;]*mailto:/i.test(rr)) return null
  const fo = /;\s*fo\s*=\s*([01ds](?:\s*:\s*[01ds]){0,3})\s*(?:;|$)/i.exec(rr)?.[1]
  return {
    domain: policyDomain,
    p,
    sp,
    np: np ?? null,
    adkim: alignment?.dkim?.strict ? 's' : 'r',
    aspf: alignment?.spf?.strict ? 's' : 'r',
    fo: fo?.replaceAll(/\s/g, '').toLowerCase() ?? null,
    testing: testMode,
  }
}

async function checkArc(
  verified: Verified,
  header: SignedHeader,
  inquiry: Inquiry,
  { trusted, author }: { trusted: string[]; author: string | undefined },
): Promise<Arc> {
  if (!verified.arc) return noArc
  // Read before verifyArc, which modifies the parsed values.
  const first = verified.arc.chain ? verified.arc.chain[0]?.['arc-authentication-results'] : undefined
  const hasPassed = author !== undefined && isPassOf(author, first)
  // the same object has two types in the library
  const data = verified.arc as Parameters<typeof verifyArc>[0]
  const answer = await verifyArc(data, { ...strictOptions, resolver: keyResolverOf(inquiry) })
  const { status } = answer
  const chain = answer.chain || []
  // The library reports a failed lookup as a failed chain; it is a temporary error.
  const unknown = status.result === 'fail' && !status.comment && !status.policy && inquiry.troubled
  const sealers = chain.map((set) => domainNameOf(String(set['arc-seal']?.parsed?.d?.value ?? '')))
  // All sealers must be trusted, and only the first hop received the message as its author sent it.
  // The newest seal covers the message as its sealer sent it.
  const newest = verified.arc.lastEntry ? verified.arc.lastEntry.messageSignature : undefined
  const { flaw, ambiguity } = status.result === 'pass' && newest ? flawOf(newest, header) : { flaw: null, ambiguity: null }
  if (flaw !== null) return { result: 'fail', chain: chain.length, reason: flaw, trustedSealer: null }
  const believed =
    status.result === 'pass' &&
    hasPassed &&
    sealers.every((sealer) => sealer !== undefined && trusted.some((domain) => domainNameOf(domain) === sealer))
  return {
    result: unknown ? 'temperror' : resultOf(status.result),
    chain: chain.length,
    // an ambiguous chain counts for acceptance only, never as verification
    reason: ambiguity ?? (status.comment ? oneLine(status.comment) : unknown ? 'DNS failure' : null),
    trustedSealer: believed ? (sealers[0] ?? null) : null,
  }
}

/** True if this ARC-Authentication-Results field has one DMARC result, and it is a pass for this domain. */
function isPassOf(author: string, field: { original?: string; parsed?: object } | undefined): boolean {
  const { dmarc } = (field?.parsed ?? {}) as { dmarc?: { value?: unknown; header?: { from?: unknown } } }
  // the library keeps the last of several
  const count = field?.original?.toString().match(/(?<![\w.])dmarc\b/gi)?.length
  return dmarc?.value === 'pass' && count === 1 && domainNameOf(String(dmarc.header?.from)) === author
}

function signatureOf(row: VerifiedSignature, header: SignedHeader): { signature: Signature; isAmbiguous: boolean } {
  const { status } = row
  const { fields, flaw, ambiguity } = flawOf(row, header)
  const verified = resultOf(status.result)
  const isFlawed = flaw !== null && (verified === 'pass' || verified === 'temperror')
  const isAmbiguous = !isFlawed && ambiguity !== null && verified === 'pass'
  const reason = isFlawed ? flaw : isAmbiguous ? ambiguity : status.comment
  const signature: Signature = {
    result: isFlawed || isAmbiguous ? 'policy' : verified,
    domain: domainNameOf(row.signingDomain ?? '') ?? oneLine(row.signingDomain ?? ''),
    selector: oneLine(row.selector ?? ''),
    algorithm: row.algo ? oneLine(row.algo) : null,
    aligned: false,
    reason: reason ? oneLine(reason) : null,
    signed_fields: fields.slice(0, maxSignedFields).map((name) => oneLine(name).slice(0, longestName)),
  }
  return { signature, isAmbiguous }
}

/** The coverage of a signature, why it does not count even if valid, and why the signed content is ambiguous. */
function flawOf(row: VerifiedSignature, header: SignedHeader): ReturnType<SignedHeader['coveredBy']> {
  const { fields, flaw, ambiguity } = header.coveredBy(row.signingHeaders?.headers ?? [])
  return {
    fields,
    // a line that is no field, such as one that somebody else has put there, was read as text behind the signature
    flaw: tagFlawOf(row) ?? flaw ?? (ambiguity === null && !isBase64(row.signature) ? 'b= is not base64' : null),
    ambiguity: ambiguity ?? (row.status.result === 'pass' ? header.spacing(row.format ?? '') : null),
  }
}

/** The verifier ignores text after the padding, which is no part of a signature (RFC 6376 3.5). */
function isBase64(signature = ''): boolean {
  return base64.test(signature.replaceAll(/[ \t\r\n]/g, ''))
}

/** Why a signature does not count by its tags and its key. */
function tagFlawOf(row: VerifiedSignature): string | null {
  // other software may read another name than the verifier
  if (domainNameOf(row.signingDomain ?? '') === undefined) return 'd= is not a valid domain name'
  // the verifier ignores what follows, and takes nothing for a default (RFC 6376 3.5)
  if (row.format !== undefined && !canonicalization.test(row.format)) return 'c= is not valid'
  // RFC 6376 3.6.1: in testing mode a message counts as unsigned
  if (row.status.testing === true) return 'the key is in testing (t=y)'
  // RFC 6376 8.2
  if (row.canonBodyLengthLimited === true) return 'l= leaves the rest of the body unsigned'
  if (row.signTime && Date.parse(row.signTime) > Date.now() + clockDrift) return 'its time is in the future (t=)'
  return null
}

/** Looks up keys. A name that cannot exist has none (RFC 6376 6.1.2): to the library that would be a failure of the DNS, which refuses nothing. */
function keyResolverOf(inquiry: Inquiry): Resolver {
  const lookup: Lookup = (name, type) =>
    inquiry.lookup(name, type).catch((error: unknown) => {
      throw isAbsent(error) ? new DnsError('ENOTFOUND', name) : error
    })
  return lookup as Resolver
}

function resolverOf(inquiry: Inquiry): Resolver {
  // the library's type lacks the objects of MX answers
  return inquiry.lookup as Resolver
}

function resultOf(text: string): AuthResult {
  return results.find((result) => result === text) ?? 'temperror'
}

function policyOf(text: string | undefined): Authentication['dmarc']['policy'] {
  return text === 'none' || text === 'quarantine' || text === 'reject' ? text : null
}
