import type { Command } from 'commander'
import type { App } from '../app.ts'
import { type Config, controlSocket, loadConfig } from '../config.ts'
import { createLog, isReadByJournal, type Log, standardOutput } from '../core/log.ts'
import { foreignOwner } from './support/owner.ts'
import { refuse } from './support/refuse.ts'
import { inTurn } from './support/turn.ts'
import { welcome } from './support/welcome.ts'

export function addServeCommand(program: Command): void {
  program
    .command('serve', { isDefault: true })
    .description('run the box until it is stopped; SIGHUP reloads the settings')
    .option('-c, --config <file>', 'settings file (default: $PILLARBOX_CONFIG, else ./pillarbox.yaml if there is one)')
    .action(serve)
}

async function serve({ config: file }: { config?: string }): Promise<void> {
  process.umask(0o077)
  const load = (): Promise<Config> => loadConfig({ file, env: process.env, cwd: process.cwd() })
  const config = await load().catch(refuse)
  const owner = foreignOwner(config.data_dir)
  if (owner !== undefined) {
    refuse(
      new Error(`The box in ${config.data_dir} belongs to user id ${owner}: start it as that user (systemctl start pillarbox).`),
    )
  }
  const log = createLog(config.log, standardOutput({ journal: isReadByJournal(process.env['JOURNAL_STREAM']) }))
  const { App } = await import('../app.ts')
  const warnLocked = (): void => log.warn('another process has locked the files of the box: waiting')
  const app = await inTurn(controlSocket(config), () => App.open(config, log, undefined, undefined, load), warnLocked).catch(
    refuse,
  )
  onSignals(app, log)
  const { firstKey } = await app.start().catch((error: unknown) => refuse(error, 1))
  if (firstKey === null) return
  await say(welcome(app, config, firstKey, await app.setupLink()))
  await app.firstKeyShown()
}

function onSignals(app: App, log: Log): void {
  let stopping = false
  const stop = (signal: string): void => {
    if (stopping) process.exit(1)
    stopping = true
    log.info({ signal }, 'stopping')
    app.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.fatal({ err: error }, 'shutdown failed')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  // the log contains the reason of a refusal
  process.on('SIGHUP', () => void app.reread().catch(() => undefined))
  const crash = (error: unknown): void => {
    log.fatal({ err: error }, 'uncaught error: the box stops so that no data is lost')
    if (stopping) process.exit(1)
    stopping = true
    setTimeout(() => process.exit(1), 5000).unref()
    app.stop().then(
      () => process.exit(1),
      () => process.exit(1),
    )
  }
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', crash)
}

function say(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()))
  })
}
