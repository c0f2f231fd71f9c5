import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'undici'
import type { Domain } from '../../../src/domains/model.ts'
import { blob, card } from '../../support/card.ts'
import { type BoxProcess, startProcess, testBox } from '../../support/process.ts'
import type { Random } from '../../support/random.ts'
import { twilioSettings } from '../../support/twilio-stub.ts'
import { mustBeLoopback } from '../loopback.ts'
import { Peers } from './peers.ts'

/** Milliseconds for one answer. */
const patience = 60_000

export const apiKey = 'torture-key-with-every-scope-1234567890'

// answers are JSON of any shape; the load and the oracle say what they expect of it
export type Answered = Record<string, ReturnType<typeof JSON.parse>>

export interface Answer {
  status: number
  body: Answered
}

/** An identity. */
export interface Named {
  id: string
  email: string
}

/** The objects of a box that every case begins with. */
export interface Furnished {
  /** Receives. */
  inbox: Named
  /** Sends. */
  writer: Named
  card: { id: string; encrypted_data: string }
  webhook: string
  /** The number of the inbox, where there is a provider of text messages. */
  phone?: string
}

/** A box that runs, and the addresses at which it does. */
export class RunningBox {
  readonly process: BoxProcess
  readonly api: string
  readonly smtp: { host: string; port: number }
  readonly #headers: Record<string, string>

  constructor(process: BoxProcess, api: string, smtp: { host: string; port: number }, headers: Record<string, string> = {}) {
    mustBeLoopback(new URL(api).hostname)
    mustBeLoopback(smtp.host)
    this.process = process
    this.api = api
    this.smtp = smtp
    this.#headers = headers
  }

  /** Undefined when the box ended before it had answered. */
  async ask(method: string, path: string, body?: object, key?: string, secret = apiKey): Promise<Answer | undefined> {
    try {
      // by fetch each call would take four times as much of the processor
      const answer = await request(`${this.api}${path}`, {
        method,
        headersTimeout: patience,
        bodyTimeout: patience,
        headers: {
          Authorization: `Bearer ${secret}`,
          ...this.#headers,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...(key === undefined ? {} : { 'Idempotency-Key': key }),
        },
        body: body === undefined ? null : JSON.stringify(body),
      })
      const text = await answer.body.text()
      return { status: answer.statusCode, body: text === '' ? {} : (JSON.parse(text) as Answered) }
    } catch (error) {
      const { code } = error as { code?: string }
      if (code?.endsWith('_TIMEOUT')) throw new Error(`${method} ${path} was not answered within 60 s.`, { cause: error })
      if (code !== undefined) return undefined
      throw error
    }
  }

  /** As `ask`, of a box that must answer well. */
  async get(method: string, path: string, body?: object): Promise<Answered> {
    const answer = await this.ask(method, path, body)
    if (answer === undefined) throw new Error(`${method} ${path} was not answered.\n${lastLines(this.process)}`)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  /** All items of a list. */
  async list(path: string): Promise<Answered[]> {
    const items: Answered[] = []
    for (let cursor = ''; ;) {
      const page = await this.get('GET', `${path}${path.includes('?') ? '&' : '?'}limit=200${cursor}`)
      items.push(...(page['data'] as Answered[]))
      if (page['next_cursor'] === null) return items
      cursor = `&cursor=${page['next_cursor']}`
    }
  }

  async text(path: string): Promise<string> {
    const response = await fetch(`${this.api}${path}`, { headers: { Authorization: `Bearer ${apiKey}` } })
    return Buffer.from(await response.arrayBuffer()).toString('latin1')
  }
}

/** The homes of boxes of one trial, each a copy of one that was set up, and what they talk to. */
export class World {
  readonly peers: Peers
  readonly furnished: Furnished
  readonly #directory: string
  readonly #program: string

  private constructor(directory: string, program: string, peers: Peers, furnished: Furnished) {
    this.#directory = directory
    this.#program = program
    this.peers = peers
    this.furnished = furnished
  }

  /** With `texts` there is a provider of text messages, and the inbox has a number. */
  static async open(directory: string, program: string, random: Random, { texts = false } = {}): Promise<World> {
    const peers = await Peers.open(random, { texts })
    const home = join(directory, 'furnished')
    mkdirSync(join(home, 'backups'), { recursive: true })
    try {
      const box = await startBox({ home, peers, program })
      const furnished = await furnish(box, peers)
      const status = await box.process.end('SIGTERM')
      if (status !== 0) throw new Error(`The box ended with ${status}.\n${lastLines(box.process)}`)
      return new World(directory, program, peers, furnished)
    } catch (error) {
      await peers.close()
      throw error
    }
  }

  /** The same world, whose boxes hold other objects. */
  with(furnished: Furnished): World {
    return new World(this.#directory, this.#program, this.peers, furnished)
  }

  /** The same world, whose boxes are of another build. */
  of(program: string): World {
    return new World(this.#directory, program, this.peers, this.furnished)
  }

  /** A directory of this name with a box that was set up and stopped. */
  home(name: string): string {
    const home = join(this.#directory, name)
    rmSync(home, { recursive: true, force: true })
    cpSync(join(this.#directory, 'furnished'), home, { recursive: true })
    return home
  }

  /** Throws an Error when the box ends before it has started. */
  start(home: string, env: Record<string, string> = {}): Promise<RunningBox> {
    return startBox({ home, peers: this.peers, program: this.#program, env })
  }

  /** Begins to start a box. */
  begin(home: string, env: Record<string, string> = {}): BoxProcess {
    return beginBox({ home, peers: this.peers, program: this.#program, env })
  }

  /** Runs another command on the home of a box. */
  command(home: string, words: string[], env: Record<string, string> = {}): BoxProcess {
    return beginBox({ home, peers: this.peers, program: this.#program, env }, words)
  }

  async close(): Promise<void> {
    await this.peers.close()
  }
}

interface Start {
  home: string
  peers: Peers
  program: string
  env?: Record<string, string>
}

const running = new Set<BoxProcess>()
process.once('exit', () => {
  for (const { child } of running) child.kill('SIGKILL')
})

function beginBox({ home, peers, program, env = {} }: Start, words = ['serve']): BoxProcess {
  const settings = {
    ...testBox,
    PILLARBOX_DATA_DIR: join(home, 'data'),
    PILLARBOX_BACKUP__DIRECTORY: join(home, 'backups'),
    PILLARBOX_BOOTSTRAP_KEY: apiKey,
    PILLARBOX_DNS__SERVERS: peers.dns.servers.join(','),
    PILLARBOX_OUTBOUND__PORT: String(peers.sink.port),
    PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '127.0.0.0/8',
    PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
    PILLARBOX_HTTP__PUBLIC_RATE_LIMIT: '0',
    ...(peers.twilio === undefined ? {} : twilioSettings(peers.twilio)),
    ...env,
  }
  const box = startProcess(settings, words, home, join(program, 'bin', 'pillarbox'))
  running.add(box)
  void box.ended.then(() => running.delete(box))
  return box
}

async function startBox(start: Start): Promise<RunningBox> {
  const process = beginBox(start)
  return started(process)
}

/** Waits until a box has started. */
export async function started(process: BoxProcess): Promise<RunningBox> {
  const timer = setTimeout(() => process.child.kill('SIGKILL'), 120_000)
  try {
    const { api, smtp } = await process.said('started')
    return new RunningBox(process, api as string, (smtp as { host: string; port: number }[])[0]!)
  } finally {
    clearTimeout(timer)
  }
}

/** Makes what every case begins with. */
export async function furnish(
  box: RunningBox,
  peers: Pick<Peers, 'publish' | 'hooks'> & Partial<Pick<Peers, 'twilio'>>,
): Promise<Furnished> {
  const { data } = await box.get('GET', '/v1/domains')
  const domain = (data as Domain[])[0]!
  peers.publish(domain)
  const { status } = await box.get('POST', `/v1/domains/${domain.id}/verify`, {})
  if (status !== 'verified') throw new Error(`The domain is ${status}.`)
  const inbox = await box.get('POST', '/v1/identities', { name: 'Inbox' })
  const writer = await box.get('POST', '/v1/identities', { name: 'Writer' })
  const encrypted_data = blob()
  const stored = await box.get(
    'POST',
    `/v1/identities/${inbox['id']}/cards`,
    card({ encrypted_data, budget_cents: 1_000_000_000 }),
  )
  const webhook = await box.get('POST', '/v1/webhooks', { url: peers.hooks.url, events: ['identity.created', 'email.received'] })
  const bought =
    peers.twilio === undefined ? undefined : await box.get('POST', `/v1/identities/${inbox['id']}/phone`, { country: 'US' })
  return {
    inbox: named(inbox),
    writer: named(writer),
    card: { id: stored['id'] as string, encrypted_data },
    webhook: webhook['id'] as string,
    ...(bought === undefined ? {} : { phone: bought['phone_number'] as string }),
  }
}

/** An identity as the API answered it. */
export function named({ id, email }: Answered): Named {
  return { id: id as string, email: email as string }
}

/** What a process said last, for an error. */
export function lastLines(process: BoxProcess): string {
  return `${process.output()}\n${process.errors()}`.trim().split('\n').slice(-12).join('\n')
}
