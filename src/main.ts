#!/usr/bin/env -S node --max-semi-space-size=16 --heap-growing-percent=100
import './runtime.ts'
import { Command } from 'commander'
import { addAccountCommand } from './commands/account.ts'
import { addAuditCommand } from './commands/audit.ts'
import { addBackupCommand } from './commands/backup/backup.ts'
import { addCertificateCommand } from './commands/certificate.ts'
import { addCompletionCommand } from './commands/docs/shells.ts'
import { addConfigCommand } from './commands/config.ts'
import { addDocsCommand } from './commands/docs/docs.ts'
import { addDoctorCommand } from './commands/doctor.ts'
import { addDomainCommand } from './commands/domain.ts'
import { addHoldsCommand } from './commands/holds.ts'
import { addPeopleCommand } from './commands/people.ts'
import { addInitCommand } from './commands/init/init.ts'
import { addExportCommand } from './commands/export.ts'
import { addImportCommand } from './commands/import.ts'
import { addKeyCommand } from './commands/key.ts'
import { addListenCommand } from './commands/listen.ts'
import { addLogCommand } from './commands/log/log.ts'
import { addMcpCommand } from './commands/mcp.ts'
import { addReadyCommand } from './commands/support/ready.ts'
import { exits, mustBeKnown, refuse, unread, usageError } from './commands/support/refuse.ts'
import { addReloadCommand } from './commands/reload.ts'
import { addReputationCommand } from './commands/reputation.ts'
import { addRestoreCommand } from './commands/backup/restore.ts'
import { addServeCommand } from './commands/serve.ts'
import { addVerifyCommand } from './commands/backup/verify.ts'
import { addIdentityCommand } from './commands/identity.ts'
import { addQueueCommand } from './commands/queue.ts'
import { addSendCommand } from './commands/send.ts'
import { addStatusCommand } from './commands/status.ts'
import { nameProcess } from './core/service-unit.ts'
import { version } from './version.ts'

nameProcess('pillarbox')

const program = new Command('pillarbox')
  .description('Mail server and API that give software agents their own identities')
  .version(version)
  // before the commands, which inherit both
  .configureOutput({ outputError: (text, write) => write(usageError(text)) })
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : exits.usage))
addServeCommand(program)
addInitCommand(program)
addConfigCommand(program)
addKeyCommand(program)
addReputationCommand(program)
addReloadCommand(program)
addAccountCommand(program)
addPeopleCommand(program)
addAuditCommand(program)
addDocsCommand(program)
addDomainCommand(program)
addDoctorCommand(program)
addReadyCommand(program)
addExportCommand(program)
addImportCommand(program)
addBackupCommand(program)
addVerifyCommand(program)
addRestoreCommand(program)
addCertificateCommand(program)
addIdentityCommand(program)
addSendCommand(program)
addMcpCommand(program)
addQueueCommand(program)
addHoldsCommand(program)
addListenCommand(program)
addLogCommand(program)
addStatusCommand(program)
addCompletionCommand(program)
unread(process.stdout)
mustBeKnown(program, process.argv.slice(2))
await program.parseAsync().catch(refuse)
