import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { json, text } from 'node:stream/consumers'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { DnsStub } from '../support/dns-stub.ts'
import { Dialogue } from '../support/smtp.ts'

type Any = ReturnType<typeof JSON.parse>

/** Where a box is, and what the attacker has there. */
export interface Target {
  url: string
  /** The same by HTTPS. */
  tls: string
  smtp: { host: string; port: number }
  /** A key with the scopes of the attack, and no more. */
  key: string
  /** The attacker's own; each attack has a new one. */
  identity: { id: string; email: string }
  /** What belongs to the box, for preparations. */
  box: {
    directory: string
    dns: DnsStub
    operator: (method: string, path: string, body?: unknown, account?: string) => Promise<Any>
  }
}

interface Wish {
  body?: unknown
  key?: string | null
  headers?: Record<string, string>
  /** An address of 127.0.0.0/8 to call from: of those an attacker has as many as they like. */
  from?: string
  /** Not counted among the answers. */
  quiet?: boolean
}

/** Somebody who means harm, and the tally of what the box answered to that. */
export class Attacker {
  readonly target: Target
  /** Set when the attack is over: everything that repeats ends. */
  readonly signal: AbortSignal
  readonly answers = new Map<string, number>()
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 })
  readonly #open = new Set<() => void>()

  constructor(target: Target, signal: AbortSignal) {
    this.target = target
    this.signal = signal
  }

  note(answer: string): void {
    this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1)
  }

  /** Does it over and over, so many at once, until the attack is over. */
  async repeat(abreast: number, work: (number: number) => Promise<unknown>): Promise<void> {
    let number = 0
    const one = async (): Promise<void> => {
      while (!this.signal.aborted) {
        await work((number += 1))
        await turn()
      }
    }
    await Promise.all(Array.from({ length: abreast }, one))
  }

  /** Holds on to what it has until the attack is over. */
  async hold(): Promise<void> {
    await sleep(60_000, undefined, { signal: this.signal }).catch(() => undefined)
  }

  /** Makes a call; notes and answers its status with the code of a refusal: `400 too_deep`; `closed` where there was no answer. */
  call(method: string, path: string, input: Wish = {}): Promise<{ status: number; body: Any }> {
    const { body, key = this.target.key, headers = {}, from = '127.0.0.2', quiet = false } = input
    const octets = body === undefined || body instanceof Uint8Array || typeof body === 'string' ? body : JSON.stringify(body)
    return new Promise((resolve) => {
      const gone = (): void => {
        if (!quiet && !this.signal.aborted) this.note('closed')
        resolve({ status: 0, body: undefined })
      }
      const asked = request(
        `${this.target.url}${path}`,
        {
          method,
          agent: this.#agent,
          localAddress: from,
          headers: {
            ...(key === null ? {} : { Authorization: `Bearer ${key}` }),
            ...(octets === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(octets) }),
            ...headers,
          },
        },
        (response) => {
          const hear = async (): Promise<void> => {
            const isJson = response.headers['content-type']?.startsWith('application/json')
            const answer: Any = isJson ? await json(response) : await text(response)
            const status = response.statusCode!
            const code: unknown = answer?.error?.code ?? answer?.error?.type
            if (!quiet) this.note(status < 400 ? `${status}` : `${status} ${String(code)}`)
            resolve({ status, body: answer })
          }
          hear().catch(gone)
        },
      )
      asked.on('error', gone)
      this.#until(asked, () => asked.destroy())
      asked.end(octets)
    })
  }

  /** A call to the attacker's identity. */
  own(method: string, path: string, input?: Wish): Promise<{ status: number; body: Any }> {
    return this.call(method, `/v1/identities/${this.target.identity.id}${path}`, input)
  }

  /** Octets to the port of the API, and nothing else; notes the status of the first answer, or `closed`. */
  async raw(from: string, ...pieces: (string | Buffer)[]): Promise<Socket> {
    const { hostname, port } = new URL(this.target.url)
    const socket = connect({ host: hostname, port: Number(port), localAddress: from })
    let said = false
    const say = (answer: string): void => {
      if (!said && !this.signal.aborted) this.note(answer)
      said = true
    }
    socket.on('error', () => undefined)
    socket.once('data', (octets: Buffer) => say(/^HTTP\/1\.1 (\d{3})/.exec(octets.toString('latin1'))?.[1] ?? 'nonsense'))
    socket.once('close', () => say('closed'))
    this.#until(socket, () => socket.destroy())
    await new Promise<void>((resolve) => {
      socket.once('connect', resolve)
      socket.once('close', () => resolve())
    })
    for (const piece of pieces) socket.write(piece)
    return socket
  }

  /** Octets to the port of the API, then a block again and again for as long as the box takes it, on one connection after the other. */
  async flood(from: string, start: string, block: Buffer): Promise<void> {
    const socket = await this.raw(from, start)
    while (socket.writable && !this.signal.aborted) {
      if (socket.write(block)) await turn()
      else
        await Promise.race(['drain', 'close'].map((event) => once(socket, event, { signal: this.signal }).catch(() => undefined)))
    }
    socket.destroy()
  }

  /** An SMTP dialogue; not greeted yet. */
  async smtp(from = '127.0.0.2'): Promise<Dialogue> {
    const { host, port } = this.target.smtp
    const dialogue = await Dialogue.connect(port, host, from)
    this.#until(dialogue.socket, () => dialogue.destroy())
    return dialogue
  }

  /** Notes the code of an SMTP reply; `closed` for none. */
  noteReply(reply: string): void {
    if (!this.signal.aborted || reply !== '') this.note(/^\d{3}/.exec(reply)?.[0] ?? 'closed')
  }

  /** Hands over one message, to the attacker's own address by default, and notes the last reply. */
  async mail(octets: Buffer, from?: string, to = [this.target.identity.email]): Promise<void> {
    const dialogue = await this.smtp(from).catch(() => undefined)
    if (!dialogue) return this.note('closed')
    await dialogue.reply()
    await dialogue.say('EHLO attacker.test')
    this.noteReply(await dialogue.deliver(octets, to))
    dialogue.destroy()
  }

  /** An open WebSocket with a token of the attacker's, or none where it was refused, which is noted. */
  async webSocket(
    path = '/v1/realtime',
    name = 'token',
    from = '127.0.0.2',
    key = this.target.key,
  ): Promise<WebSocket | undefined> {
    const { body, status } = await this.call('POST', '/v1/realtime/token', { body: {}, key, quiet: true })
    if (status !== 200) {
      this.note(`${status}`)
      return undefined
    }
    const url = `${this.target.url.replace('http', 'ws')}${path}?${name}=${body.token}&vsn=2.0.0`
    const socket = new WebSocket(url, { localAddress: from, perMessageDeflate: false })
    socket.on('error', () => undefined)
    const opened = await new Promise<boolean>((resolve) => {
      socket.once('open', () => resolve(true))
      socket.once('unexpected-response', (_, response) => {
        this.note(`${response.statusCode}`)
        resolve(false)
      })
      socket.once('close', () => resolve(false))
    })
    if (!opened) return undefined
    socket.on('close', (code) => this.signal.aborted || this.note(`closed ${code}`))
    this.#open.add(() => socket.terminate())
    return socket
  }

  /** Lets go of everything. */
  end(): void {
    for (const close of this.#open) close()
    this.#agent.destroy()
  }

  #until(thing: { once(event: 'close', listener: () => void): unknown }, close: () => void): void {
    this.#open.add(close)
    thing.once('close', () => this.#open.delete(close))
  }
}

/** Another address of 127.0.0.0/8 for each number; never the honest caller's. */
export function address(number: number): string {
  return `127.1.${(number >> 8) & 255}.${number & 255}`
}

/** A message that never came before. */
export function mailWith(head: string, body: string | Buffer): Buffer {
  const fields = head === '' || head.endsWith('\r\n') ? head : `${head}\r\n`
  const id = randomBytes(8).toString('hex')
  const given = (name: string): boolean => new RegExp(`^${name}:`, 'im').test(fields.slice(0, 2000))
  const own = [
    given('From') ? '' : 'From: Mallory <mallory@attacker.test>\r\n',
    given('To') ? '' : 'To: you@pillarbox.test\r\n',
    `Message-ID: <${id}@attacker.test>\r\nDate: Fri, 20 Nov 2026 10:00:00 +0000\r\n`,
  ]
  return Buffer.concat([Buffer.from(`${own.join('')}${fields}\r\n`), Buffer.from(body), Buffer.from('\r\n')])
}
