import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { second } from '../core/clock.ts'
import type { RealtimeToken } from '../realtime/model.ts'
import type { EventEnvelope } from '../timeline/model.ts'
import { newSecret, signatureHeaders, signingKey, type WebhookKey } from '../webhooks/signature.ts'
import { identityNamed, whichIdentity } from './support/box.ts'
import { Failure } from './support/refuse.ts'
import { remark, say, withJson } from './support/say.ts'

interface Options {
  forward: string
  url: string
  identity?: string
  event?: string[]
  since?: string
  allowRemote: boolean
  json?: boolean
}

/** How long a program has for its answer, as long as a webhook has. */
const timeout = 15 * second

/** Events that wait for the program; above it the connection is closed until they are through, and the log of the box keeps the rest. */
const maxWaiting = 100

/** Pauses between attempts to connect, in milliseconds; the last one stays. */
const pauses = [0.5, 1, 2, 5, 10, 30].map((seconds) => seconds * second)

/** Errors of a subscription after which another is tried. */
const passing = ['token_expired', 'too_many_frames', 'internal_error']

export function addListenCommand(program: Command): void {
  const listen = program
    .command('listen')
    .description(
      'hand live events to a program on this machine, as signed webhook requests; the API key is read from $PILLARBOX_API_KEY, and a signing secret from $PILLARBOX_WEBHOOK_SECRET (default: a new one)',
    )
    .requiredOption('--forward <url>', 'where the program receives webhooks: http://localhost:3000/hook')
    .addOption(program.createOption('--url <url>', 'the API of the box').default('http://127.0.0.1:8080').env('PILLARBOX_URL'))
    .option('--identity <identity>', `only events of this one: ${whichIdentity}`)
    .option('--event <type...>', 'only events of these types, such as email.received')
    .option('--since <event>', 'begin after this event id or time (default: only new events)')
    .option('--allow-remote', 'also forward to another machine than this one', false)
  withJson(listen).action(run)
}

async function run(options: Options): Promise<void> {
  const target = targetOf(options)
  const secret = process.env['PILLARBOX_WEBHOOK_SECRET'] ?? newSecret()
  const api = apiAt(options.url)
  const { identity } = options
  const identityId = identity === undefined || identity.startsWith('ident_') ? identity : (await identityNamed(api, identity)).id
  await new Listener(api, { ...options, ...(identityId === undefined ? {} : { identity: identityId }) }, async (event) => {
    await forward(event, target, signingKey(secret), options)
  }).follow(() => remark(`Listening at ${options.url}, forwarding to ${target}. Signing secret: ${secret}\n`))
}

/** Throws Failure for what is no URL, or of another machine without --allow-remote: events hold codes and mail. */
function targetOf({ forward: text, allowRemote }: Options): string {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new Failure(`--forward ${text} is not a URL such as http://localhost:3000/hook.`, 'invalid_value', 'forward')
  }
  if (!allowRemote && !/^(?:(?:.+\.)?localhost|127(?:\.\d+){3}|\[::1\])$/.test(url.hostname)) {
    const remedy = 'With --allow-remote events, which can hold codes, are sent there.'
    throw new Failure(`--forward names another machine, ${url.hostname}. ${remedy}`, 'remote_target', 'forward')
  }
  return url.href
}

interface Api {
  call: <Answer>(method: string, path: string, body?: unknown) => Promise<Answer>
}

/** Throws Failure without a key. */
function apiAt(url: string): Api {
  const key = process.env['PILLARBOX_API_KEY']
  if (!key)
    throw new Failure('Set PILLARBOX_API_KEY to an API key that may read messages: export PILLARBOX_API_KEY=pbx_…', 'no_key')
  return {
    call: async <Answer>(method: string, path: string, body?: unknown) => {
      const response = await fetch(new URL(path, url), {
        method,
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        redirect: 'manual',
        signal: AbortSignal.timeout(timeout),
      })
      const answer = (await response.json()) as Answer & { error?: { message: string; code: string } }
      if (response.ok) return answer
      const { message = `${url} answered ${response.status}.`, code } = answer.error ?? {}
      if (response.status === 429 || response.status >= 500) throw new Error(message)
      throw new Failure(message, code)
    },
  }
}

interface Frame {
  type: string
  since?: string | null
  event: EventEnvelope
  code: string
  message: string
}

/** The frame, or undefined for what no box sends. */
function frameOf(data: unknown): Frame | undefined {
  try {
    const frame = JSON.parse(data as string) as Frame
    return frame.type === 'event' && typeof frame.event.id !== 'string' ? undefined : frame
  } catch {
    return undefined
  }
}

/** Follows the events of a box, one after the other, over as many connections as it takes. */
class Listener {
  readonly #api: Api
  readonly #options: Options
  readonly #take: (event: EventEnvelope) => Promise<void>
  #since: string | undefined
  #waiting = 0
  #taken = Promise.resolve()

  constructor(api: Api, options: Options, take: (event: EventEnvelope) => Promise<void>) {
    this.#api = api
    this.#options = options
    this.#take = take
    this.#since = options.since
  }

  /** Never resolves. Throws when there is no first connection, and what another connection would not mend. */
  async follow(begun: () => void): Promise<never> {
    let first = true
    for (let failures = 0; ;) {
      try {
        await this.#connect(() => {
          failures = 0
          if (first) begun()
          first = false
        })
        await this.#taken
      } catch (error) {
        const isPassing = !(error instanceof Failure) || passing.includes(error.code ?? '')
        if (first || !isPassing) throw first ? unreachable(error, this.#options.url) : error
        remark(`The connection ended (${(error as Error).message}); connecting again.\n`)
        await pause(pauses[Math.min(failures, pauses.length - 1)])
        failures += 1
      }
    }
  }

  /** Resolves when too many events wait; rejects when the connection ended. */
  async #connect(begun: () => void): Promise<void> {
    const { identity: identity_id } = this.#options
    const { url, token } = await this.#api.call<RealtimeToken>('POST', '/v1/realtime/token', { identity_id })
    await new Promise<void>((resolve, reject) => {
      const socket = new WebSocket(url, ['pillarbox.v1', token])
      let open = true
      const leave = (error?: Error): void => {
        open = false
        socket.close()
        if (error) reject(error)
        else resolve()
      }
      const subscribe = { type: 'subscribe', channel: 'agent_events', identity_id, since: this.#since }
      socket.addEventListener('open', () => socket.send(JSON.stringify(subscribe)))
      socket.addEventListener('close', ({ code, reason }) => leave(new Error(`${code} ${reason}`.trim())))
      socket.addEventListener('message', ({ data }) => {
        if (!open) return
        const frame = frameOf(data)
        if (frame === undefined) return leave(new Failure('The server sent what is no frame of a Pillarbox.', 'malformed_frame'))
        if (frame.type === 'error') return leave(new Failure(frame.message, frame.code))
        if (frame.type === 'event') this.#receive(frame.event)
        if (frame.type === 'subscribed') {
          this.#since ??= frame.since ?? new Date(0).toISOString()
          begun()
        }
        if (this.#waiting > maxWaiting) leave()
      })
    })
  }

  #receive(event: EventEnvelope): void {
    this.#since = event.id
    const { event: types } = this.#options
    if (types && !types.includes(event.type)) return
    this.#waiting += 1
    this.#taken = this.#taken
      .then(() => this.#take(event))
      .finally(() => {
        this.#waiting -= 1
      })
  }
}

function unreachable(error: unknown, url: string): Error {
  if (error instanceof Failure) return error
  const { message, cause } = error as Error & { cause?: Error }
  return new Failure(
    `No box answers at ${url} (${cause?.message ?? message}). Name its API: --url https://box.example.com`,
    'no_answer',
  )
}

/** One request, as a webhook makes it; it is not repeated. */
async function forward(event: EventEnvelope, target: string, key: WebhookKey, options: Options): Promise<void> {
  const body = JSON.stringify(event)
  const start = performance.now()
  const signed = { id: event.id, timestamp: Math.floor(Date.now() / 1000), body }
  let status: number | null = null
  let problem: string | null = null
  try {
    const response = await fetch(target, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...signatureHeaders(signed, key, null) },
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(timeout),
    })
    await response.body?.cancel()
    status = response.status
  } catch (error) {
    const { message, cause } = error as Error & { cause?: Error }
    problem = cause?.message || message
  }
  const ms = Math.round(performance.now() - start)
  const result = status === null ? `failed: ${problem}` : `${status} in ${ms} ms`
  if (options.json) process.stdout.write(`${JSON.stringify({ id: event.id, type: event.type, status, error: problem, ms })}\n`)
  else say({}, null, `${event.created_at}  ${event.type}  ${event.id}  ${result}`)
}
