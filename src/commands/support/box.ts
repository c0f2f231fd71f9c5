import { createWriteStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { type IncomingMessage, request } from 'node:http'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import { type Config, controlSocket, loadConfig } from '../../config.ts'
import { createLog } from '../../core/log.ts'
import { Failure } from './refuse.ts'
import { actAsOwner, mustBeOpen } from './owner.ts'

/** What every command that speaks with a box takes. */
export interface BoxOptions {
  config?: string
  data?: string
  account?: string
}

/** A box that runs. */
export interface RunningBox {
  /** Makes a call of the API as the operator and answers its JSON. Throws Failure with the API's own sentence. */
  call<Answer>(method: string, path: string, body?: unknown): Promise<Answer>
  /** The same, with octets in place of JSON. */
  read(path: string): Promise<Buffer>
  /** Writes what it answers into a file as it comes: a new one, for its owner only. */
  save(path: string, file: string): Promise<void>
  /** Makes a call whose body is octets, as they come. */
  send<Answer>(path: string, octets: AsyncIterable<Uint8Array>): Promise<Answer>
}

/** The box a command speaks with. */
export interface Box extends RunningBox {
  config: Config
  /** Whether it runs; else it was opened for this command, answers it alone, and neither receives nor sends. */
  running: boolean
}

/** Gives a command the options with which it finds its box. */
export function ofBox(command: Command): Command {
  return command
    .option('-c, --config <file>', 'settings file (default: $PILLARBOX_CONFIG, else ./pillarbox.yaml if there is one)')
    .option('--data <directory>', 'data directory (default: $PILLARBOX_DATA_DIR, else as the settings say)')
    .option('--account <id>', 'the account to act for (default: the first one)')
}

/** The settings of the box that these options name. */
export function settingsOf({ config, data }: BoxOptions): Promise<Config> {
  const env = data === undefined ? process.env : { ...process.env, PILLARBOX_DATA_DIR: data }
  return loadConfig({ file: config, env, cwd: process.cwd() })
}

/**
 * Works with the box these options name: through its own socket while it runs, else by opening its files for as long as `work` takes. Throws
 * a sentence when there is no box, or a process that does not answer holds it.
 */
export async function withBox<T>(options: BoxOptions, work: (box: Box) => Promise<T>): Promise<T> {
  process.umask(0o077)
  const config = await settingsOf(options)
  const socket = controlSocket(config)
  if (socket === undefined) {
    throw new Failure(`The path of ${config.data_dir} is too long for a socket in it: use a shorter data_dir.`)
  }
  mustBeOpen(config.data_dir)
  // opening makes what is not there: a mistaken path must not begin a second box
  if (!holdsBox(config.data_dir)) throw new Failure(`There is no box in ${config.data_dir}.`, 'no_box')
  if (await answers(socket)) return work({ ...boxAt(socket, options), config, running: true })
  actAsOwner(config.data_dir)
  // slow to load, and a running box needs none of it
  const { App } = await import('../../app.ts')
  // what the command answers is alone on standard output
  const app = await App.open(config, createLog('warn', process.stderr))
  try {
    await app.attend()
    return await work({ ...boxAt(socket, options), config, running: false })
  } finally {
    await app.stop()
  }
}

/** Whether there is a box in a directory, whole or not: one of which a file is missing is no empty place. */
export function holdsBox(directory: string): boolean {
  return ['state.json', 'state.json.previous', 'pillarbox.db'].some((name) => existsSync(join(directory, name)))
}

/** The box that these options name, if it runs; nothing is opened when it does not. */
export async function runningBox(options: BoxOptions): Promise<RunningBox | undefined> {
  const socket = controlSocket(await placeOf(options))
  return socket !== undefined && (await answers(socket)) ? boxAt(socket, options) : undefined
}

/** The settings are read only where nothing else says where the data is: systemd shows the secrets among them to the box alone. */
export async function placeOf(options: BoxOptions): Promise<Pick<Config, 'data_dir'>> {
  const data = options.data ?? process.env['PILLARBOX_DATA_DIR']
  return data ? { data_dir: data } : settingsOf(options)
}

function boxAt(socket: string, options: BoxOptions): RunningBox {
  return {
    call: async <Answer>(method: string, path: string, body?: unknown) =>
      JSON.parse((await ask(socket, options.account, method, path, body)).toString()) as Answer,
    read: (path) => ask(socket, options.account, 'GET', path),
    save: async (path, file) =>
      pipeline(await begin(socket, options.account, 'GET', path), createWriteStream(file, { flags: 'wx', mode: 0o600 })),
    send: async <Answer>(path: string, octets: AsyncIterable<Uint8Array>) =>
      JSON.parse((await buffer(await begin(socket, options.account, 'POST', path, octets))).toString()) as Answer,
  }
}

/** Longest that a box may take to say that it is there, in milliseconds. */
const timeout = 10_000

/** Whether a box runs and answers on this socket of its own. Throws Failure when one is there and does not. */
export async function answers(socket: string): Promise<boolean> {
  const signal = AbortSignal.timeout(timeout)
  try {
    await buffer(await begin(socket, undefined, 'GET', '/healthz', undefined, signal))
    return true
  } catch (error) {
    if (signal.aborted) {
      const remedy = 'look into its log, and restart it (systemctl restart pillarbox).'
      throw new Failure(`A box has ${socket}, and does not answer: ${remedy}`, 'no_answer')
    }
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return false
    throw error
  }
}

async function ask(socket: string, account: string | undefined, method: string, path: string, body?: unknown): Promise<Buffer> {
  return buffer(await begin(socket, account, method, path, body === undefined ? undefined : JSON.stringify(body)))
}

/** The answer, of which only the head has come. Text is sent as JSON, octets as they are. Throws Failure for a refusal. */
function begin(
  socketPath: string,
  account: string | undefined,
  method: string,
  path: string,
  body?: string | AsyncIterable<Uint8Array>,
  signal?: AbortSignal,
): Promise<IncomingMessage> {
  const headers: Record<string, string> = { Host: 'localhost', 'User-Agent': 'pillarbox command' }
  if (body !== undefined) headers['Content-Type'] = typeof body === 'string' ? 'application/json' : 'application/octet-stream'
  if (account !== undefined) headers['Pillarbox-Account'] = account
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, method, path, headers, agent: false, ...(signal ? { signal } : {}) }, (answer) => {
      const { statusCode = 500 } = answer
      if (statusCode < 400) resolve(answer)
      else buffer(answer).then((bytes) => reject(failureOf(bytes, statusCode)), reject)
    })
    call.on('error', reject)
    if (body === undefined || typeof body === 'string') call.end(body)
    // who refuses what comes has said why before the connection breaks
    else pipeline(Readable.from(body), call).catch((error: unknown) => setTimeout(() => reject(error as Error), 500))
  })
}

function failureOf(bytes: Buffer, status: number): Failure {
  try {
    const { error } = JSON.parse(bytes.toString()) as { error: { message: string; code?: string; param?: string } }
    return new Failure(error.message, error.code, error.param)
  } catch {
    return new Failure(`The box answered ${status}.`)
  }
}
