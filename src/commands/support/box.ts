import { createWriteStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { type IncomingMessage, request } from 'node:http'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { Command } from 'commander'
import type { App } from '../../app.ts'
import { type Config, controlSocket, loadConfig } from '../../config.ts'
import { createLog } from '../../core/log.ts'
import type { Page } from '../../core/shapes.ts'
import type { ReducedIdentity } from '../../identities/model.ts'
import { Failure } from './refuse.ts'
import { actAsOwner, mustBeOpen } from './owner.ts'
import { say, withJson } from './say.ts'

export interface BoxOptions {
  config?: string
  data?: string
  account?: string
  json?: boolean
}

export interface RunningBox {
  /** Calls the API as the operator and returns its JSON. Throws Failure with the API's message. */
  call<Answer>(method: string, path: string, body?: unknown): Promise<Answer>
  /** The same, with bytes in place of JSON. */
  read(path: string): Promise<Buffer>
  /** Streams the response into a new file with mode 0600. */
  save(path: string, file: string): Promise<void>
  /** Makes a call with a streamed body. */
  send<Answer>(path: string, octets: AsyncIterable<Uint8Array>): Promise<Answer>
}

export interface Box extends RunningBox {
  config: Config
  /** True if it runs; otherwise it was opened for this command, has no listeners, and neither receives nor sends. */
  running: boolean
}

/** Adds the options that select a box, and one of its accounts unless the command is for all, and --json. */
export function ofBox(command: Command, { account = true } = {}): Command {
  command
    .option('-c, --config <file>', 'settings file (default: $PILLARBOX_CONFIG, else ./pillarbox.yaml if there is one)')
    .option('--data <directory>', 'data directory (default: $PILLARBOX_DATA_DIR, else from the settings)')
  if (account) command.option('--account <id>', 'the account to act for (default: the first one)')
  return withJson(command)
}

export function settingsOf({ config, data }: BoxOptions): Promise<Config> {
  const env = data === undefined ? process.env : { ...process.env, PILLARBOX_DATA_DIR: data }
  return loadConfig({ file: config, env, cwd: process.cwd() })
}

/**
 * Runs `work` with the selected box: through its socket while it runs, else by opening its files. Throws a sentence when there is no box,
 * or a process that does not answer has locked it.
 */
export async function withBox<T>(options: BoxOptions, work: (box: Box) => Promise<T>): Promise<T> {
  const config = await presentBox(options)
  const socket = controlSocket(config)
  if (socket === undefined) {
    throw new Failure(`The path of ${config.data_dir} is too long for a socket in it: use a shorter data_dir.`)
  }
  if (await answers(socket)) return work({ ...boxAt(socket, options), config, running: true })
  return inApp(config, async (app) => {
    await app.attend()
    return work({ ...boxAt(socket, options), config, running: false })
  })
}

/** Opens the selected box without starting it, while `work` runs. Throws a sentence when there is none or it runs. */
export async function opened<T>(options: BoxOptions, work: (app: App) => Promise<T>): Promise<T> {
  return inApp(await presentBox(options), work)
}

/** The same, where no other box has the database open. */
export async function openedExclusively<T>(options: BoxOptions, work: (app: App) => Promise<T>): Promise<T> {
  return inApp(await presentBox(options), work, true)
}

/** What a command prints: the value with --json, else the text. */
export type Printed = [value: unknown, words: string]

/** The action of a command: runs it with the selected box, and prints what it returns. */
export function onBox<Given extends unknown[]>(run: (box: Box, ...given: Given) => Promise<Printed>) {
  return async (...given: [...Given, ...unknown[]]): Promise<void> => {
    // commander gives the arguments, then the options, then the command
    const options = given.at(-2) as BoxOptions
    const [value, words] = await withBox(options, (box) => run(box, ...(given as unknown as Given)))
    say(options, value, words)
  }
}

/** The settings of the selected box. Throws Failure when there is none. */
async function presentBox(options: BoxOptions): Promise<Config> {
  process.umask(0o077)
  const config = await settingsOf(options)
  mustBeOpen(config.data_dir)
  // opening creates missing files: a mistyped path must not create a second box
  if (!holdsBox(config.data_dir)) throw new Failure(`There is no box in ${config.data_dir}.`, 'no_box')
  return config
}

async function inApp<T>(config: Config, work: (app: App) => Promise<T>, exclusively = false): Promise<T> {
  actAsOwner(config.data_dir)
  // slow to load, and not needed for a running box
  const { App } = await import('../../app.ts')
  // standard output contains only the command's result
  const log = createLog('warn', process.stderr)
  const app = await (exclusively ? App.openExclusively(config, log) : App.open(config, log))
  try {
    return await work(app)
  } finally {
    await app.stop()
  }
}

/** True if a directory contains a box, complete or not. */
export function holdsBox(directory: string): boolean {
  return ['state.json', 'state.json.previous', 'pillarbox.db'].some((name) => existsSync(join(directory, name)))
}

/** The selected box, if it runs; a stopped one is not opened. */
export async function runningBox(options: BoxOptions): Promise<RunningBox | undefined> {
  const socket = controlSocket(await placeOf(options))
  return socket !== undefined && (await answers(socket)) ? boxAt(socket, options) : undefined
}

/** Reads the settings only when the data directory is not given: systemd shows their secrets to the box alone. */
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

const timeout = 10_000

/** True if a running box answers on this socket. Throws Failure when one is there and does not answer. */
export async function answers(socket: string): Promise<boolean> {
  const signal = AbortSignal.timeout(timeout)
  try {
    await buffer(await begin(socket, undefined, 'GET', '/healthz', undefined, signal))
    return true
  } catch (error) {
    if (signal.aborted) {
      const remedy = 'check its log, and restart it (systemctl restart pillarbox).'
      throw new Failure(`A box has opened ${socket} but does not answer: ${remedy}`, 'no_answer')
    }
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return false
    throw error
  }
}

async function ask(socket: string, account: string | undefined, method: string, path: string, body?: unknown): Promise<Buffer> {
  return buffer(await begin(socket, account, method, path, body === undefined ? undefined : JSON.stringify(body)))
}

/** The response after its headers. Text is sent as JSON, bytes as they are. Throws Failure for an error status. */
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
    // a server that rejects the body has answered before the connection breaks
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

/** All items of a list, page by page; at most `max`. */
export async function everyOne<Item>(box: Box, path: string, max = Infinity): Promise<Item[]> {
  const all: Item[] = []
  const joint = path.includes('?') ? '&' : '?'
  for (let cursor = ''; ;) {
    const limit = Math.min(200, max - all.length)
    const { data, has_more, next_cursor } = await box.call<Page<Item>>('GET', `${path}${joint}limit=${limit}${cursor}`)
    all.push(...data)
    if (!has_more || next_cursor === null || all.length >= max) return all
    cursor = `&cursor=${encodeURIComponent(next_cursor)}`
  }
}

/** How a command names an identity. */
export const whichIdentity = 'its id, name or e-mail address'

/** The identity of this id, name or address. Throws Failure when there is none. */
export async function identityNamed(box: Pick<Box, 'call'>, who: string): Promise<ReducedIdentity> {
  if (/^ident_[0-9a-z]{26}$/.test(who)) return box.call<ReducedIdentity>('GET', `/v1/identities/${who}`)
  const filters = who.includes('@') ? ['email', 'name'] : ['name']
  for (const filter of filters) {
    const { data } = await box.call<Page<ReducedIdentity>>('GET', `/v1/identities?limit=1&${filter}=${encodeURIComponent(who)}`)
    if (data[0]) return data[0]
  }
  throw new Failure(`The account has no identity ${who}. List the identities: pillarbox identity list`, 'not_found', 'identity')
}
