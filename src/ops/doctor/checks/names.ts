import { isIP } from 'node:net'
import { isPublic } from '../../../net/public-addresses.ts'
import { about, newCheck, sharedCheck, type Check } from '../check.ts'
import type { BoxContext, OuterContext } from '../context.ts'
import type { Line } from '../model.ts'
import type { Ask, ExternalView } from '../external-view.ts'
import { receivingRoles } from '../../../identities/role-names.ts'
import { join, sql } from '../../../store/database.ts'
import { getServers } from 'node:dns'

const silent = 'Set dns.servers to a resolver that answers; the line dns shows whether the present one answers.'

/** Checks that our host name, used in HELO and MX records, points here (RFC 5321 2.3.5), and that the API's name resolves. */
export function helo({ externalView, publicUrl }: OuterContext): Check {
  return newCheck('helo', 'usual', () =>
    externalView.ask(async (ask) => {
      const { hostname } = externalView.settings
      const lines = [await leads(externalView, ask, hostname)]
      const host = new URL(publicUrl()).hostname
      if (host === hostname || host === 'localhost' || host.startsWith('[') || isIP(host) > 0) return lines
      return [...lines, await leads(externalView, ask, host)]
    }),
  )
}

async function leads(externalView: ExternalView, ask: Ask, name: string): Promise<Line> {
  const line = about('helo', name)
  const found = await externalView.hosts(ask, name)
  if (found === 'unknown') return line.warn('The DNS lookup failed.', silent)
  const [own] = externalView.settings.addresses
  const record = `${name}. 3600 IN ${own?.includes(':') ? 'AAAA' : 'A'} ${own ?? '<the public address of this machine>'}`
  if (found.length === 0) return line.fail('It has no address in the DNS.', `Publish: ${record}`)
  const wrong = own === undefined ? [] : found.filter((address) => !externalView.settings.addresses.includes(address))
  if (name === externalView.settings.hostname && wrong.length > 0) {
    return line.fail(`It points to ${wrong.join(', ')}, which is not in doctor.addresses.`, `Publish: ${record}`)
  }
  if (own === undefined && !found.some((address) => isPublic(address))) {
    const message = `It points to ${found.join(', ')}, which is not reachable from the internet.`
    return line.warn(message, `Publish: ${record}; or set doctor.addresses if only this machine resolves it to that.`)
  }
  return line.pass(`It points to ${found.join(', ')}.`)
}

/** Checks that our addresses have a PTR record to our name, which resolves to them: large receivers refuse mail from others. */
export function ptr({ externalView, settings }: OuterContext): Check {
  return newCheck('ptr', 'seldom', async () => {
    // a relay sends from its own addresses
    if (settings.mode !== 'direct') return []
    return externalView.ask(async (ask) => {
      const addresses = await externalView.addresses(ask)
      return Promise.all(addresses.map((address) => goesBack(externalView, ask, address)))
    })
  })
}

async function goesBack(externalView: ExternalView, ask: Ask, address: string): Promise<Line> {
  const line = about('ptr', address)
  const { hostname } = externalView.settings
  const fix = `Have the provider of this machine set the reverse DNS of ${address} to ${hostname}`
  const found = await externalView.names(ask, address)
  if (found === 'unknown') return line.warn('The DNS lookup failed.', silent)
  const names = found.map((name) => name.toLowerCase().replace(/\.$/, ''))
  if (names.length === 0) return line.fail('It has no reverse DNS (PTR record): large receivers reject mail from it.', fix)
  for (const name of names) {
    const hosts = await externalView.hosts(ask, name)
    if (hosts === 'unknown') return line.warn(`The DNS lookup of its name ${name} failed.`, silent)
    if (!hosts.includes(address)) continue
    if (name === hostname) return line.pass(`It is ${hostname}, and ${hostname} points back to it.`)
    return line.warn(`It is ${name}, but the HELO name of the box is ${hostname}.`, `${fix}, or set hostname to ${name}`)
  }
  return line.fail(`Its name ${names.join(', ')} does not point back to it: large receivers reject mail from it.`, fix)
}

/** Checks for identities of other accounts with role names of the operator, created before those were reserved. */
export function operatorNames({ database, settings: { domain }, account }: BoxContext): Check {
  return sharedCheck('operator_names', 'usual', async () => {
    const addresses = [...receivingRoles].map((name) => `${name}@${domain}`)
    const rows = await database.all<{ address: string; id: string; account_id: string }>(
      sql`SELECT address, identities.id, identities.account_id FROM addresses JOIN identities ON identities.id = addresses.identity_id
          WHERE address IN (${join(addresses)}) AND status <> 'deleted' AND account_id <> ${account} ORDER BY address`,
    )
    if (rows.length === 0)
      return [about('operator_names', 'all').pass(`No other account receives mail for the operator of ${domain}.`)]
    return rows.map(({ address, id, account_id }) =>
      about('operator_names', address).fail(
        `It is an identity of the account ${account_id}, which can have certificates issued for ${domain} and reply in its name.`,
        `Inform its owner, and delete it: pillarbox identity delete ${id} --account ${account_id} --yes; mail to it then goes to the operator.`,
      ),
    )
  })
}

/** Checks that the DNS answers, without which mail is neither sent nor verified. */
export function resolver({ externalView, settings: { hostname, domain, servers } }: OuterContext): Check {
  return newCheck('dns', 'often', () =>
    externalView.ask(async (ask) => {
      const asked = servers.length > 0 ? servers : getServers()
      const line = about('dns', asked.length > 0 ? asked.join(', ') : 'no name server')
      const names = [...new Set([hostname, domain])]
      const answers = await Promise.all(names.map((name) => ask(name, 'A')))
      if (answers.some((answer) => answer !== 'unknown')) return [line.pass('It answers.')]
      const message = `The DNS lookup of ${names.join(' and ')} failed: mail can be neither sent nor checked.`
      return [line.fail(message, 'Set dns.servers to a resolver that answers, then: systemctl reload pillarbox')]
    }),
  )
}
