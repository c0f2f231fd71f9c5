import type { Command } from 'commander'
import type { Domain } from '../domains/model.ts'
import type { Alias, ReducedIdentity } from '../identities/model.ts'
import { type Box, everyOne, identityNamed, ofBox, onBox, type Printed, whichIdentity } from './support/box.ts'
import { Failure } from './support/refuse.ts'
import { table } from './support/say.ts'

export function addDomainCommand(program: Command): void {
  const domain = program.command('domain').description('hosted domains')
  const add = (name: string, words: string): Command => ofBox(domain.command(name).description(words))
  add('list', 'list all domains with their status').action(onBox(list))
  add('add <name>', 'add a domain, and print the records to publish').action(onBox(addOne))
  add('check <name>', 'look up its records now').action(onBox(check))
  add('zone <name>', 'print its records as a zone file').action(onBox(zone))
  add('rotate-dkim <name>', 'sign with the published spare keys, and create new spares').action(onBox(rotate))
  addAliasCommands(domain)
  add('catch-all', 'set the recipient of mail to unknown addresses of a domain')
    .argument('<name>', 'the domain')
    .argument('[identity]', whichIdentity)
    .option('--none', 'reject such mail', false)
    .action(onBox(catchAll))
  add('remove <name>', 'delete a domain: mail to it is rejected from now on').action(onBox(remove))
}

function addAliasCommands(domain: Command): void {
  const alias = domain.command('alias').description('additional addresses of the domains')
  const add = (name: string, words: string): Command => ofBox(alias.command(name).description(words))
  add('add', 'add an address of a domain, delivered to an identity')
    .argument('<address>', 'the new address')
    .argument('<identity>', whichIdentity)
    .action(onBox(addAlias))
  add('list', 'list the aliases of a domain, and its catch-all').argument('<name>', 'the domain').action(onBox(listAliases))
  add('remove', 'delete an alias').argument('<address>', 'the alias').action(onBox(removeAlias))
}

async function list(box: Box): Promise<Printed> {
  const domains = await every(box)
  const rows = domains.map(({ name, status, default: usual }) => [name, status, usual ? 'default' : ''])
  return [domains, table(['DOMAIN', 'STATUS', ''], rows)]
}

async function addOne(box: Box, name: string): Promise<Printed> {
  const made = await box.call<Domain>('POST', '/v1/domains', { name })
  const next = `Publish these records, then run: pillarbox domain check ${made.name}`
  return [made, `${made.name} was added. ${next}\n\n${formatRecords(made)}`]
}

async function check(box: Box, name: string): Promise<Printed> {
  const { id } = await named(box, name)
  const checked = await box.call<Domain>('POST', `/v1/domains/${id}/verify`)
  const { silent, words } = outcome(checked)
  if (silent || checked.status !== 'verified') process.exitCode = 1
  return [checked, `${words}\n\n${formatRecords(checked)}`]
}

async function zone(box: Box, name: string): Promise<Printed> {
  const { id } = await named(box, name)
  const text = (await box.read(`/v1/domains/${id}/zone`)).toString()
  return [{ zone: text }, text]
}

async function rotate(box: Box, name: string): Promise<Printed> {
  const { id } = await named(box, name)
  const turned = await box.call<Domain>('POST', `/v1/domains/${id}/dkim/rotate`)
  return [turned, `The keys of ${turned.name} were rotated. Publish the new spares:\n\n${formatRecords(turned)}`]
}

async function remove(box: Box, name: string): Promise<Printed> {
  const { id } = await named(box, name)
  return [await box.call('DELETE', `/v1/domains/${id}`), `${name} was removed.`]
}

async function addAlias(box: Box, address: string, who: string): Promise<Printed> {
  const { local, id: domainId } = await placeOf(box, address)
  const { id, name, email } = await identityNamed(box, who)
  const made = await box.call<Alias>('POST', `/v1/domains/${domainId}/aliases`, { local_part: local, identity_id: id })
  return [made, `Mail to ${made.address} goes to ${name} (${email}).`]
}

async function listAliases(box: Box, name: string): Promise<Printed> {
  const { id, name: called, catch_all } = await named(box, name)
  const aliases = await everyOne<Alias>(box, `/v1/domains/${id}/aliases`)
  const identities = new Map((await everyOne<ReducedIdentity>(box, '/v1/identities')).map((one) => [one.id, one.email]))
  const caught = catch_all === null ? [] : [{ address: `*@${called}`, identity_id: catch_all }]
  const rows = [...caught, ...aliases].map(({ address, identity_id }) => [address, identities.get(identity_id) ?? identity_id])
  return [aliases, table(['ADDRESS', 'GOES TO'], rows)]
}

async function removeAlias(box: Box, address: string): Promise<Printed> {
  const { local, id: domainId, name } = await placeOf(box, address)
  const aliases = await everyOne<Alias>(box, `/v1/domains/${domainId}/aliases`)
  const found = aliases.find((one) => one.local_part === local)
  if (!found) {
    const hint = `List its aliases: pillarbox domain alias list ${name}`
    throw new Failure(`${name} has no alias ${local}@${name}. ${hint}`, 'not_found', 'address')
  }
  const gone = await box.call('DELETE', `/v1/domains/${domainId}/aliases/${found.id}`)
  return [gone, `${found.address} was removed.`]
}

async function catchAll(box: Box, name: string, who: string | undefined, { none }: { none: boolean }): Promise<Printed> {
  if (none === (who !== undefined)) throw new Failure('Specify an identity, or --none.', 'invalid_request', 'identity')
  const domain = await named(box, name)
  const identity = who === undefined ? undefined : await identityNamed(box, who)
  const changed = await box.call<Domain>('PATCH', `/v1/domains/${domain.id}`, { catch_all: identity?.id ?? null })
  const words = identity ? `goes to ${identity.name} (${identity.email})` : 'is rejected'
  return [changed, `Mail for unknown addresses of ${changed.name} ${words}.`]
}

/** The local part of an address, and its domain. */
async function placeOf(box: Box, address: string): Promise<{ local: string; id: string; name: string }> {
  const at = address.lastIndexOf('@')
  if (at < 1) throw new Failure(`${address} is not an address such as sales@example.com.`, 'invalid_request', 'address')
  const { id, name } = await named(box, address.slice(at + 1))
  return { local: address.slice(0, at).toLowerCase(), id, name }
}

async function every(box: Box): Promise<Domain[]> {
  return everyOne<Domain>(box, '/v1/domains')
}

async function named(box: Box, name: string): Promise<Domain> {
  const domain = (await every(box)).find((one) => one.name === name.toLowerCase() || one.id === name)
  if (!domain) throw new Failure(`The box has no domain ${name}. List the domains: pillarbox domain list`, 'not_found', 'name')
  return domain
}

/** The result of a check as a sentence; `silent` when the DNS lookup of some of the records failed. */
function outcome({ name, status, dns_records }: Domain): { silent: boolean; words: string } {
  const open = dns_records.filter(({ unanswered }) => unanswered)
  if (open.length === 0) return { silent: false, words: `${name} is ${status}.` }
  const many = open.length === dns_records.length ? 'any of its records' : `${open.length} of its ${dns_records.length} records`
  const words = `The DNS lookup of ${many} failed: ${name} remains ${status}. For these records the last known result is shown.`
  return { silent: true, words: folded(words, 0).join('\n') }
}

/** The width of a line in columns. */
const width = 100

/** Each record on lines of its own, as keys are longer than a line. */
function formatRecords({ dns_records }: Domain): string {
  return dns_records
    .map(({ type, name, priority, value, status, reason, unanswered, seen_at }) => {
      const seen = unanswered
        ? seen_at === null
          ? ' (no answer; time of this result unknown)'
          : ` (no answer; result of ${seen_at})`
        : ''
      const text = priority === undefined ? value : `${priority} ${value}`
      const lines = [...folded(text, 4), ...(reason === null ? [] : folded(reason, 4))]
      return [`${status}  ${type}  ${name}${seen}`, ...lines].join('\n')
    })
    .join('\n\n')
}

/** Wraps text at `width` columns, broken at spaces; a longer word is split. */
function folded(text: string, indent: number): string[] {
  const columnsLeft = width - indent
  const pieces = text.split(' ').flatMap((word) => word.match(new RegExp(`.{1,${columnsLeft}}`, 'g')) ?? [''])
  const lines: string[] = []
  for (const piece of pieces) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + piece.length <= columnsLeft) lines[lines.length - 1] = `${last} ${piece}`
    else lines.push(piece)
  }
  return lines.map((line) => `${' '.repeat(indent)}${line}`)
}
