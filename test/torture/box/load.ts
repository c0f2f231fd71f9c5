import { createHash } from 'node:crypto'
import { deliver, message } from '../../support/appliance.ts'
import { base32 } from '../../support/base32.ts'
import { pick, type Random } from '../../support/random.ts'
import { farDomains } from './peers.ts'
import type { Answer, Furnished, RunningBox } from './world.ts'

/** A write that was asked for. */
export interface Write {
  kind: 'mail' | 'identity' | 'send' | 'totp' | 'reveal' | 'metadata' | 'delete'
  /** Unique, and found again in what is stored. */
  name: string
  /** What was sent, byte for byte, or the secret, the amount or the value. */
  content: string
  /** For the write of an API that may be repeated: its path and body. */
  call?: { path: string; body: object }
  /** Set once it was acknowledged: when, and under which id. */
  acknowledged?: { mark: number; id: string }
}

/** Answers that are neither an acknowledgement nor the end of the connection. */
export interface Refusal {
  write: Write
  answer: string
  status: number
}

const weights: [Write['kind'], number][] = [
  ['mail', 8],
  ['send', 4],
  ['identity', 3],
  ['reveal', 3],
  ['totp', 2],
  ['metadata', 2],
  ['delete', 1],
]
const lots = weights.flatMap(([kind, weight]) => Array.from({ length: weight }, () => kind))

/** A mixed load on a box, and what the box acknowledged of it. */
export class Load {
  readonly writes: Write[] = []
  readonly refusals: Refusal[] = []
  readonly #random: Random
  readonly #furnished: Furnished
  /** Tells when something was acknowledged, in what a trial counts by. */
  readonly #mark: () => number
  #number = 0

  constructor(random: Random, furnished: Furnished, mark: () => number = () => 0) {
    this.#random = random
    this.#furnished = furnished
    this.#mark = mark
  }

  get acknowledged(): number {
    return this.writes.filter((write) => write.acknowledged !== undefined).length
  }

  /** Writes with several clients at once until told to stop, or until the box is gone. */
  begin(box: RunningBox, clients = 6): { stop(): void; ended: Promise<void> } {
    const stopping = new AbortController()
    const client = async (): Promise<void> => {
      while (!stopping.signal.aborted && (await this.#one(box))) {
        // the next follows at once
      }
    }
    const ended = Promise.all(Array.from({ length: clients }, client)).then(() => undefined)
    return { stop: () => stopping.abort(), ended }
  }

  /** Asks for a backup; resolves when it is made, or the box is gone. */
  async backup(box: RunningBox): Promise<void> {
    const job = await box.ask('POST', '/v1/backups')
    if (job === undefined || job.status >= 300) return
    for (const end = Date.now() + 60_000; Date.now() < end;) {
      const now = await box.ask('GET', `/v1/jobs/${job.body['id']}`)
      if (now?.body['status'] !== 'running') return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    throw new Error(`The backup ${job.body['id']} has been running for a minute.`)
  }

  /** Repeats what was not answered under the same idempotency keys: each is there once afterwards. */
  async repeat(box: RunningBox): Promise<void> {
    for (const write of this.writes) {
      if (write.acknowledged !== undefined || write.call === undefined) continue
      await this.#post(box, write)
    }
  }

  /** Answers false when the box is gone. */
  async #one(box: RunningBox): Promise<boolean> {
    const kind = pick(lots, this.#random)
    const name = `${kind}-${(this.#number += 1)}`
    const { inbox, writer, card } = this.#furnished
    switch (kind) {
      case 'mail':
        return this.#mail(box, name)
      case 'send': {
        const to = `${name}@${pick(farDomains, this.#random)}`
        const content = `Grüße ${name}\n.\n${'x'.repeat(this.#random(3000))}\n`
        const body = { to, subject: name, body_text: content }
        return this.#posted(box, { kind, name, content, call: { path: `/v1/identities/${writer.id}/emails`, body } })
      }
      case 'identity':
        return this.#posted(box, { kind, name, content: '', call: { path: '/v1/identities', body: { name } } })
      case 'reveal': {
        const amount_cents = 1 + this.#random(100)
        const call = { path: `/v1/cards/${card.id}/reveal`, body: { amount_cents, purpose: name } }
        return this.#posted(box, { kind, name, content: String(amount_cents), call })
      }
      case 'totp': {
        const secret = base32(
          createHash('sha1')
            .update(`${name} ${this.#random(1e9)}`)
            .digest(),
        )
        const call = { path: `/v1/identities/${inbox.id}/totp`, body: { secret, service_name: name } }
        return this.#posted(box, { kind, name, content: secret, call })
      }
      case 'metadata':
        return this.#metadata(box, name)
      default:
        return this.#delete(box)
    }
  }

  async #mail(box: RunningBox, name: string): Promise<boolean> {
    const body = `Body of ${name}\n.\n${`${'ü'.repeat(80)}\n`.repeat(this.#random(this.#random(20) === 0 ? 2000 : 10))}`
    const content = message({ Subject: name, 'Message-ID': `<${name}@sender.test>` }, body)
    const write: Write = { kind: 'mail', name, content }
    this.writes.push(write)
    const reply = await deliver(box.smtp, { to: this.#furnished.inbox.email, raw: content }).catch(() => '')
    const mark = this.#mark()
    if (reply.startsWith('250')) write.acknowledged = { mark, id: '' }
    else if (reply !== '') this.refusals.push({ write, answer: reply, status: Number(reply.slice(0, 3)) })
    return reply !== ''
  }

  async #posted(box: RunningBox, write: Write): Promise<boolean> {
    this.writes.push(write)
    return this.#post(box, write)
  }

  async #post(box: RunningBox, write: Write): Promise<boolean> {
    const { path, body } = write.call!
    return this.#take(write, await box.ask('POST', path, body, write.name))
  }

  /** A value of a field that is set over and over: the last one stays. */
  async #metadata(box: RunningBox, name: string): Promise<boolean> {
    const write: Write = { kind: 'metadata', name, content: name }
    this.writes.push(write)
    const path = `/v1/identities/${this.#furnished.inbox.id}`
    return this.#take(write, await box.ask('PATCH', path, { metadata: { [name]: 'kept' } }))
  }

  /** Deletes a one-time password that was acknowledged, if there is one. */
  async #delete(box: RunningBox): Promise<boolean> {
    const there = this.writes.filter(
      ({ kind, name, acknowledged }) =>
        kind === 'totp' &&
        acknowledged !== undefined &&
        !this.writes.some((other) => other.kind === 'delete' && other.content === name),
    )
    if (there.length === 0) return true
    const gone = pick(there, this.#random)
    const write: Write = { kind: 'delete', name: `delete-${gone.name}`, content: gone.name }
    this.writes.push(write)
    const path = `/v1/identities/${this.#furnished.inbox.id}/totp/${gone.acknowledged!.id}`
    return this.#take(write, await box.ask('DELETE', path))
  }

  #take(write: Write, answer: Answer | undefined): boolean {
    const mark = this.#mark()
    if (answer === undefined) return false
    if (answer.status < 300) {
      const id = (answer.body['transaction'] as { id: string } | undefined)?.id ?? (answer.body['id'] as string | undefined)
      write.acknowledged = { mark, id: id ?? '' }
    } else if ((answer.body['error'] as { code?: string } | undefined)?.code !== 'idempotency_interrupted') {
      this.refusals.push({ write, answer: JSON.stringify(answer.body), status: answer.status })
    }
    return true
  }
}
