import { createHash } from 'node:crypto'
import { deliver, message } from '../../support/appliance.ts'
import { base32 } from '../../support/base32.ts'
import { blob, card as cardOf } from '../../support/card.ts'
import { pick, type Random } from '../../support/random.ts'
import { announced, callback } from '../../support/twilio-stub.ts'
import { farDomains } from './peers.ts'
import { type Answer, type Furnished, type RunningBox } from './world.ts'

/** Of a box without a provider of text messages, and of one with it. */
type Usual = 'mail' | 'identity' | 'send' | 'totp' | 'reveal' | 'metadata' | 'delete'
type Further = 'text' | 'texted' | 'card' | 'cancel-card' | 'key' | 'rotate-key' | 'rotate-webhook' | 'delete-mail'

/** A write that was asked for. */
export interface Write {
  kind: Usual | Further
  /** Unique, and found again in what is stored. */
  name: string
  /** What was sent, byte for byte, or the secret, the amount or the value, or the name of the write whose object is changed. */
  content: string
  /** For the write of an API that may be repeated: its path and body. */
  call?: { path: string; body: object }
  /** Set once it was acknowledged: when, and under which id. */
  acknowledged?: { mark: number; id: string }
  /** How often it was asked for. */
  asked: number
  /** Whether its key says that a restart interrupted it: it is there once, or not at all. */
  interrupted?: true
  /** The secret that was answered. */
  secret?: string
}

/** Answers that are neither an acknowledgement nor the end of the connection. */
export interface Refusal {
  write: Write
  answer: string
  status: number
}

type Weights = [Write['kind'], number][]

const usual: Weights = [
  ['mail', 8],
  ['send', 4],
  ['identity', 3],
  ['reveal', 3],
  ['totp', 2],
  ['metadata', 2],
  ['delete', 1],
]

const further: Weights = [
  ['text', 4],
  ['texted', 3],
  ['card', 2],
  ['cancel-card', 1],
  ['key', 2],
  ['rotate-key', 1],
  ['rotate-webhook', 1],
  ['delete-mail', 2],
]

function lotsOf(weights: Weights): Write['kind'][] {
  return weights.flatMap(([kind, weight]) => Array.from({ length: weight }, () => kind))
}

/** A mixed load on a box, and what the box acknowledged of it. */
export class Load {
  readonly writes: Write[] = []
  readonly refusals: Refusal[] = []
  readonly #random: Random
  readonly #furnished: Furnished
  /** Tells when something was acknowledged, in what a trial counts by. */
  readonly #mark: () => number
  readonly #lots: Write['kind'][]
  #number = 0
  #rotating = false

  constructor(random: Random, furnished: Furnished, mark: () => number = () => 0) {
    this.#random = random
    this.#furnished = furnished
    this.#mark = mark
    this.#lots = lotsOf(furnished.phone === undefined ? usual : [...usual, ...further])
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

  /** Repeats what was not answered under the same idempotency keys: each is there once afterwards, unless its key says that it was interrupted. */
  async repeat(box: RunningBox): Promise<void> {
    for (const write of this.writes) {
      if (write.acknowledged !== undefined || write.call === undefined) continue
      await this.#post(box, write)
    }
  }

  /** Sends mail and text messages to the box again that it did not answer, as their senders do. */
  async sendAgain(box: RunningBox): Promise<void> {
    for (const write of this.writes) {
      if (write.acknowledged !== undefined) continue
      if (write.kind === 'mail') await this.#deliver(box, write)
      else if (write.kind === 'texted') await this.#announce(box, write)
    }
  }

  /** Answers false when the box is gone. */
  async #one(box: RunningBox): Promise<boolean> {
    const kind = pick(this.#lots, this.#random)
    const name = `${kind}-${(this.#number += 1)}`
    const { inbox, writer, card } = this.#furnished
    switch (kind) {
      case 'mail':
        return this.#mail(box, name)
      case 'send': {
        const to = `${name}@${pick(farDomains, this.#random)}`
        const content = `Grüße ${name}\n.\n${'x'.repeat(this.#random(3000))}\n`
        const body = { to, subject: name, body_text: content }
        return this.#posted(box, { kind, name, content, call: { path: `/v1/identities/${writer.id}/emails`, body }, asked: 0 })
      }
      case 'identity':
        return this.#posted(box, { kind, name, content: '', call: { path: '/v1/identities', body: { name } }, asked: 0 })
      case 'reveal': {
        const amount_cents = 1 + this.#random(100)
        const call = { path: `/v1/cards/${card.id}/reveal`, body: { amount_cents, purpose: name } }
        return this.#posted(box, { kind, name, content: String(amount_cents), call, asked: 0 })
      }
      case 'totp': {
        const secret = base32(
          createHash('sha1')
            .update(`${name} ${this.#random(1e9)}`)
            .digest(),
        )
        const call = { path: `/v1/identities/${inbox.id}/totp`, body: { secret, service_name: name } }
        return this.#posted(box, { kind, name, content: secret, call, asked: 0 })
      }
      case 'metadata':
        return this.#metadata(box, name)
      case 'delete':
        return this.#delete(box)
      default:
        return this.#further(box, kind, name)
    }
  }

  async #further(box: RunningBox, kind: Further, name: string): Promise<boolean> {
    const { inbox, webhook, phone } = this.#furnished
    switch (kind) {
      case 'text': {
        const call = {
          path: `/v1/identities/${inbox.id}/sms`,
          body: { to: `+1415556${String(this.#number).padStart(4, '0')}`, body: name },
        }
        return this.#posted(box, { kind, name, content: name, call, asked: 0 })
      }
      case 'texted': {
        const write: Write = { kind, name, content: JSON.stringify(announced(phone!, name)), asked: 0 }
        this.writes.push(write)
        return this.#announce(box, write)
      }
      case 'card': {
        const encrypted_data = blob()
        const call = { path: `/v1/identities/${inbox.id}/cards`, body: cardOf({ encrypted_data, card_name: name }) }
        return this.#posted(box, { kind, name, content: encrypted_data, call, asked: 0 })
      }
      case 'key': {
        const call = { path: '/v1/api-keys', body: { label: name, scopes: ['identities:read'] } }
        return this.#posted(box, { kind, name, content: name, call, asked: 0 })
      }
      case 'rotate-webhook': {
        // which of two at once is the later one is not known
        if (this.#rotating || this.writes.some((write) => write.kind === kind && !isOver(write))) return true
        this.#rotating = true
        const secret = `whsec_${createHash('sha256').update(name).digest('base64')}`
        const call = { path: `/v1/webhooks/${webhook}/secret/rotate`, body: { secret } }
        return this.#posted(box, { kind, name, content: secret, call, asked: 0 }).finally(() => (this.#rotating = false))
      }
      case 'cancel-card': {
        const card = this.#unchanged('card', kind)
        if (card === undefined) return true
        const call = { path: `/v1/cards/${card.acknowledged!.id}/cancel`, body: {} }
        return this.#posted(box, { kind, name, content: card.name, call, asked: 0 })
      }
      case 'rotate-key': {
        const key = this.#unchanged('key', kind)
        if (key === undefined) return true
        const call = { path: `/v1/api-keys/${key.acknowledged!.id}/rotate`, body: {} }
        return this.#posted(box, { kind, name, content: key.name, call, asked: 0 })
      }
      default:
        return this.#deleteMail(box, name)
    }
  }

  /** One that was acknowledged and that no write of the other kind is about. */
  #unchanged(kind: Write['kind'], change: Write['kind']): Write | undefined {
    const changed = new Set(this.writes.filter((write) => write.kind === change).map(({ content }) => content))
    const there = this.writes.filter(
      (write) => write.kind === kind && write.acknowledged !== undefined && !changed.has(write.name),
    )
    return there.length === 0 ? undefined : pick(there, this.#random)
  }

  async #deleteMail(box: RunningBox, name: string): Promise<boolean> {
    const mail = this.#unchanged('mail', 'delete-mail')
    if (mail === undefined) return true
    const write: Write = { kind: 'delete-mail', name, content: mail.name, asked: 0 }
    this.writes.push(write)
    const path = `/v1/identities/${this.#furnished.inbox.id}/emails`
    const found = await box.ask('GET', `${path}?limit=200`)
    const email = (found?.body['data'] as { id: string; subject: string }[] | undefined)?.find(
      ({ subject }) => subject === mail.name,
    )
    if (email === undefined) {
      // not asked for: the box is gone, or it is not among the newest any more
      this.writes.splice(this.writes.indexOf(write), 1)
      return found !== undefined
    }
    write.asked += 1
    return this.#take(write, await box.ask('DELETE', `${path}/${email.id}`))
  }

  /** Announces a text message as its provider does. */
  async #announce(box: RunningBox, write: Write): Promise<boolean> {
    write.asked += 1
    const path = '/sms/twilio/inbound'
    const form = JSON.parse(write.content) as Record<string, string>
    const answer = await callback(box.api, path, form).catch(() => undefined)
    const mark = this.#mark()
    if (answer === undefined) return false
    if (answer.status === 200) write.acknowledged = { mark, id: '' }
    else this.refusals.push({ write, answer: answer.text, status: answer.status })
    return true
  }

  async #mail(box: RunningBox, name: string): Promise<boolean> {
    const body = `Body of ${name}\n.\n${`${'ü'.repeat(80)}\n`.repeat(this.#random(this.#random(20) === 0 ? 2000 : 10))}`
    const content = message({ Subject: name, 'Message-ID': `<${name}@sender.test>` }, body)
    const write: Write = { kind: 'mail', name, content, asked: 0 }
    this.writes.push(write)
    return this.#deliver(box, write)
  }

  async #deliver(box: RunningBox, write: Write): Promise<boolean> {
    write.asked += 1
    const reply = await deliver(box.smtp, { to: this.#furnished.inbox.email, raw: write.content }).catch(() => '')
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
    write.asked += 1
    return this.#take(write, await box.ask('POST', path, body, write.name))
  }

  /** A value of a field that is set over and over: the last one stays. */
  async #metadata(box: RunningBox, name: string): Promise<boolean> {
    const write: Write = { kind: 'metadata', name, content: name, asked: 1 }
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
    const write: Write = { kind: 'delete', name: `delete-${gone.name}`, content: gone.name, asked: 1 }
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
      if (write.kind === 'key' || write.kind === 'rotate-key') write.secret = answer.body['key'] as string
    } else if (answer.status === 409 && isInterrupted(answer) && write.asked > 1) {
      write.interrupted = true
    } else {
      this.refusals.push({ write, answer: JSON.stringify(answer.body), status: answer.status })
    }
    return true
  }
}

function isInterrupted({ body }: Answer): boolean {
  return (body['error'] as { code?: string } | undefined)?.code === 'idempotency_interrupted'
}

/** Whether nothing of a write can come any more. */
export function isOver({ acknowledged, interrupted }: Write): boolean {
  return acknowledged !== undefined || interrupted !== undefined
}
