#!/usr/bin/env -S node --no-allocation-site-pretenuring --max-semi-space-size=16 --heap-growing-percent=50
import './runtime.ts'
import { Command } from 'commander'
import { exits, mustBeKnown, refuse, unread, usageError } from './commands/support/refuse.ts'
import { nameProcess } from './core/service-unit.ts'
import { version } from './version.ts'

/** All commands, in the order of the help. One that is called is loaded alone: all of them take longer to load than most take to run. */
const commands: Record<string, () => Promise<(program: Command) => void>> = {
  serve: async () => (await import('./commands/serve.ts')).addServeCommand,
  init: async () => (await import('./commands/init/init.ts')).addInitCommand,
  config: async () => (await import('./commands/config.ts')).addConfigCommand,
  key: async () => (await import('./commands/key.ts')).addKeyCommand,
  reputation: async () => (await import('./commands/identity.ts')).addReputationCommand,
  reload: async () => (await import('./commands/config.ts')).addReloadCommand,
  account: async () => (await import('./commands/account.ts')).addAccountCommand,
  people: async () => (await import('./commands/people.ts')).addPeopleCommand,
  audit: async () => (await import('./commands/audit.ts')).addAuditCommand,
  docs: async () => (await import('./commands/docs/docs.ts')).addDocsCommand,
  domain: async () => (await import('./commands/domain.ts')).addDomainCommand,
  doctor: async () => (await import('./commands/doctor.ts')).addDoctorCommand,
  ready: async () => (await import('./commands/support/ready.ts')).addReadyCommand,
  export: async () => (await import('./commands/export.ts')).addExportCommand,
  import: async () => (await import('./commands/import.ts')).addImportCommand,
  backup: async () => (await import('./commands/backup/backup.ts')).addBackupCommand,
  verify: async () => (await import('./commands/backup/verify.ts')).addVerifyCommand,
  restore: async () => (await import('./commands/backup/restore.ts')).addRestoreCommand,
  move: async () => (await import('./commands/backup/move.ts')).addMoveCommand,
  certificate: async () => (await import('./commands/certificate.ts')).addCertificateCommand,
  identity: async () => (await import('./commands/identity.ts')).addIdentityCommand,
  send: async () => (await import('./commands/send.ts')).addSendCommand,
  mcp: async () => (await import('./commands/mcp.ts')).addMcpCommand,
  queue: async () => (await import('./commands/queue.ts')).addQueueCommand,
  holds: async () => (await import('./commands/holds.ts')).addHoldsCommand,
  listen: async () => (await import('./commands/listen.ts')).addListenCommand,
  log: async () => (await import('./commands/log/log.ts')).addLogCommand,
  status: async () => (await import('./commands/status.ts')).addStatusCommand,
  completion: async () => (await import('./commands/docs/shells.ts')).addCompletionCommand,
}

/** The commands that tell of all others. */
const tellsOfAll = ['completion', 'docs']

nameProcess('pillarbox')

const program = new Command('pillarbox')
  .description('Mail server and API that give software agents their own identities')
  .version(version)
  // before the commands, which inherit both
  .configureOutput({ outputError: (text, write) => write(usageError(text)) })
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : exits.usage))
const called = process.argv[2] ?? 'serve'
const alone = Object.hasOwn(commands, called) && !tellsOfAll.includes(called)
for (const load of alone ? [commands[called]!] : Object.values(commands)) (await load())(program)
unread(process.stdout)
mustBeKnown(program, process.argv.slice(2))
await program.parseAsync().catch(refuse)
