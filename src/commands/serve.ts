import { performance } from 'node:perf_hooks'
import type { Command } from 'commander'
import type { App } from '../app.ts'
import { type Config, controlSocket, loadConfig } from '../config.ts'
import { collect } from '../core/memory.ts'
import { createLog, isReadByJournal, type Log, standardOutput, written } from '../core/log.ts'
import { isNoted } from '../store/postgres/note.ts'
import { foreignOwner } from './support/owner.ts'
import { lacks } from './support/ready.ts'
import { Failure, refuse } from './support/refuse.ts'
import { print } from './support/say.ts'
import { setTimeout as pause } from 'node:timers/promises'
import { DatabaseAway, InUse } from '../core/fault.ts'

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
  const open = (): Promise<App> => App.open(config, log, undefined, undefined, load)
  const app = await onceDatabaseIsThere(config, log, () => inTurn(controlSocket(config), log, open)).catch(refuse)
  const isStopping = onSignals(app, log)
  const { firstKey } = await app.start().catch((error: unknown) => refuse(error, 1))
  collectOnceIdle()
  if (firstKey === null) return
  try {
    await print(welcome(app, config, firstKey, await app.setupLink()))
    await app.firstKeyShown()
  } catch (error) {
    // the next start prints it
    if (!isStopping()) throw error
  }
}

/** Returns whether the box is stopping. */
function onSignals(app: App, log: Log): () => boolean {
  let stopping = false
  const exit = (status: number): void => void written(log).then(() => process.exit(status))
  const stop = (signal: string): void => {
    if (stopping) return exit(1)
    stopping = true
    log.info({ signal }, 'stopping')
    app.stop().then(
      () => exit(0),
      (error: unknown) => {
        log.fatal({ err: error }, 'shutdown failed')
        exit(1)
      },
    )
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  // the log contains the reason of a refusal
  process.on('SIGHUP', () => void app.reread().catch(() => undefined))
  const crash = (error: unknown): void => {
    log.fatal({ err: error }, 'uncaught error: the box stops so that no data is lost')
    if (stopping) return exit(1)
    stopping = true
    setTimeout(() => exit(1), 5000).unref()
    app.stop().then(
      () => exit(1),
      () => exit(1),
    )
  }
  process.on('uncaughtException', crash)
  process.on('unhandledRejection', crash)
  return () => stopping
}

/** Milliseconds after which it is looked whether the box is idle. */
const settled = 3000

/** The part of that time for which an idle box works. */
const idle = 0.02

/**
 * Collects the garbage of the start once the box has nothing to do. This frees a sixth of the memory, and blocks the main thread for 50 to 200 ms, for a second
 * where much is going on.
 */
function collectOnceIdle(before = performance.eventLoopUtilization()): void {
  setTimeout(() => {
    const now = performance.eventLoopUtilization()
    if (performance.eventLoopUtilization(now, before).utilization < idle) collect(true)
    else collectOnceIdle(now)
  }, settled).unref()
}

/** How long the start of a box waits for a command that has locked its files, and the retry interval; in milliseconds. */
const lockTimeout = 60_000
const retryInterval = 250

/**
 * Opens a box whose files may be locked for a moment: by a command on a stopped box, or by a box that is stopping. A start at that time waits. Throws
 * immediately if a box runs there, and Failure after the timeout.
 */
async function inTurn<T>(socket: string | undefined, log: Log, open: () => Promise<T>): Promise<T> {
  const until = performance.now() + lockTimeout
  for (let warned = false; ; warned = true) {
    try {
      return await open()
    } catch (error) {
      if (!(error instanceof InUse) || (socket !== undefined && (await runs(socket)))) throw error
      if (performance.now() >= until) throw new Failure(error.message, 'in_use')
    }
    if (!warned) log.warn('another process has locked the files of the box: waiting')
    await pause(retryInterval)
  }
}

/**
 * How long the start of a box waits for its database server, in milliseconds, and the retry interval. The unit of systemd allows five starts in ten minutes:
 * none that waits as long is one too many.
 */
const serverTimeout = 125_000
const serverInterval = 1000

/** Opens a box whose database server may start after it, as after a power cut. Of a new box the settings may be wrong: it does not wait. */
async function onceDatabaseIsThere<T>(config: Config, log: Log, open: () => Promise<T>): Promise<T> {
  const until = performance.now() + serverTimeout
  const { url } = config.database
  const known = url !== undefined && isNoted(config.data_dir, url)
  for (let warned = false; ; warned = true) {
    try {
      return await open()
    } catch (error) {
      if (!(error instanceof DatabaseAway) || !known || performance.now() >= until) throw error
      if (!warned) log.warn({ why: error.message }, 'the database cannot be used yet: waiting')
    }
    await pause(serverInterval)
  }
}

/** True if a started box, not only one opened for a command, answers there. */
async function runs(socket: string): Promise<boolean> {
  const lacking = await lacks(socket)
  return lacking === undefined || (lacking.failing.length > 0 && !lacking.failing.includes('http'))
}

/**
 * The output of the first start: the key, once, a link to the page, and three commands to paste. A key that the operator provided is not
 * printed, as the output may be logged.
 */
export function welcome(app: App, config: Config, key: string, setupLink: string | null): string {
  const { address: ip, port: apiPort } = app.httpAddresses.plain!
  // the plain port on this machine needs no trusted certificate
  const url = `http://${ip === '::' || ip === '0.0.0.0' ? '127.0.0.1' : ip.includes(':') ? `[${ip}]` : ip}:${apiPort}`
  const { host, port } = app.smtpAddresses[0]!
  const smtp = `${host.includes(':') ? `[${host}]` : host}:${port}`
  const address = `ada@${config.mail.domain}`
  const mail = `From: You <you@sender.test>\\r\\nTo: ${address}\\r\\nSubject: Hello Ada\\r\\n\\r\\nYour sign-in code is 493817.\\r\\n`
  const { explanation, fix } = app.sendingRights()
  const { protocol, hostname } = new URL(app.publicUrl)
  // the URL for browsers
  const secure = protocol === 'https:' || /^(?:127\.[\d.]+|\[::1\]|(?:.+\.)?localhost)$/.test(hostname)
  const page = `To use the web page, set your password here (the link can be used once, within 24 hours):\n\n${setupLink}\n\n${secure ? '' : 'The page requires https, or localhost, and public_url is neither: set http.tls or put a reverse proxy with TLS in front, and public_url to https.\n\n'}`
  return `
Pillarbox is running.

  API   ${app.publicUrl}  (reference at ${app.publicUrl}/docs)
  SMTP  ${smtp}  for ${config.mail.domain}

Sending: ${explanation}${fix === null ? '' : `\n${fix}`}

${config.bootstrap_key === undefined ? 'Your API key, shown only once. Store it safely:' : 'Your API key is the bootstrap key you set:'}

export KEY=${config.bootstrap_key === undefined ? `'${key}'` : '"$PILLARBOX_BOOTSTRAP_KEY"'}

${setupLink === null ? '' : page}Then try these three:

# 1. create an identity
ID=$(curl -sS ${url}/v1/identities -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{"name":"Ada"}' | sed 's/.*"id":"\\([^"]*\\)".*/\\1/'); echo "$ID"

# 2. send it a message
printf '${mail}' | curl -sS smtp://${smtp} --mail-from you@sender.test --mail-rcpt ${address} -T - && echo sent

# 3. read it
curl -sS "${url}/v1/identities/$ID/emails" -H "Authorization: Bearer $KEY"; echo

`
}
