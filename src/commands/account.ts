import type { Command } from 'commander'
import type { Account, Person, SetupLink } from '../accounts/model.ts'
import { type Box, everyOne, ofBox, onBox, type Printed } from './support/box.ts'
import { Failure } from './support/refuse.ts'
import { askPassword } from './support/prompt.ts'
import { table } from './support/say.ts'

export function addAccountCommand(program: Command): void {
  const account = program.command('account').description('accounts of the box')
  const add = (name: string, words: string): Command => ofBox(account.command(name).description(words))
  add('list', 'list all accounts and their sign-in addresses').action(onBox(list))
  add('add', 'add an account; its password is prompted for, or read from standard input')
    .requiredOption('--name <name>', 'name of the account')
    .requiredOption('--email <address>', 'address used to sign in')
    .action(onBox(addOne))
  add('password', 'set a new password of a person and end their sessions; it is prompted for, or read from standard input')
    .argument(
      '<account>',
      'id or e-mail address of a person of the account, or id, name or address of an account, for its first owner',
    )
    .option('--email <address>', 'new address used to sign in')
    .option('--remove-second-factor', 'remove the second factor, if the app and the recovery codes are lost', false)
    .action(onBox(setPassword))
  add('setup-link', 'create a link to set the first password, valid once and for 24 hours')
    .argument('[account]', "its id or name (default: the operator's account)")
    .action(onBox(makeLink))
  add('stop', 'stop an account: its keys do nothing, and nothing is sent; mail is received').action(onBox(turn('stop')))
  add('resume', 'resume an account that was stopped').action(onBox(turn('resume')))
}

async function list(box: Box): Promise<Printed> {
  const accounts = await everyOne<Account>(box, '/v1/accounts')
  const rows = accounts.map(({ id, name, email, totp_enabled, stopped_at }) => {
    const notes = [totp_enabled ? 'second factor' : '', stopped_at === null ? '' : `stopped since ${stopped_at}`]
    return [id, name, email ?? 'no password yet', notes.filter(Boolean).join(', ')]
  })
  return [accounts, table(['ID', 'NAME', 'SIGNS IN WITH', ''], rows)]
}

async function addOne(box: Box, { name, email }: { name: string; email: string }): Promise<Printed> {
  const made = await box.call<Account>('POST', '/v1/accounts', { name, email, password: await askPassword() })
  return [made, `${made.name} was added: ${made.id}. It signs in with ${made.email}.`]
}

interface NewPassword {
  email?: string
  removeSecondFactor: boolean
}

async function setPassword(box: Box, who: string, { email, removeSecondFactor }: NewPassword): Promise<Printed> {
  const people = await everyOne<Person>(box, '/v1/people')
  const id = (
    people.find(({ id: own, email: address }) => own === who || folded(address) === folded(who)) ?? (await named(box, who))
  ).id
  const password = await askPassword()
  const input = { password, email, remove_second_factor: removeSecondFactor }
  const account = await box.call<Account>('POST', `/v1/accounts/${id}/password`, input)
  return [account, `The password of ${account.name} (${account.email}) was changed, and all sessions of this person ended.`]
}

async function makeLink(box: Box, who: string | undefined): Promise<Printed> {
  const { id } = who === undefined ? (await everyOne<Account>(box, '/v1/accounts'))[0]! : await named(box, who)
  const made = await box.call<SetupLink>('POST', `/v1/accounts/${id}/setup-link`, {})
  return [made, `${made.url}\n\nIt can be used once, until ${made.expires_at}.`]
}

function turn(how: 'stop' | 'resume'): (box: Box) => Promise<Printed> {
  const words = how === 'stop' ? 'is stopped: its keys do nothing, and nothing is sent.' : 'is resumed.'
  return async (box) => {
    const account = await box.call<Account>('POST', `/v1/account/${how}`)
    return [account, `${account.name} (${account.id}) ${words}`]
  }
}

async function named(box: Box, who: string): Promise<Account> {
  const wanted = folded(who)
  const accounts = await everyOne<Account>(box, '/v1/accounts')
  const found = accounts.find((one) => [one.id, one.name, one.email].some((name) => name !== null && folded(name) === wanted))
  if (!found)
    throw new Failure(`The box has no account ${who}. List the accounts: pillarbox account list`, 'not_found', 'account')
  return found
}

function folded(text: string): string {
  return text.normalize('NFC').toLowerCase()
}
