import type { Command } from 'commander'
import { Config, loadConfig } from '../config.ts'
import { example, jsonSchema } from '../config/documents.ts'
import { say, withJson } from './say.ts'

/** `pillarbox config check|schema|example`. `check` throws ConfigError, with every problem in its message. */
export function addConfigCommand(program: Command): void {
  const config = program.command('config').description('check the configuration, or print what one may look like')
  const check = config
    .command('check')
    .description('read the configuration as serve would, and name every fault with file, line and column')
    .option('-c, --config <file>', 'the file to read; else PILLARBOX_CONFIG, else ./pillarbox.yaml')
  withJson(check).action(async (options: { config?: string; json?: boolean }) => {
    await loadConfig({ file: options.config, env: process.env, cwd: process.cwd() })
    say(options, { good: true }, 'The configuration is good.')
  })
  config
    .command('schema')
    .description('print the JSON Schema of the file, for editors')
    .action(() => {
      process.stdout.write(jsonSchema(Config))
    })
  config
    .command('example')
    .description('print every setting with its default and what it is for')
    .action(() => {
      process.stdout.write(example(Config))
    })
}
