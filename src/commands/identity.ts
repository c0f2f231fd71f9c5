import type { Command } from 'commander'
import { type Box, type BoxOptions, ofBox, withBox } from './support/box.ts'
import { everyOne, type Found, identityNamed } from './support/found.ts'
import { confirmed } from './support/prompt.ts'
import { bytes, say, table, withJson } from './support/say.ts'

type Options = BoxOptions & { json?: boolean }

interface Whole extends Found {
  date_of_birth: string
  metadata: Record<string, unknown>
  storage: { used: number; limit: number | null; media: number; trash: number }
  updated_at: string
}

const which = 'its id, name or e-mail address'

/** `pillarbox identity list|show|create|suspend|activate|delete`. */
export function addIdentityCommand(program: Command): void {
  const identity = program.command('identity').description('identities of an account')
  const add = (name: string, words: string): Command => withJson(ofBox(identity.command(name).description(words)))
  add('list', 'list all identities, newest first').action(list)
  add('show', 'show one identity and its storage').argument('<identity>', which).action(show)
  add('create', 'create an identity with its own address')
    .argument('[name]', 'its name (default: generated)')
    .option('--username <local part>', 'local part of its address (default: derived from the name)')
    .option('--domain <domain>', 'a verified domain of the account (default: mail.domain)')
    .option('--phone [country]', 'provision a phone number, in this country')
    .action(create)
  add('suspend', 'suspend it: it can neither receive nor send').argument('<identity>', which).action(turn('suspended'))
  add('activate', 'reactivate a suspended identity').argument('<identity>', which).action(turn('active'))
  add('delete', 'delete it and its data')
    .argument('<identity>', which)
    .option('--yes', 'do not ask for confirmation', false)
    .action(remove)
}

async function list(options: Options): Promise<void> {
  await withBox(options, async (box) => {
    const all = await everyOne<Found>(box, '/v1/identities')
    const rows = all.map(({ id, name, email, phone_number = '', status }) => [id, name, email, phone_number, status])
    say(options, all, table(['ID', 'NAME', 'ADDRESS', 'PHONE', 'STATUS'], rows))
  })
}

async function show(who: string, options: Options): Promise<void> {
  await withBox(options, async (box) => {
    const whole = await wholeOf(box, who)
    const { storage, metadata, ...rest } = whole
    const { used, limit, media, trash } = storage
    const kept = `${bytes(used)} of mail${limit === null ? '' : ` of ${bytes(limit)}`}, ${bytes(media)} of pictures, ${bytes(trash)} in the trash`
    const rows = [...Object.entries(rest).map(([name, value]) => [name, value]), ['storage', kept]]
    if (Object.keys(metadata).length > 0) rows.push(['metadata', JSON.stringify(metadata)])
    say(options, whole, rows.map(([name, value]) => `${name!.padEnd(14)}${value}`).join('\n'))
  })
}

interface NewIdentity extends Options {
  username?: string
  domain?: string
  phone?: string | true
}

async function create(name: string | undefined, { username, domain, phone, ...options }: NewIdentity): Promise<void> {
  await withBox(options, async (box) => {
    const made = await box.call<Whole>('POST', '/v1/identities', {
      ...(name === undefined ? {} : { name }),
      ...(username === undefined ? {} : { email_username: username }),
      ...(domain === undefined ? {} : { email_domain: domain }),
      ...(phone === undefined ? {} : { provision_phone: true }),
      ...(typeof phone === 'string' ? { phone_country: phone } : {}),
    })
    const number = made.phone_number === undefined ? '' : `, and the number ${made.phone_number}`
    say(options, made, `${made.name} was created: ${made.id}, with the address ${made.email}${number}.`)
  })
}

function turn(status: 'active' | 'suspended'): (who: string, options: Options) => Promise<void> {
  const words = status === 'active' ? 'is active.' : 'is suspended: mail to it is deferred, and it cannot send.'
  return (who, options) =>
    withBox(options, async (box) => {
      const { id } = await identityNamed(box, who)
      const changed = await box.call<Whole>('PATCH', `/v1/identities/${id}`, { status })
      say(options, changed, `${changed.name} (${changed.email}) ${words}`)
    })
}

async function remove(who: string, { yes, ...options }: Options & { yes: boolean }): Promise<void> {
  await withBox(options, async (box) => {
    const { id, name, email } = await identityNamed(box, who)
    if (!yes) await confirmed(`Delete ${name} (${email})? This also deletes ${await deletedData(box, id)}.`)
    const gone = await box.call('DELETE', `/v1/identities/${id}`)
    say(options, gone, `${name} (${email}) was deleted. Its address stays reserved; mail to it is rejected.`)
  })
}

/** The data deleted with an identity, in words. */
async function deletedData(box: Box, id: string): Promise<string> {
  const { storage, phone_number } = await wholeOf(box, id)
  const at = `/v1/identities/${id}`
  // larger counts are shown as “more than”
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
