#!/usr/bin/env -S node --max-semi-space-size=16
import './runtime.ts'
import { Command } from 'commander'
import { version } from './app.ts'
import { addBackupCommand } from './commands/backup.ts'
import { addCertificateCommand } from './commands/certificate.ts'
import { addConfigCommand } from './commands/config.ts'
import { addDocsCommand } from './commands/docs.ts'
import { addDomainCommand } from './commands/domain.ts'
import { addInitCommand } from './commands/init.ts'
import { addKeyCommand } from './commands/key.ts'
import { addReadyCommand } from './commands/ready.ts'
import { exits, refuse } from './commands/refuse.ts'
import { addRestoreCommand } from './commands/restore.ts'
import { addServeCommand } from './commands/serve.ts'
import { addVerifyCommand } from './commands/verify.ts'

const program = new Command('pillarbox')
  .description('One box that gives software agents an identity of their own')
  .version(version)
  // before the commands, which inherit it
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : exits.usage))
addServeCommand(program)
addInitCommand(program)
addConfigCommand(program)
addKeyCommand(program)
addDocsCommand(program)
addDomainCommand(program)
addReadyCommand(program)
addBackupCommand(program)
addVerifyCommand(program)
addRestoreCommand(program)
addCertificateCommand(program)
await program.parseAsync().catch(refuse)
