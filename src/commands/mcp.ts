import { readFileSync } from 'node:fs'
import { type IncomingMessage, request as requestPlain, type RequestOptions } from 'node:http'
import { request as requestSecure } from 'node:https'
import { createInterface } from 'node:readline'
import { buffer } from 'node:stream/consumers'
import type { Command } from 'commander'
import { controlSocket } from '../config.ts'
import { answers, type BoxOptions, placeOf } from './support/box.ts'
import { Failure } from './support/refuse.ts'
import { remark } from './support/say.ts'

interface Options extends BoxOptions {
  url?: string
  keyFile?: string
  tools?: string
}

/** `pillarbox mcp`: hands each message of a client on standard input to `POST /mcp` of a box, and its answers to standard output. */
export function addMcpCommand(program: Command): void {
  program
    .command('mcp')
    .description('tools for an agent by the Model Context Protocol on standard input and output; the box must run')
    .option(
      '--url <url>',
      'the box, such as https://box.example.com, with the key in $PILLARBOX_API_KEY (default: the box on this machine)',
    )
    .option('--key-file <file>', 'a file with the API key, instead of $PILLARBOX_API_KEY')
    .option('--tools <names>', 'only these tools, separated by commas (default: all that the key may call)')
    .option('-c, --config <file>', 'settings file of the box on this machine')
    .option(
      '--data <directory>',
      'data directory of the box on this machine (default: $PILLARBOX_DATA_DIR, else from the settings)',
    )
    .option('--account <id>', 'the account to act for on this machine (default: the first one)')
    .action(async (options: Options) => new Bridge(await endpointOf(options)).run())
}

/** Where messages are sent. */
interface Endpoint {
  options: Omit<RequestOptions, 'headers'> & { headers: Record<string, string> }
  secure: boolean
  /** For messages to people. */
  name: string
}

async function endpointOf(options: Options): Promise<Endpoint> {
  const search = options.tools === undefined ? '' : `?tools=${encodeURIComponent(options.tools)}`
  if (options.url === undefined) return { ...(await localEndpoint(options, `/mcp${search}`)), secure: false }
  if (!URL.canParse(options.url))
    throw new Failure(`--url ${options.url} is not a URL such as https://box.example.com.`, 'invalid_value', 'url')
  const url = new URL(options.url)
  if (!/^https?:$/.test(url.protocol)) throw new Failure('--url must begin with https:// or http://.', 'invalid_value', 'url')
  const base = url.pathname.replace(/\/(?:mcp)?$/, '')
  const headers = { Authorization: `Bearer ${keyOf(options)}` }
  const port = url.port === '' ? {} : { port: url.port }
  const place = { host: url.hostname.replace(/^\[|\]$/g, ''), ...port, path: `${base}/mcp${search}` }
  return { options: { ...place, headers: { ...headers, Host: url.host } }, secure: url.protocol === 'https:', name: url.origin }
}

async function localEndpoint(options: Options, path: string): Promise<Omit<Endpoint, 'secure'>> {
  const { data_dir } = await placeOf(options)
  const socketPath = controlSocket({ data_dir })
  if (socketPath === undefined || !(await answers(socketPath))) {
    const remedy = 'Start it (pillarbox serve), or name another: --url https://box.example.com'
    throw new Failure(`The box in ${data_dir} is not running. ${remedy}`, 'not_running')
  }
  const account: Record<string, string> = options.account === undefined ? {} : { 'Pillarbox-Account': options.account }
  return { options: { socketPath, path, headers: { Host: 'localhost', ...account } }, name: 'the box' }
}

function keyOf({ keyFile }: Options): string {
  const key = keyFile === undefined ? process.env['PILLARBOX_API_KEY'] : readFileSync(keyFile, 'utf8')
  // an argument would be seen by everybody on the machine
  if (key === undefined || key.trim() === '')
    throw new Failure('A key is needed: PILLARBOX_API_KEY=pbx_… or --key-file <file>.', 'missing_key')
  return key.trim()
}

interface Message {
  id?: string | number
  method?: string
  params?: Record<string, unknown>
  result?: { protocolVersion?: unknown }
}

/** Milliseconds for answers after the client has closed its output. */
const lastAnswers = 2000

/** Sends each line as a request of its own: many may wait at the same time. */
class Bridge {
  readonly #endpoint: Endpoint
  readonly #waiting = new Map<unknown, AbortController>()
  /** The revision that a client of 2025 has agreed on. */
  #revision: string | undefined

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint
  }

  /** Resolves when the client has closed its output and every request has been answered or ended. */
  async run(): Promise<void> {
    const running = new Set<Promise<void>>()
    for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
      if (line.trim() === '') continue
      const work: Promise<void> = this.#forward(line).finally(() => running.delete(work))
      running.add(work)
    }
    const late = setTimeout(() => {
      for (const abort of this.#waiting.values()) abort.abort()
    }, lastAnswers)
    await Promise.all(running)
    clearTimeout(late)
  }

  async #forward(line: string): Promise<void> {
    const message = parsed(line)
    if (!message) return write({ jsonrpc: '2.0', id: null, error: { code: -32_700, message: 'This line is not a JSON object.' } })
    if (message.method === 'notifications/cancelled') return this.#waiting.get(message.params?.['requestId'])?.abort()
    const abort = new AbortController()
    if (message.id !== undefined) this.#waiting.set(message.id, abort)
    try {
      await this.#answer(message, line, abort.signal)
    } catch (error) {
      if (abort.signal.aborted) return
      const reason = `${this.#endpoint.name} cannot be reached: ${(error as Error).message}`
      if (message.id === undefined) remark(`${reason}\n`)
      else write({ jsonrpc: '2.0', id: message.id, error: { code: -32_000, message: reason } })
    } finally {
      this.#waiting.delete(message.id)
    }
  }

  async #answer(message: Message, line: string, signal: AbortSignal): Promise<void> {
    const response = await this.#post(message, line, signal)
    const type = response.headers['content-type'] ?? ''
    if (type.startsWith('text/event-stream')) {
      for await (const event of createInterface({ input: response, crlfDelay: Infinity })) {
        if (event.startsWith('data:')) this.#pass(event.slice('data:'.length).trim())
      }
      return
    }
    const text = (await buffer(response)).toString()
    const body = parsed(text)
    if (body && 'jsonrpc' in body) return this.#pass(text)
    if (message.id === undefined) return
    const { error } = (body ?? {}) as { error?: { message?: string; code?: string } }
    const reason = error?.message ?? `${this.#endpoint.name} answered ${response.statusCode}.`
    write({
      jsonrpc: '2.0',
      id: message.id,
      error: { code: -32_000, message: reason, data: { status: response.statusCode, code: error?.code } },
    })
  }

  /** Passes on a message of the box. */
  #pass(text: string): void {
    const message = parsed(text)
    if (!message) return
    const revision = message.result?.protocolVersion
    if (typeof revision === 'string') this.#revision = revision
    process.stdout.write(`${JSON.stringify(message)}\n`)
  }

  #post(message: Message, line: string, signal: AbortSignal): Promise<IncomingMessage> {
    const { options, secure } = this.#endpoint
    const revision = revisionOf(message) ?? this.#revision
    const headers = {
      ...options.headers,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'Content-Length': Buffer.byteLength(line),
      'User-Agent': 'pillarbox mcp',
      ...(typeof revision === 'string' ? { 'MCP-Protocol-Version': revision } : {}),
      ...(message.method === undefined ? {} : { 'Mcp-Method': headerText(message.method) }),
      ...(typeof message.params?.['name'] === 'string' ? { 'Mcp-Name': headerText(message.params['name']) } : {}),
    }
    return new Promise((resolve, reject) => {
      const request = (secure ? requestSecure : requestPlain)({ ...options, method: 'POST', headers, signal }, resolve)
      request.on('error', reject)
      request.end(line)
    })
  }
}

/** The revision that a message names (2026-07-28 and later). */
function revisionOf({ params }: Message): unknown {
  const meta = params?.['_meta'] as Record<string, unknown> | undefined
  return meta?.['io.modelcontextprotocol/protocolVersion']
}

/** A text as the value of a header field of the protocol, which encodes what is not ASCII. */
function headerText(text: string): string {
  return /^[\x21-\x7e]{1,200}$/.test(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}

function parsed(text: string): Message | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

function write(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}
