import * as z from 'zod'
import { type Clock, iso, minute } from '../core/clock.ts'
import { Fault, invalid } from '../core/fault.ts'
import { isId } from '../core/ids.ts'
import { parseForeign } from '../core/json.ts'
import type { EventTypes } from '../events/catalogue.ts'
import { unknownEvent } from '../timeline/timeline.ts'
import type { Access, Grant } from './access.ts'
import { channels, frameBounds, maxSubscriptions } from './channels.ts'
import { Channel, type ChannelName } from './model.ts'
import type { Socket } from './socket.ts'
import type { ManagedSession } from './sockets.ts'
import { Subscription, type SubscriptionDeps, type SubscriptionTarget } from './subscription.ts'
import { textFrame } from './text-frame.ts'

const Named = { channel: z.string(), identity_id: z.string().nullish() }

const Frame = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('subscribe'),
    ...Named,
    since: z.string().nullish(),
    types: z.array(z.string()).min(1).max(100).nullish(),
  }),
  z.strictObject({ type: z.literal('unsubscribe'), ...Named }),
  z.strictObject({ type: z.literal('refresh'), token: z.string() }),
  z.strictObject({ type: z.literal('ping') }),
])
type Frame = z.output<typeof Frame>
type Asked = { channel?: string; identity_id?: string | null | undefined }

export interface PlainDeps extends SubscriptionDeps {
  types: EventTypes
  access: Access
  clock: Clock
  /** Counts the socket for this key and account. */
  hold: (socket: Socket, grant: Grant) => void
}

/** Pillarbox's own protocol on one socket: JSON text frames, described in docs/events.md. */
export class PlainSession implements ManagedSession {
  readonly socket: Socket
  tokenAt: number
  readonly #deps: PlainDeps
  readonly #subscriptions = new Map<string, Subscription>()
  /** One subscription catches up at a time, which bounds the memory of a socket. */
  #reading = Promise.resolve()
  #grant: Grant
  /** When wrong frames came in the last minute. */
  #mistakes: number[] = []

  constructor(socket: Socket, grant: Grant, deps: PlainDeps) {
    this.socket = socket
    this.#grant = grant
    this.#deps = deps
    this.tokenAt = deps.clock.now()
  }

  get grants(): Grant[] {
    return [this.#grant]
  }

  async receive(text: string): Promise<void> {
    let asked: Asked = {}
    try {
      const frame = read(text)
      if ('channel' in frame) asked = frame
      await this.#answer(frame)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      this.#complain(error, asked)
    }
  }

  binary(): void {
    this.#complain(malformed('Frames must be JSON text, not binary.'))
  }

  rateExceeded(): void {
    this.#complain(
      new Fault('rate_limited', 'Too many frames: the limit is 20 a second, with bursts of 200.', { code: 'too_many_frames' }),
    )
  }

  end(): void {
    for (const subscription of this.#subscriptions.values()) subscription.end()
    this.#subscriptions.clear()
  }

  identityDeleted(id: string): void {
    const ended = [...this.#subscriptions].filter(([, subscription]) => subscription.identity_id === id)
    if (ended.length === 0) return
    for (const [key, { channel, identity_id }] of ended) {
      this.#forget(key)
      this.#complain(new Fault('not_found', 'The identity was deleted.', { code: 'identity_deleted' }), { channel, identity_id })
    }
    if (this.#subscriptions.size === 0) this.socket.close(4410, 'the identity was deleted')
  }

  async #answer(frame: Frame): Promise<void> {
    switch (frame.type) {
      case 'subscribe':
        return this.#subscribe(frame)
      case 'unsubscribe':
        return this.#unsubscribe(frame)
      case 'refresh':
        return this.#refresh(frame.token)
      case 'ping':
        return this.#send({ type: 'pong' })
    }
  }

  async #subscribe(frame: Extract<Frame, { type: 'subscribe' }>): Promise<void> {
    const subject = await this.#subject(frame)
    // a subscription started after the end would never be stopped
    if (!this.socket.open) return
    const { channel, identity_id } = subject
    const key = keyOf(subject)
    this.#forget(key)
    if (this.#subscriptions.size >= maxSubscriptions) {
      throw new Fault('rate_limited', `A WebSocket can have at most ${maxSubscriptions} subscriptions.`, {
        code: 'too_many_subscriptions',
      })
    }
    const subscription = new Subscription(this.socket, this.#deps, subject)
    this.#subscriptions.set(key, subscription)
    const { since, place } = await subscription.place(frame.since ?? undefined).catch((error: unknown) => {
      this.#forget(key)
      throw error
    })
    if (this.#subscriptions.get(key) !== subscription) return
    this.#send({ type: 'subscribed', channel, identity_id, since })
    this.#reading = this.#reading.then(() => subscription.read(place)).catch((error: unknown) => this.#failed(error))
  }

  async #subject({
    channel: name,
    identity_id: wanted,
    types: named,
  }: Extract<Frame, { type: 'subscribe' }>): Promise<SubscriptionTarget> {
    const { clock, access } = this.#deps
    if (this.#grant.expires_at <= clock.now()) {
      throw new Fault('unauthorized', 'The token has expired. Send {"type":"refresh","token":…} with a new one first.', {
        code: 'token_expired',
      })
    }
    const channel = knownChannel(name)
    const types = this.#grant.channels.get(channel)
    if (!types) throw notPermitted(`This token does not allow the channel ${channel}.`, 'channel')
    const bound = this.#grant.identity_id
    const identity_id = wanted ?? bound
    if (identity_id !== null) {
      if (!isId('ident', identity_id)) throw invalid('identity_id', 'identity_id must be an id such as ident_01j…', 'bad_id')
      if (bound !== null && identity_id !== bound) throw notPermitted('This token allows only another identity.', 'identity_id')
      await access.requireIdentity(this.#grant, identity_id).catch((error: unknown) => {
        throw error instanceof Fault ? new Fault(error.type, error.message, { param: 'identity_id' }) : error
      })
    }
    const { types: all } = this.#deps
    for (const type of named ?? []) {
      if (channels[channel].covers(type) && all.published().has(type)) continue
      const those = [...all.published().keys()].filter((one) => channels[channel].covers(one))
      throw unknownEvent('types', type, those)
    }
    return { channel, account_id: this.#grant.account_id, identity_id, types, wanted: named ? new Set(named) : undefined }
  }

  #unsubscribe(frame: Extract<Frame, { type: 'unsubscribe' }>): void {
    const channel = knownChannel(frame.channel)
    const identity_id = frame.identity_id ?? this.#grant.identity_id
    this.#forget(keyOf({ channel, identity_id }))
    this.#send({ type: 'unsubscribed', channel, identity_id })
  }

  async #refresh(token: string): Promise<void> {
    const { access, hold, clock } = this.#deps
    const grant = await access.open(token)
    if (grant.account_id !== this.#grant.account_id) throw notPermitted('The token belongs to another account.', 'token')
    if (!this.socket.open) return
    hold(this.socket, grant)
    this.#grant = grant
    this.tokenAt = clock.now()
    for (const [key, subscription] of this.#subscriptions) {
      const { channel, identity_id } = subscription
      const types = grant.channels.get(channel)
      if (types && (grant.identity_id === null || grant.identity_id === identity_id)) subscription.renew(types)
      else {
        this.#forget(key)
        const fault = new Fault('forbidden', 'The new token no longer allows this subscription.', { code: 'ended' })
        this.#complain(fault, { channel, identity_id })
      }
    }
    this.#send({ type: 'refreshed', expires_at: iso(grant.expires_at) })
  }

  #forget(key: string): void {
    this.#subscriptions.get(key)?.end()
    this.#subscriptions.delete(key)
  }

  #failed(error: unknown): void {
    // errors of the store while the box stops are covered by the close frame
    const code = error instanceof Fault ? 1013 : 1011
    this.socket.close(code, 'the event log could not be read; reconnect and resume with since')
  }

  #send(frame: object): void {
    this.socket.send(textFrame(JSON.stringify(frame)))
  }

  #complain(fault: Fault, about: Asked = {}): void {
    const { channel, identity_id } = about
    const code = fault.code ?? fault.type
    const named = { ...(channel === undefined ? {} : { channel }), ...(identity_id ? { identity_id } : {}) }
    const param = fault.param === undefined ? {} : { param: fault.param }
    this.#send({ type: 'error', code, message: fault.message, ...param, ...named })
    const mistake = mistakes[code]
    if (mistake !== undefined && this.#forgives()) return
    const closing = mistake ?? (code === 'too_many_frames' ? 4429 : fault.type === 'unauthorized' ? 4401 : undefined)
    if (closing !== undefined) this.socket.close(closing, code)
  }

  /** Counts a wrong frame: true for a few each minute, so that a client can correct itself. */
  #forgives(): boolean {
    const now = this.#deps.clock.now()
    this.#mistakes = [...this.#mistakes.filter((at) => now - at < minute), now]
    return this.#mistakes.length <= forgiven
  }
}

/** Wrong frames of one minute that do not close the socket. */
const forgiven = 3

/** Errors of wrong frames, with the codes that close the socket once there are too many of them. */
const mistakes: Readonly<Record<string, number>> = {
  malformed_frame: 4400,
  too_deep: 4400,
  too_many_tokens: 4400,
  too_long_key: 4400,
  too_much_padding: 4400,
  too_many_escapes: 4400,
  not_permitted: 4403,
}

function read(text: string): Frame {
  let value: unknown
  try {
    value = parseForeign(text, 'The frame', frameBounds)
  } catch (error) {
    throw error instanceof Fault ? error : malformed(`The frame is not JSON. ${hint}`)
  }
  const parsed = Frame.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]!
  const place = issue.code === 'unrecognized_keys' ? issue.keys[0]! : issue.path.join('.')
  throw malformed(`The frame is not valid: ${place || 'type'}: ${issue.message}. ${hint}`)
}

const hint = `A frame is, for example, {"type":"subscribe","channel":"agent_events"}; the types are ${Frame.options.map(({ shape }) => shape.type.value).join(', ')}.`

function knownChannel(name: string): ChannelName {
  const channel = Channel.safeParse(name)
  if (!channel.success) throw invalid('channel', `channel ${channel.error.issues[0]!.message}.`, 'unknown_channel')
  return channel.data
}

function keyOf({ channel, identity_id }: Pick<SubscriptionTarget, 'channel' | 'identity_id'>): string {
  return `${channel} ${identity_id ?? ''}`
}

function malformed(message: string): Fault {
  return new Fault('invalid_request', message, { code: 'malformed_frame' })
}

function notPermitted(message: string, param: string): Fault {
  return new Fault('forbidden', message, { code: 'not_permitted', param })
}
