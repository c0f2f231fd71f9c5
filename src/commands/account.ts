import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { App } from '../app.ts'
import { loadConfig } from '../config.ts'
import { createLog } from '../core/log.ts'
import { askPassword } from './prompt.ts'

interface Where {
  config?: string
}

const settings = [
  '-c, --config <file>',
  'settings file (default: $PILLARBOX_CONFIG, else ./pillarbox.yaml if there is one)',
] as const

/** `pillarbox account list|add|password`, on a stopped box. Throws a sentence, or a Fault, which says what was wrong. */
export function addAccountCommand(program: Command): void {
  const account = program.command('account').description('who may use the box; the box must be stopped')
  account
    .command('list')
    .description('every account, and what its person signs in with')
    .option(...settings)
    .action(list)
  account
    .command('add')
    .description('one more account; its password is asked for, or read from standard input')
    .requiredOption('--name <name>', 'what the account is called')
    .requiredOption('--email <address>', 'what its person signs in with')
    .option(...settings)
    .action(add)
  account
    .command('password')
    .description('another password, which ends all sessions; it is asked for, or read from standard input')
    .argument('<account>', 'its id, name or e-mail address')
    .option('--email <address>', 'what its person signs in with from now on')
    .option('--remove-second-factor', 'for somebody who lost the app and the recovery codes', false)
    .option(...settings)
    .action(setPassword)
}

async function list(where: Where): Promise<void> {
  await withBox(where, async ({ accounts }) => {
    for (const { id, name, email, totp_enabled } of await accounts.list()) {
      const said = email === null ? 'no password yet' : totp_enabled ? `${email}, second factor` : email
      process.stdout.write(`${id}  ${name}  ${said}\n`)
    }
  })
}

async function add({ name, email, ...where }: Where & { name: string; email: string }): Promise<void> {
  await withBox(where, async ({ accounts }) => {
    const { id } = await accounts.add({ name, email, password: await askPassword() })
    process.stdout.write(`${id}  ${name}  ${email}\n`)
  })
}

interface NewPassword extends Where {
  email?: string
  removeSecondFactor: boolean
}

async function setPassword(who: string, { email, removeSecondFactor, ...where }: NewPassword): Promise<void> {
  await withBox(where, async ({ accounts }) => {
    const wish = { who, password: await askPassword(), removeSecondFactor }
    const account = await accounts.setPassword(email === undefined ? wish : { ...wish, email })
    process.stdout.write(`The password of ${account.name} (${account.email}) was changed, and all its sessions ended.\n`)
  })
}

async function withBox({ config: file }: Where, work: (app: App) => Promise<void>): Promise<void> {
  process.umask(0o077)
  const config = await loadConfig({ file, env: process.env, cwd: process.cwd() })
  // opening makes what is not there: a mistaken path must not begin a second box
  if (!existsSync(join(config.data_dir, 'state.json'))) throw new Error(`There is no box in ${config.data_dir}.`)
  const app = await App.open(config, createLog('warn'))
  try {
    await work(app)
  } finally {
    await app.stop()
  }
}
