import type { Command } from 'commander'
import type { Identity, ReducedIdentity, Storage } from '../identities/model.ts'
import {
  type Box,
  type BoxOptions,
  everyOne,
  identityNamed,
  ofBox,
  onBox,
  opened,
  type Printed,
  whichIdentity,
} from './support/box.ts'
import { confirmed } from './support/prompt.ts'
import { bytes, say, table } from './support/say.ts'

type Whole = Identity & { storage: Storage }

export function addIdentityCommand(program: Command): void {
  const identity = program.command('identity').description('identities of an account')
  const add = (name: string, words: string): Command => ofBox(identity.command(name).description(words))
  add('list', 'list all identities, newest first').action(onBox(list))
  add('show', 'show one identity and its storage').argument('<identity>', whichIdentity).action(onBox(show))
  add('create', 'create an identity with its own address')
    .argument('[name]', 'its name (default: generated)')
    .option('--username <local part>', 'local part of its address (default: derived from the name)')
    .option('--domain <domain>', 'a verified domain of the account (default: mail.domain)')
    .option('--phone [country]', 'provision a phone number, in this country')
    .option('--expires-at <time>', 'delete it at this time (ISO 8601)')
    .action(onBox(create))
  add('suspend', 'suspend it: it can neither receive nor send')
    .argument('<identity>', whichIdentity)
    .action(onBox(turn('suspended')))
  add('activate', 'reactivate a suspended identity')
    .argument('<identity>', whichIdentity)
    .action(onBox(turn('active')))
  add('expire', 'delete it at this time, or no longer')
    .argument('<identity>', whichIdentity)
    .argument('<time>', 'ISO 8601, or never')
    .action(onBox(expire))
  add('delete', 'delete it and its data')
    .argument('<identity>', whichIdentity)
    .option('--yes', 'do not ask for confirmation', false)
    .action(onBox(remove))
}

async function list(box: Box): Promise<Printed> {
  const all = await everyOne<ReducedIdentity>(box, '/v1/identities')
  const rows = all.map(({ id, name, email, phone_number, status }) => [id, name, email, phone_number ?? '', status])
  return [all, table(['ID', 'NAME', 'ADDRESS', 'PHONE', 'STATUS'], rows)]
}

async function show(box: Box, who: string): Promise<Printed> {
  const whole = await wholeOf(box, who)
  const { storage, metadata, can_send_outside: _, cannot_send_outside_reason: reason, ...rest } = whole
  const { used, limit, media, trash } = storage
  const kept = `${bytes(used)} of mail${limit === null ? '' : ` of ${bytes(limit)}`}, ${bytes(media)} of pictures, ${bytes(trash)} in the trash`
  const rows = [
    ...Object.entries({ ...rest, expires_at: rest.expires_at ?? 'never' }).map(([name, value]) => [name, value]),
    ['storage', kept],
    ['mail outside', reason ?? 'yes'],
  ]
  if (Object.keys(metadata).length > 0) rows.push(['metadata', JSON.stringify(metadata)])
  return [whole, rows.map(([name, value]) => `${name!.padEnd(14)}${value}`).join('\n')]
}

interface NewIdentity {
  username?: string
  domain?: string
  phone?: string | true
  expiresAt?: string
}

async function create(box: Box, name: string | undefined, { username, domain, phone, expiresAt }: NewIdentity): Promise<Printed> {
  const made = await box.call<Whole>('POST', '/v1/identities', {
    name,
    email_username: username,
    email_domain: domain,
    expires_at: expiresAt,
    ...(phone === undefined ? {} : { provision_phone: true }),
    ...(typeof phone === 'string' ? { phone_country: phone } : {}),
  })
  const number = made.phone_number === undefined ? '' : `, and the number ${made.phone_number}`
  return [made, `${made.name} was created: ${made.id}, with the address ${made.email}${number}.`]
}

function turn(status: 'active' | 'suspended'): (box: Box, who: string) => Promise<Printed> {
  const words = status === 'active' ? 'is active.' : 'is suspended: mail to it is deferred, and it cannot send.'
  return async (box, who) => {
    const { id } = await identityNamed(box, who)
    const changed = await box.call<Identity>('PATCH', `/v1/identities/${id}`, { status })
    return [changed, `${changed.name} (${changed.email}) ${words}`]
  }
}

async function expire(box: Box, who: string, time: string): Promise<Printed> {
  const { id } = await identityNamed(box, who)
  const changed = await box.call<Identity>('PATCH', `/v1/identities/${id}`, { expires_at: time === 'never' ? null : time })
  const when = changed.expires_at === null ? 'will not be deleted by itself.' : `will be deleted at ${changed.expires_at}.`
  return [changed, `${changed.name} (${changed.email}) ${when}`]
}

async function remove(box: Box, who: string, { yes }: { yes: boolean }): Promise<Printed> {
  const { id, name, email } = await identityNamed(box, who)
  if (!yes) await confirmed(`Delete ${name} (${email})? This also deletes ${await deletedData(box, id)}.`)
  const gone = await box.call('DELETE', `/v1/identities/${id}`)
  return [gone, `${name} (${email}) was deleted. Its address stays reserved; mail to it is rejected.`]
}

async function deletedData(box: Box, id: string): Promise<string> {
  const { storage, phone_number } = await wholeOf(box, id)
  const at = `/v1/identities/${id}`
  // from this count on, “or more” is shown
  const maxCounted = 1000
  const count = async (path: string, one: string, many: string): Promise<string[]> => {
    const { length } = await everyOne(box, `${at}/${path}`, maxCounted)
    if (length === 0) return []
    return [length >= maxCounted ? `${maxCounted} ${many} or more` : `${length} ${length === 1 ? one : many}`]
  }
  const parts = [
    ...(await count('emails?direction=all', 'e-mail', 'e-mails')),
    ...(await count('sms', 'text message', 'text messages')),
    ...(await count('cards', 'card', 'cards')),
    ...(await count('logins', 'login', 'logins')),
    ...(await count('totp', 'one-time password', 'one-time passwords')),
    ...(phone_number === undefined ? [] : [`the number ${phone_number}`]),
    ...(storage.trash > 0 ? ['its trash'] : []),
  ]
  return ['its address permanently', ...parts].join(', ')
}

async function wholeOf(box: Box, who: string): Promise<Whole> {
  const { id } = await identityNamed(box, who)
  return box.call<Whole>('GET', `/v1/identities/${id}`)
}

/** `pillarbox reputation recount`. Throws a sentence when there is no box, it is running, or the beginning of its log was pruned. */
export function addReputationCommand(program: Command): void {
  const recounting = program
    .command('reputation')
    .description('reputation of identities')
    .command('recount')
    .description('recount from the event log, and correct differences; the box must be stopped')
  ofBox(recounting, { account: false }).action(recountReputations)
}

async function recountReputations(options: BoxOptions): Promise<void> {
  const counted = await opened(options, (app) => app.recountReputations())
  const { identities, corrected } = counted
  const outcome = corrected === 0 ? 'All counts were correct.' : `${corrected} had wrong counts, which were corrected.`
  say(options, counted, `The log has events of ${identities} identities. ${outcome}`)
}
