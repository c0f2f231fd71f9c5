#!/usr/bin/env -S node --max-semi-space-size=16
import './runtime.ts'
import { Command } from 'commander'
import { version } from './app.ts'
import { addBackupCommand } from './commands/backup.ts'
import { addAccountCommand } from './commands/account.ts'
import { addConfigCommand } from './commands/config.ts'
import { addDocsCommand } from './commands/docs.ts'
import { addDomainCommand } from './commands/domain.ts'
import { addExportCommand } from './commands/export.ts'
import { addImportCommand } from './commands/import.ts'
import { addKeyCommand } from './commands/key.ts'
import { exits, refuse } from './commands/refuse.ts'
import { addRestoreCommand } from './commands/restore.ts'
import { addReputationCommand } from './commands/reputation.ts'
import { addServeCommand } from './commands/serve.ts'
import { addVerifyCommand } from './commands/verify.ts'

const program = new Command('pillarbox')
  .description('One box that gives software agents an identity of their own')
  .version(version)
  // before the commands, which inherit it
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : exits.usage))
addServeCommand(program)
addConfigCommand(program)
addKeyCommand(program)
addReputationCommand(program)
addAccountCommand(program)
addDocsCommand(program)
addDomainCommand(program)
addExportCommand(program)
addImportCommand(program)
addBackupCommand(program)
addVerifyCommand(program)
addRestoreCommand(program)
await program.parseAsync().catch(refuse)
