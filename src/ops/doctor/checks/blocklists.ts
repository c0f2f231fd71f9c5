import { reverseName } from '../../../net/networks.ts'
import { about, newCheck, type Check } from '../check.ts'
import type { Line } from '../model.ts'
import type { OuterContext } from '../context.ts'
import type { Ask } from '../external-view.ts'

/** The delisting pages of the large lists. */
const removals: Record<string, (address: string) => string> = {
  'zen.spamhaus.org': (address) => `https://check.spamhaus.org/results/?query=${address}`,
  'bl.spamcop.net': (address) => `https://www.spamcop.net/bl.shtml?${address}`,
  'psbl.surriel.com': (address) => `https://psbl.org/listing?ip=${address}`,
  'b.barracudacentral.org': () => 'https://www.barracudacentral.org/rbl/removal-request',
}

/** Checks whether DNS block lists name our addresses (RFC 5782). */
export function blocklists({ externalView, settings }: OuterContext): Check {
  return newCheck('blocklists', 'seldom', () =>
    externalView.ask(async (ask) => {
      const addresses = await externalView.addresses(ask)
      return Promise.all(addresses.flatMap((address) => settings.blocklists.map((list) => look(ask, address, list))))
    }),
  )
}

async function look(ask: Ask, address: string, list: string): Promise<Line> {
  const line = about('blocklists', `${address} ${list}`)
  const name = `${reverseName(address) ?? address}.${list}`
  const found = await ask(name, 'A')
  const resolver = 'Set dns.servers to your own resolver: block lists do not answer large public resolvers.'
  if (found === 'unknown') return line.warn('The DNS lookup failed.', resolver)
  const codes = found.filter((code) => code.startsWith('127.'))
  if (codes.some((code) => code.startsWith('127.255.255.'))) {
    return line.warn(`The list does not answer this resolver (${codes.join(', ')}).`, resolver)
  }
  if (codes.length === 0) return line.pass('It is not listed.')
  const texts = await ask(name, 'TXT')
  const why = texts === 'unknown' || texts.length === 0 ? '' : `: ${texts[0]!.slice(0, 200)}`
  const removal = removals[list]?.(address) ?? `the site of ${list}`
  return line.fail(`It is listed (${codes.join(', ')})${why}`, `Find and remove the cause, then request removal: ${removal}`)
}
