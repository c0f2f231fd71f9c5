import type { Command } from 'commander'
import { Config, loadConfig } from '../config.ts'
import { example, jsonSchema } from '../config/documents.ts'

/** `pillarbox config check|schema|example`. `check` throws ConfigError, with every problem in its message. */
export function addConfigCommand(program: Command): void {
  const config = program.command('config').description('check the configuration, or print what one may look like')
  config
    .command('check')
    .description('read the configuration as serve would, and name every fault with file, line and column')
    .option('-c, --config <file>', 'the file to read; else PILLARBOX_CONFIG, else ./pillarbox.yaml')
    .action(async (options: { config?: string }) => {
      await loadConfig({ file: options.config, env: process.env, cwd: process.cwd() })
      process.stdout.write('The configuration is good.\n')
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
