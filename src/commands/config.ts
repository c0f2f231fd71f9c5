import type { Command } from 'commander'
import { Config, ConfigError, loadConfig } from '../config.ts'
import { example, jsonSchema } from '../config/documents.ts'
import type { Reloaded } from '../ops/status/model.ts'
import { type BoxOptions, ofBox, runningBox } from './support/box.ts'
import { actAsBoxUser } from './support/owner.ts'
import { Failure } from './support/refuse.ts'
import { say, withJson } from './support/say.ts'

/** `pillarbox config check|schema|example`. `check` throws ConfigError, with every problem in its message. */
export function addConfigCommand(program: Command): void {
  const config = program.command('config').description('check the configuration, or print an example or its schema')
  const check = config
    .command('check')
    .description(
      'validate the configuration as serve reads it, as root also for the service user, and print every error with file, line and column',
    )
    .option('-c, --config <file>', 'the file to read (default: $PILLARBOX_CONFIG, else ./pillarbox.yaml)')
  withJson(check).action(async (options: { config?: string; json?: boolean }) => {
    const sources = { file: options.config, env: process.env, cwd: process.cwd() }
    const { data_dir } = await loadConfig(sources)
    const user = actAsBoxUser(data_dir)
    if (user === undefined) return say(options, { good: true }, 'The configuration is valid.')
    // root may read every configured file, but possibly not the box's user
    await loadConfig(sources).catch((error: unknown) => {
      if (!(error instanceof ConfigError)) throw error
      throw new ConfigError(error.problems, { heading: `For user ${user.uid}, which runs the box:` })
    })
    say(options, { good: true, user: user.uid }, `The configuration is valid, also for user ${user.uid}, which runs the box.`)
  })
  config
    .command('schema')
    .description('print the JSON Schema of the file, for editors')
    .action(() => {
      process.stdout.write(jsonSchema(Config))
    })
  config
    .command('example')
    .description('print every setting with its default and description')
    .action(() => {
      process.stdout.write(example(Config))
    })
}

/** `pillarbox reload`: exit status 1 when the box does not run, or rejects the settings and keeps the former ones. */
export function addReloadCommand(program: Command): void {
  const reload = program
    .command('reload')
    .description('reload the settings of the running box; invalid ones change nothing, with exit status 1')
  ofBox(reload).action(async (options: BoxOptions) => {
    const box = await runningBox(options)
    if (!box) throw new Failure('The box is not running: it reads its settings when it starts.', 'not_running')
    const { reloaded, restart } = await box.call<Reloaded>('POST', '/v1/reload')
    const lines = [
      reloaded.length > 0 ? `In effect now: ${reloaded.join(', ')}.` : 'No change takes effect without a restart.',
      ...(restart.length > 0 ? [`In effect after a restart: ${restart.join(', ')}.`] : []),
    ]
    say(options, { reloaded, restart }, lines.join('\n'))
  })
}
