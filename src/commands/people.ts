import type { Command } from 'commander'
import type { Invitation, InvitationLink, Person, PersonRemoved } from '../accounts/model.ts'
import { roles } from '../core/scopes.ts'
import { type Box, everyOne, ofBox, onBox, type Printed } from './support/box.ts'
import { Failure } from './support/refuse.ts'
import { table } from './support/say.ts'

const which = 'their id or e-mail address'

/** `pillarbox people …`, for the operator: the people of an account, the first one unless said. */
export function addPeopleCommand(program: Command): void {
  const people = program.command('people').description('the people who sign in to an account')
  const add = (name: string, words: string): Command => ofBox(people.command(name).description(words))
  add('list', 'list all people, and open invitations').action(onBox(list))
  add('invite', 'create a link by which a person joins, valid once and for three days')
    .argument('<address>', 'e-mail address that they will sign in with')
    .requiredOption('--role <role>', roles.join(', '))
    .action(onBox(invite))
  add('uninvite', 'withdraw an invitation').argument('<invitation>', 'its id or e-mail address').action(onBox(uninvite))
  add('role', 'change the role of a person, and end their sessions')
    .argument('<person>', which)
    .argument('<role>', roles.join(', '))
    .action(onBox(changeRole))
  add('remove', 'remove a person, and end their sessions').argument('<person>', which).action(onBox(removeOne))
}

async function list(box: Box): Promise<Printed> {
  const people = await everyOne<Person>(box, '/v1/people')
  const invitations = await everyOne<Invitation>(box, '/v1/people/invitations')
  const rows = [
    ...people.map(({ id, email, role, totp_enabled }) => [id, email, role, totp_enabled ? 'second factor' : '']),
    ...invitations.map(({ id, email, role, expires_at }) => [id, email, role, `invited, until ${expires_at}`]),
  ]
  return [
    { people, invitations },
    rows.length === 0 ? 'Nobody signs in to this account.' : table(['ID', 'SIGNS IN WITH', 'ROLE', ''], rows),
  ]
}

async function invite(box: Box, email: string, { role }: { role: string }): Promise<Printed> {
  const made = await box.call<InvitationLink>('POST', '/v1/people/invitations', { email, role })
  return [made, `${made.url}\n\nIt can be used once, until ${made.expires_at}.`]
}

async function uninvite(box: Box, who: string): Promise<Printed> {
  const { id, email } = named(await everyOne<Invitation>(box, '/v1/people/invitations'), who, 'invitation')
  return [await box.call('DELETE', `/v1/people/invitations/${id}`), `The invitation of ${email} was withdrawn.`]
}

async function changeRole(box: Box, who: string, role: string): Promise<Printed> {
  const { id } = named(await everyOne<Person>(box, '/v1/people'), who, 'person')
  const person = await box.call<Person>('PATCH', `/v1/people/${id}`, { role })
  return [person, `${person.email} has the role ${person.role}.`]
}

async function removeOne(box: Box, who: string): Promise<Printed> {
  const { id } = named(await everyOne<Person>(box, '/v1/people'), who, 'person')
  const removed = await box.call<PersonRemoved>('DELETE', `/v1/people/${id}`)
  return [
    removed,
    `${removed.email} was removed. Keys that they made stay: pillarbox audit list --action key.created --actor ${id}`,
  ]
}

function named<Row extends { id: string; email: string }>(rows: Row[], who: string, what: string): Row {
  const wanted = who.normalize('NFC').toLowerCase()
  const found = rows.find(({ id, email }) => id === who || email.normalize('NFC').toLowerCase() === wanted)
  if (!found) throw new Failure(`The account has no ${what} ${who}. See: pillarbox people list`, 'not_found', what)
  return found
}
