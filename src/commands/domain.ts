import type { Command } from 'commander'
import { ofBox, withBox } from './box.ts'
import type { Box, BoxOptions } from './box.ts'
import { Failure } from './failure.ts'
import { say, table, withJson } from './say.ts'

type Options = BoxOptions & { json?: boolean }

interface DnsRecord {
  required: boolean
  type: string
  name: string
  value: string
  priority?: number
  status: string
  reason: string | null
}

interface Domain {
  id: string
  name: string
  status: string
  default: boolean
  dns_records: DnsRecord[]
}

/** `pillarbox domain add|list|check|zone|rotate-dkim|remove`. */
export function addDomainCommand(program: Command): void {
  const domain = program.command('domain').description('the domains the box has mail for')
  const add = (name: string, words: string, act: (box: Box, name: string, options: Options) => Promise<void>): void => {
    withJson(ofBox(domain.command(`${name} <name>`).description(words))).action((given: string, options: Options) =>
      withBox(options, (box) => act(box, given, options)),
    )
  }
  withJson(ofBox(domain.command('list').description('every domain and how it stands'))).action((options: Options) =>
    withBox(options, async (box) => {
      const domains = await every(box)
      const rows = domains.map(({ name, status, default: usual }) => [name, status, usual ? 'default' : ''])
      say(options, domains, table(['DOMAIN', 'STATUS', ''], rows))
    }),
  )
  add('add', 'take a domain on, and print the records to publish', async (box, name, options) => {
    const made = await box.call<Domain>('POST', '/v1/domains', { name })
    say(
      options,
      made,
      `${made.name} was added. Publish these records, then run: pillarbox domain check ${made.name}\n\n${told(made)}`,
    )
  })
  add('check', 'look its records up now', async (box, name, options) => {
    const { id } = await named(box, name)
    const checked = await box.call<Domain>('POST', `/v1/domains/${id}/verify`)
    say(options, checked, `${checked.name} is ${checked.status}.\n\n${told(checked)}`)
    if (checked.status !== 'verified') process.exitCode = 1
  })
  add('zone', 'print its records as the text of a zone file', async (box, name, options) => {
    const { id } = await named(box, name)
    const zone = (await box.read(`/v1/domains/${id}/zone`)).toString()
    say(options, { zone }, zone)
  })
  add('rotate-dkim', 'sign with the spare keys that are published, and make new spares', async (box, name, options) => {
    const { id } = await named(box, name)
    const turned = await box.call<Domain>('POST', `/v1/domains/${id}/dkim/rotate`)
    say(options, turned, `The keys of ${turned.name} were changed. Publish the new spares:\n\n${told(turned)}`)
  })
  add('remove', 'give a domain up: mail to it is refused from now on', async (box, name, options) => {
    const { id } = await named(box, name)
    say(options, await box.call('DELETE', `/v1/domains/${id}`), `${name} was removed.`)
  })
}

async function every(box: Box): Promise<Domain[]> {
  const { data } = await box.call<{ data: Domain[] }>('GET', '/v1/domains?limit=200')
  return data
}

async function named(box: Box, name: string): Promise<Domain> {
  const domain = (await every(box)).find((one) => one.name === name.toLowerCase() || one.id === name)
  if (!domain) throw new Failure(`The box has no domain ${name}. Those it has: pillarbox domain list`, 'not_found', 'name')
  return domain
}

function told({ dns_records }: Domain): string {
  const rows = dns_records.map(({ type, name, priority, value, status, reason }) => [
    status,
    type,
    name,
    priority === undefined ? value : `${priority} ${value}`,
    reason ?? '',
  ])
  return table(['STATUS', 'TYPE', 'NAME', 'VALUE', ''], rows)
}
