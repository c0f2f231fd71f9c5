import type { Lookup } from '../net/dns.ts'
import { addresses, alias, exchanges, texts } from './answers.ts'
import { judgeKey } from './judge-key.ts'
import { judgeSpf } from './judge-spf.ts'
import type { WantedRecord } from './records.ts'
import { type CheckContext, invalid, type Judged, missing, only, valid } from './verdict.ts'

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
