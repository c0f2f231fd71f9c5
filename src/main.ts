#!/usr/bin/env -S node --max-semi-space-size=16
import './runtime.ts'
import { Command } from 'commander'
import { addAccountCommand } from './commands/account.ts'
import { addConfigCommand } from './commands/config.ts'
import { addDocsCommand } from './commands/docs.ts'
import { addDomainCommand } from './commands/domain.ts'
import { addIdentityCommand } from './commands/identity.ts'
import { addKeyCommand } from './commands/key.ts'
import { addQueueCommand } from './commands/queue.ts'
import { exits, refuse } from './commands/refuse.ts'
import { addReputationCommand } from './commands/reputation.ts'
import { addSendCommand } from './commands/send.ts'
import { addServeCommand } from './commands/serve.ts'
import { addStatusCommand } from './commands/status.ts'
import { version } from './version.ts'

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
addIdentityCommand(program)
addSendCommand(program)
addQueueCommand(program)
addStatusCommand(program)
await program.parseAsync().catch(refuse)
