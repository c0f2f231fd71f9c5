import { addresses } from './answers.ts'
import type { WantedRecord } from './records.ts'
import { type CheckContext, invalid, type Judged, missing, only, Unanswered } from './verdict.ts'

/** The most addresses of a host that are evaluated. */
const maxAddresses = 8

/**
 * Evaluates SPF as receivers do: mail from every address of the box must pass. When mail leaves through a relay, only the existence of
 * exactly one record is checked.
 */
export async function judgeSpf({ name, value }: WantedRecord, values: string[], bench: CheckContext): Promise<Judged> {
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
