import { isIP } from 'node:net'
import { isPublic } from '../../delivery/public-addresses.ts'
import { about } from '../check.ts'
import type { Check } from '../check.ts'
import type { Line } from '../model.ts'
import type { Ask, Outlook } from '../outlook.ts'

const silent = 'Set dns.servers to a resolver that answers; the line dns says whether this one answers anything.'

/** Whether our name, by which we greet and to which MX records point, leads here (RFC 5321 2.3.5), and the API's name somewhere. */
export function helo(outlook: Outlook, publicUrl: () => string): Check {
  return {
    name: 'helo',
    pace: 'usual',
    run: () =>
      outlook.ask(async (ask) => {
        const { hostname } = outlook.settings
        const lines = [await leads(outlook, ask, hostname)]
        const host = new URL(publicUrl()).hostname
        if (host === hostname || host === 'localhost' || host.startsWith('[') || isIP(host) > 0) return lines
        return [...lines, await leads(outlook, ask, host)]
      }),
  }
}

async function leads(outlook: Outlook, ask: Ask, name: string): Promise<Line> {
  const line = about('helo', name)
  const found = await outlook.hosts(ask, name)
  if (found === 'unknown') return line.warn('The DNS gave no answer.', silent)
  const [own] = outlook.settings.addresses
  const record = `${name}. 3600 IN ${own?.includes(':') ? 'AAAA' : 'A'} ${own ?? '<the public address of this machine>'}`
  if (found.length === 0) return line.fail('It has no address in the DNS.', `Publish: ${record}`)
  const wrong = own === undefined ? [] : found.filter((address) => !outlook.settings.addresses.includes(address))
  if (name === outlook.settings.hostname && wrong.length > 0) {
    return line.fail(`It leads to ${wrong.join(', ')}, which doctor.addresses does not name.`, `Publish: ${record}`)
  }
  if (own === undefined && !found.some((address) => isPublic(address))) {
    const message = `It leads to ${found.join(', ')}, which nobody on the internet can reach.`
    return line.warn(message, `Publish: ${record}; or set doctor.addresses when only this machine sees it so.`)
  }
  return line.pass(`It leads to ${found.join(', ')}.`)
}

/** Whether our addresses go back to our name, and that to them: large receivers refuse mail from others. */
export function ptr(outlook: Outlook, direct: boolean): Check {
  return {
    name: 'ptr',
    pace: 'seldom',
    async run() {
      // whoever passes our mail on is known by an address of theirs
      if (!direct) return []
      return outlook.ask(async (ask) => {
        const addresses = await outlook.addresses(ask)
        return Promise.all(addresses.map((address) => goesBack(outlook, ask, address)))
      })
    },
  }
}

async function goesBack(outlook: Outlook, ask: Ask, address: string): Promise<Line> {
  const line = about('ptr', address)
  const { hostname } = outlook.settings
  const fix = `Have the provider of this machine set the reverse DNS of ${address} to ${hostname}`
  const found = await outlook.names(ask, address)
  if (found === 'unknown') return line.warn('The DNS gave no answer.', silent)
  const names = found.map((name) => name.toLowerCase().replace(/\.$/, ''))
  if (names.length === 0) return line.fail('It has no name (no PTR record): large receivers refuse mail from it.', fix)
  for (const name of names) {
    const hosts = await outlook.hosts(ask, name)
    if (hosts === 'unknown') return line.warn(`Of its name ${name} the DNS gave no answer.`, silent)
    if (!hosts.includes(address)) continue
    if (name === hostname) return line.pass(`It is ${hostname}, and ${hostname} is it.`)
    return line.warn(`It is ${name}, and the box calls itself ${hostname}.`, `${fix}, or set hostname to ${name}`)
  }
  return line.fail(`Its name ${names.join(', ')} does not lead back to it: large receivers refuse mail from it.`, fix)
}
