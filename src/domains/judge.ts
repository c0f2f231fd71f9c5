import type { Lookup } from '../net/dns.ts'
import { addresses, alias, exchanges, texts } from './answers.ts'
import type { WantedRecord } from './records.ts'
import { type CheckContext, invalid, type Judged, missing, only, Unanswered, unquoted, valid } from './verdict.ts'

/** Compares a DNS answer with the expected record. Rejects with Unanswered when no server answers. */
export async function judge(wanted: WantedRecord, domain: string, bench: CheckContext): Promise<Judged> {
  if (wanted.type === 'MX') return judgeMx(wanted, bench)
  if (wanted.type === 'CNAME') return judgeHost(wanted, bench)
  const { values, aliases } = await texts(bench.lookup, wanted.name)
  if (wanted.purpose === 'spf') return judgeSpf(wanted, values, bench)
  if (values.length === 0) return missing(await whyMissing(wanted, domain, aliases, bench.lookup))
  if (wanted.purpose === 'dkim') return judgeKey(wanted, values)
  if (wanted.purpose === 'dmarc') return judgeDmarc(wanted, values)
  return wanted.purpose === 'mta_sts' ? judgeSts(wanted, values) : judgeTlsRpt(wanted, values)
}

async function judgeMx({ name, value, priority }: WantedRecord, { lookup }: CheckContext): Promise<Judged> {
  const answers = await exchanges(lookup, name)
  if (answers.length === 0) return missing(`${name} has no MX record; it should be “${priority} ${value}”.`)
  const found = answers.map((answer) => `${answer.priority} ${answer.exchange || '.'}`)
  const ours = answers.find(({ exchange }) => exchange === value)
  if (!ours && answers.some(({ exchange }) => exchange === '')) {
    return invalid(found, `This is a null MX: ${name} accepts no mail (RFC 7505); it should be “${priority} ${value}”.`)
  }
  if (!ours) return invalid(found, `Mail for ${name} goes elsewhere; the MX record should be “${priority} ${value}”.`)
  const rival = answers.find(({ exchange, priority: other }) => exchange !== value && other <= ours.priority)
  if (rival) {
    const first = rival.priority < ours.priority ? 'first' : 'as often'
    return invalid(found, `Mail for ${name} goes to ${rival.exchange} ${first}; give ${value} the only lowest number.`)
  }
  const { values } = await addresses(lookup, value)
  if (values.length === 0) {
    return invalid(found, `${value} has no address: give it an A record (AAAA for IPv6) with the address of this box.`)
  }
  return valid(found)
}

/** The policy host may also be reached without a CNAME, by the same address. */
async function judgeHost({ name, value }: WantedRecord, { lookup }: CheckContext): Promise<Judged> {
  const target = await alias(lookup, name)
  const here = await addresses(lookup, name)
  const found = [...new Set([...(target === undefined ? [] : [target]), ...here.values])]
  if (found.length === 0) return missing(`${name} does not exist; make it an alias (CNAME) of ${value}.`)
  if (target === value) return valid(found)
  const there = await addresses(lookup, value)
  if (here.values.some((address) => there.values.includes(address))) return valid(found)
  return invalid(found, `${name} points elsewhere; make it an alias (CNAME) of ${value}.`)
}

function judgeDmarc({ name, value }: WantedRecord, values: string[]): Judged {
  return only(values, /^v\s*=\s*DMARC1\s*(?:;|$)/, { name, value, what: 'DMARC' }, (text) =>
    /;\s*p\s*=\s*(?:none|quarantine|reject)\s*(?:;|$)/i.test(text)
      ? null
      : `The record has no policy: it should have p=none, p=quarantine or p=reject, as in “${value}”.`,
  )
}

function judgeSts({ name, value }: WantedRecord, values: string[]): Judged {
  const id = /id=(\w+)/.exec(value)?.[1]
  return only(values, /^v\s*=\s*STSv1\s*(?:;|$)/, { name, value, what: 'MTA-STS' }, (text) =>
    new RegExp(String.raw`;\s*id\s*=\s*${id}\s*(?:;|$)`).test(text)
      ? null
      : `The id belongs to another policy, so senders would not fetch the present one; it should be “${value}”.`,
  )
}

function judgeTlsRpt({ name, value }: WantedRecord, values: string[]): Judged {
  return only(values, /^v\s*=\s*TLSRPTv1\s*(?:;|$)/, { name, value, what: 'TLS report' }, (text) =>
    /;\s*rua\s*=\s*(?:mailto|https):\S/i.test(text) ? null : `The record has no address for reports; it should be “${value}”.`,
  )
}

/** Detects the most common mistake: the DNS provider appended the domain to a name that already had it. */
async function whyMissing({ name, key }: WantedRecord, domain: string, aliases: string[], lookup: Lookup): Promise<string> {
  if (aliases.length > 0) return `${name} is an alias of ${aliases.join(', then ')}, where there is no TXT record.`
  const twice = `${name}.${domain}`
  if (twice.length <= 253 && (await texts(lookup, twice)).values.length > 0) {
    const short = name.slice(0, -domain.length - 1)
    return `The record is at ${twice}: the DNS provider adds the domain itself, so its name should be entered as ${short}.`
  }
  if (key?.state === 'spare') return `There is no TXT record at ${name}. It is required only for the next key rotation.`
  if (key?.state === 'retired')
    return `There is no TXT record at ${name}; mail signed before the rotation can no longer be verified.`
  return `There is no TXT record at ${name}.`
}

/** The most addresses of a host that are evaluated. */
const maxAddresses = 8

/**
 * Evaluates SPF as receivers do: mail from every address of the box must pass. When mail leaves through a relay, only the existence of
 * exactly one record is checked.
 */
async function judgeSpf({ name, value }: WantedRecord, values: string[], bench: CheckContext): Promise<Judged> {
  const { direct, hostname, ipv6 } = bench.settings
  if (!values.some((text) => /v\s*=\s*spf1/i.test(text))) {
    const others = direct ? '' : ' that authorizes every server that sends for this box'
    return missing(`${name} has no SPF record; it should have a TXT record${others}, such as “${value}”.`)
  }
  const judged = only(values, /^v=spf1(?: |$)/i, { name, value, what: 'SPF' }, () => null)
  if (judged.status !== 'valid' || !direct) return judged
  const clients = (await addresses(bench.lookup, hostname, ipv6)).values.slice(0, maxAddresses)
  if (clients.length === 0) {
    return invalid(judged.found, `${hostname} has no address, so this authorizes no server: give it an A record (AAAA for IPv6).`)
  }
  for (const ip of clients) {
    const { result, reason } = await bench.spf({ ip, domain: name })
    if (result === 'temperror') throw new Unanswered('ESERVFAIL')
    if (result === 'pass') continue
    return invalid(
      judged.found,
      refusalOf({ ip, hostname, value, said: reason === null ? result : `${result}: ${reason}` }, judged.found[0]!),
    )
  }
  return judged
}

function refusalOf({ ip, hostname, value, said }: Record<'ip' | 'hostname' | 'value' | 'said', string>, text: string): string {
  const cure = /\s\+?mx(?:\s|$)/i.test(text)
    ? `its term mx authorizes the host in the MX record, which is not ${hostname}`
    : `add mx before the term “all”, as in “${value}”`
  return `Mail from ${ip} (${hostname}) would not pass: ${cure} (${said}).`
}

/** Checks the TXT records of a DKIM selector (RFC 6376 3.6.1, RFC 8463): the key that a verifier reads must be ours. */
function judgeKey({ name, key }: WantedRecord, values: string[]): Judged {
  if (!key) throw new Error('A DKIM record is checked with its key.')
  if (values.length > 1) {
    return invalid(
      values,
      `There are ${values.length} TXT records at ${name}, and verifiers use any of them; leave only this one.`,
    )
  }
  const [text = ''] = values
  const reason = faultOf(text, key.public_text, key.algorithm === 'rsa-sha256' ? 'rsa' : 'ed25519')
  if (reason === null) return valid(values)
  const meant = unquoted(text)
  const readable = meant !== text && faultOf(meant, key.public_text, key.algorithm === 'rsa-sha256' ? 'rsa' : 'ed25519') === null
  return invalid(
    values,
    readable ? 'The key is correct, but quotes or backslashes became part of the record; enter it without them.' : reason,
  )
}

function faultOf(text: string, expected: string, algorithm: string): string | null {
  const tags = tagsOf(text)
  if (tags === null) return 'This is not a DKIM record: it should be a list of tags such as v=DKIM1; k=…; p=….'
  if ((tags.get('v') ?? 'DKIM1') !== 'DKIM1') return 'The version should be v=DKIM1.'
  const key = tags.get('p')?.replaceAll(/\s/g, '')
  if (key === undefined) return 'The record has no key (p=).'
  if (key === '') return 'An empty p= means that the key was revoked.'
  if ((tags.get('k') ?? 'rsa') !== algorithm) return `The key type should be k=${algorithm}.`
  if (key !== expected) {
    const cut = expected.startsWith(key) || expected.endsWith(key)
    return cut
      ? `Only ${key.length} of the ${expected.length} characters of the key are present; a text over 255 characters must be split into several strings.`
      : 'This is not the key that signs.'
  }
  if (!listed(tags.get('h') ?? 'sha256', 'sha256')) return 'The hashes of h= should include sha256.'
  if (!listed(tags.get('s') ?? '*', 'email') && !listed(tags.get('s') ?? '*', '*'))
    return 'The services of s= should include email.'
  if (listed(tags.get('t') ?? '', 'y')) return 't=y marks signatures as a test; leave it out.'
  return null
}

/** Null when the text is no tag list (RFC 6376 3.2). */
function tagsOf(text: string): Map<string, string> | null {
  const tags = new Map<string, string>()
  for (const part of text.replace(/;\s*$/, '').split(';')) {
    const [, name, value] = /^\s*([a-z]\w*)\s*=(.*)/is.exec(part) ?? []
    if (name === undefined || value === undefined || tags.has(name)) return null
    tags.set(name, value.trim())
  }
  return tags
}

function listed(value: string, word: string): boolean {
  return value.split(':').some((part) => part.trim() === word)
}
