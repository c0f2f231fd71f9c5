import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { Agent as SecureAgent, request as requestSecurely } from 'node:https'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Dialogue } from '../support/smtp.ts'
import { memoryOfChildren, peakMemory, resetPeakMemory, threadTime } from './figures.ts'

/**
 * A program: somebody who uses a box as it is meant to be used, while others attack it. It runs as a process of its own, so that what the
 * attacker's side costs this machine is not taken for the box being late. Told `begin`, it calls and writes; told `end`, it waits for the
 * answers that are still to come and tells what it saw.
 *
 * Calls are made at fixed times, whether the ones before were answered or not: a box that stands still for a second makes fifty calls late,
 * not one, and so the 99th percentile sees it.
 */
export interface Honest {
  pid: number
  url: string
  /** The same by HTTPS. */
  tls: string
  key: string
  smtp: { host: string; port: number }
  identity: { id: string; email: string }
}

export interface Seen {
  /** By call: how many were answered, and the 99th percentile of how long, in milliseconds. */
  calls: Record<string, { count: number; wall: number; held: number }>
  /** Calls that were not answered 200, and mail that was not taken in the end. */
  refused: string[]
  /** Subjects of the messages that were answered 250. */
  accepted: string[]
  /** The most memory that the box and what it started held, in bytes. */
  memory: number
}

interface Sample {
  wall: number
  held: number
}

/** Longest that answers are waited for once the attack is over, in milliseconds. */
const longest = 20_000

/** More than has room in memory whatever others send. */
const large = `${'Many words. '.repeat(6)}\r\n`.repeat(4000)

class HonestCaller {
  readonly #box: Honest
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 32 })
  readonly #samples = new Map<string, Sample[]>()
  readonly #open = new Set<Promise<void>>()
  readonly #refused: string[] = []
  readonly #accepted: string[] = []
  readonly #timers: NodeJS.Timeout[]
  readonly #writing: Promise<void>
  #children = 0
  #ended = false

  constructor(box: Honest, name: string) {
    this.#box = box
    resetPeakMemory(box.pid)
    const list = `/v1/identities/${box.identity.id}/emails`
    // all that need a key are 9.5 a second: less than http.rate_limit has them be
    this.#timers = [
      setInterval(() => this.#call('/healthz'), 20),
      setInterval(() => this.#callSecurely('/healthz'), 250),
      setInterval(() => this.#call(`${list}?limit=20`), 125),
      setInterval(() => this.#call(`${list}/search?limit=20&query=honest`), 700),
      setInterval(() => (this.#children = Math.max(this.#children, memoryOfChildren(box.pid))), 100),
    ]
    this.#writing = this.#write(name)
  }

  async end(): Promise<Seen> {
    this.#ended = true
    for (const timer of this.#timers) clearInterval(timer)
    const late = sleep(longest, 'late', { ref: false })
    const all = Promise.all([this.#writing, ...this.#open])
    if ((await Promise.race([all, late])) === 'late')
      this.#refused.push(`something was not answered ${longest} ms after the attack`)
    this.#agent.destroy()
    const calls = Object.fromEntries([...this.#samples].map(([name, samples]) => [name, summary(samples)]))
    return { calls, refused: this.#refused, accepted: this.#accepted, memory: peakMemory(this.#box.pid) + this.#children }
  }

  #call(path: string): void {
    const headers = path === '/healthz' ? {} : { Authorization: `Bearer ${this.#box.key}` }
    this.#ask(path.replace(/\?.*/, '').replace(/ident_\w+/, ':id'), (hear) =>
      request(`${this.#box.url}${path}`, { agent: this.#agent, headers }, hear),
    )
  }

  /** On a connection of its own. */
  #callSecurely(path: string): void {
    this.#ask(`${path} by HTTPS`, (hear) => {
      const agent = new SecureAgent({ rejectUnauthorized: false })
      return requestSecurely(`${this.#box.tls}${path}`, { agent }, hear)
    })
  }

  #ask(name: string, begin: (hear: (response: IncomingMessage) => void) => ClientRequest): void {
    const begun = performance.now()
    const [box, own] = [threadTime(this.#box.pid), threadTime(process.pid)]
    const answer = new Promise<void>((resolve) => {
      const call = begin((response) => {
        response.resume().on('end', () => {
          if (response.statusCode !== 200) this.#refused.push(`${name} was answered ${response.statusCode}`)
          this.#note(name, begun, box, own)
          resolve()
        })
      })
      call.on('error', (error) => {
        this.#refused.push(`${name}: ${error.message}`)
        resolve()
      })
      call.end()
    })
    this.#open.add(answer)
    void answer.then(() => this.#open.delete(answer))
  }

  /** How long the answer took, and how much of that was the box's doing. */
  #note(name: string, begun: number, box: { ran: number; waited: number }, own: { waited: number }): void {
    const wall = performance.now() - begun
    const now = threadTime(this.#box.pid)
    const elsewhere = now.waited - box.waited + (threadTime(process.pid).waited - own.waited)
    const samples = this.#samples.get(name) ?? []
    samples.push({ wall, held: Math.min(wall, Math.max(now.ran - box.ran, wall - elsewhere)) })
    this.#samples.set(name, samples)
  }

  /** One message after the other, every second by STARTTLS and every fourth large; one that is put off is sent again, as servers do. */
  async #write(name: string): Promise<void> {
    for (let number = 1; !this.#ended; number += 1) {
      const subject = `honest ${name} ${number}`
      const send = (): Promise<string> => this.#send(subject, number % 4 === 0 ? large : 'Words.\r\n', number % 2 === 0)
      let reply = await send()
      for (let tries = 1; !reply.startsWith('250') && tries < 50; tries += 1) {
        await sleep(200)
        reply = await send()
      }
      if (reply.startsWith('250')) this.#accepted.push(subject)
      else this.#refused.push(`mail was answered ${JSON.stringify(reply)}`)
      await sleep(100)
    }
  }

  async #send(subject: string, text: string, secure: boolean): Promise<string> {
    const { smtp, identity } = this.#box
    let client: Dialogue | undefined
    try {
      client = await Dialogue.connect(smtp.port, smtp.host)
      await client.reply()
      await client.say('EHLO honest.test')
      if (secure) {
        const reply = await client.say('STARTTLS')
        if (!reply.startsWith('220')) return reply
        await client.upgrade()
        await client.say('EHLO honest.test')
      }
      const id = `${process.pid}.${performance.now()}@honest.test`
      const head = `From: Ada <ada@honest.test>\r\nTo: ${identity.email}\r\nSubject: ${subject}\r\nMessage-ID: <${id}>`
      return await client.deliver(`${head}\r\nDate: Fri, 20 Nov 2026 10:00:00 +0000\r\n\r\n${text}`, [identity.email])
    } catch (error) {
      return String(error)
    } finally {
      client?.destroy()
    }
  }
}

function summary(samples: readonly Sample[]): { count: number; wall: number; held: number } {
  return {
    count: samples.length,
    wall: percentile(samples.map(({ wall }) => wall)),
    held: percentile(samples.map(({ held }) => held)),
  }
}

/** The 99th, in whole milliseconds. */
function percentile(values: number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return Math.round(sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0)
}

let caller: HonestCaller | undefined
process.on('message', (order: { begin: Honest; name: string } | 'end') => {
  if (order !== 'end') caller = new HonestCaller(order.begin, order.name)
  else void caller!.end().then((seen) => process.send!(seen))
})
