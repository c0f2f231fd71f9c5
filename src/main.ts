#!/usr/bin/env -S node --max-semi-space-size=16
import './runtime.ts'
import { Command } from 'commander'
import { version } from './app.ts'
import { addAccountCommand } from './commands/account.ts'
import { addConfigCommand } from './commands/config.ts'
import { addDocsCommand } from './commands/docs.ts'
import { addKeyCommand } from './commands/key.ts'
import { refuse } from './commands/refuse.ts'
import { addReputationCommand } from './commands/reputation.ts'
import { addServeCommand } from './commands/serve.ts'

const program = new Command('pillarbox')
  .description('One box that gives software agents an identity of their own')
  .version(version)
addServeCommand(program)
addConfigCommand(program)
addKeyCommand(program)
addReputationCommand(program)
addAccountCommand(program)
addDocsCommand(program)
await program.parseAsync().catch(refuse)
