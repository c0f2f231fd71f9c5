import type { Command } from 'commander'
import { type Box, type BoxOptions, ofBox, withBox } from './support/box.ts'
import { Failure } from './support/refuse.ts'
import { everyOne } from './support/found.ts'
import { askPassword } from './support/prompt.ts'
import { say, table, withJson } from './support/say.ts'

type Options = BoxOptions & { json?: boolean }

interface Account {
  id: string
  name: string
  email: string | null
  totp_enabled: boolean
}

/** `pillarbox account list|add|password|setup-link`. */
export function addAccountCommand(program: Command): void {
  const account = program.command('account').description('accounts of the box')
  const add = (name: string, words: string): Command => withJson(ofBox(account.command(name).description(words)))
  add('list', 'list all accounts and their sign-in addresses').action(list)
  add('add', 'add an account; its password is prompted for, or read from standard input')
    .requiredOption('--name <name>', 'name of the account')
    .requiredOption('--email <address>', 'address used to sign in')
    .action(addOne)
  add('password', 'set a new password and end all sessions; it is prompted for, or read from standard input')
    .argument('<account>', 'its id, name or e-mail address')
    .option('--email <address>', 'new address used to sign in')
    .option('--remove-second-factor', 'remove the second factor, if the app and the recovery codes are lost', false)
    .action(setPassword)
  add('setup-link', 'create a link to set the first password, valid once and for 24 hours')
    .argument('[account]', "its id or name (default: the operator's account)")
    .action(makeLink)
}

async function list(options: Options): Promise<void> {
  await withBox(options, async (box) => {
    const accounts = await everyOne<Account>(box, '/v1/accounts')
    const rows = accounts.map(({ id, name, email, totp_enabled }) => [
      id,
      name,
      email ?? 'no password yet',
      totp_enabled ? 'second factor' : '',
    ])
    say(options, accounts, table(['ID', 'NAME', 'SIGNS IN WITH', ''], rows))
  })
}

async function addOne({ name, email, ...options }: Options & { name: string; email: string }): Promise<void> {
  await withBox(options, async (box) => {
    const made = await box.call<Account>('POST', '/v1/accounts', { name, email, password: await askPassword() })
    say(options, made, `${made.name} was added: ${made.id}. It signs in with ${made.email}.`)
  })
}

interface NewPassword extends Options {
  email?: string
  removeSecondFactor: boolean
}

async function setPassword(who: string, { email, removeSecondFactor, ...options }: NewPassword): Promise<void> {
  await withBox(options, async (box) => {
    const { id } = await named(box, who)
    const password = await askPassword()
    const input = { password, remove_second_factor: removeSecondFactor, ...(email === undefined ? {} : { email }) }
    const account = await box.call<Account>('POST', `/v1/accounts/${id}/password`, input)
    say(options, account, `The password of ${account.name} (${account.email}) was changed, and all its sessions ended.`)
  })
}

async function makeLink(who: string | undefined, options: Options): Promise<void> {
  await withBox(options, async (box) => {
    const { id } = who === undefined ? (await everyOne<Account>(box, '/v1/accounts'))[0]! : await named(box, who)
    const made = await box.call<{ url: string; expires_at: string }>('POST', `/v1/accounts/${id}/setup-link`, {})
    say(options, made, `${made.url}\n\nIt can be used once, until ${made.expires_at}.`)
  })
}

async function named(box: Box, who: string): Promise<Account> {
  const wanted = who.normalize('NFC').toLowerCase()
  const accounts = await everyOne<Account>(box, '/v1/accounts')
  const found = accounts.find((one) =>
    [one.id, one.name, one.email].some((name) => name?.normalize('NFC').toLowerCase() === wanted),
  )
  if (!found)
    throw new Failure(`The box has no account ${who}. List the accounts: pillarbox account list`, 'not_found', 'account')
  return found
}
