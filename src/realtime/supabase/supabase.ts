import type { Clock } from '../../core/clock.ts'
import { Fault } from '../../core/fault.ts'
import type { Access, Grant } from '../access.ts'
import { type Binding, readBindings, releaseBindings } from './bindings.ts'
import type { Filters } from '../filters.ts'
import type { Hub } from '../hub.ts'
import type { PatternQueue } from '../pattern-queue.ts'
import { aroundPayload, type PhoenixFrame, readFrame, type Version, writeFrame } from './phoenix.ts'
import { maxSubscriptions } from '../channels.ts'
import type { Socket } from '../socket.ts'
import type { ManagedSession } from '../sockets.ts'
import { SupabaseChannel } from './supabase-channel.ts'
import { textFrame } from '../text-frame.ts'

export interface SupabaseDeps {
  access: Access
  hub: Hub
  filters: Filters
  patterns: PatternQueue
  clock: Clock
  /** Counts the socket for this key and account. */
  hold: (socket: Socket, grant: Grant) => void
}

/** The protocol of Supabase's realtime clients: Phoenix channels with `postgres_changes`, without resumption. */
export class SupabaseSession implements ManagedSession {
  readonly socket: Socket
  tokenAt: number
  readonly #deps: SupabaseDeps
  readonly #version: Version
  readonly #apikey: string
  readonly #channels = new Map<string, SupabaseChannel>()
  /** The latest grant: by the `apikey` of the URL, by a join, or by a refresh. It keeps the socket open without channels. */
  #latest: Grant | undefined
  #lastId = 1000

  constructor(socket: Socket, opened: { version: Version; apikey: string; grant: Grant | undefined }, deps: SupabaseDeps) {
    this.socket = socket
    this.#version = opened.version
    this.#apikey = opened.apikey
    this.#latest = opened.grant
    this.#deps = deps
    this.tokenAt = deps.clock.now()
  }

  get grants(): Grant[] {
    const joined = [...this.#channels.values()].map(({ grant }) => grant)
    return joined.length === 0 && this.#latest ? [this.#latest] : joined
  }

  async receive(text: string): Promise<void> {
    const frame = readFrame(this.#version, text)
    if (!frame) return this.#malformed('The frame is not valid in the protocol version of vsn.')
    const { topic, event } = frame
    if (topic === 'phoenix') this.#reply(frame, event === 'heartbeat' ? {} : unsupported(event))
    else if (!topic.startsWith('realtime:')) this.#reply(frame, new Fault('not_found', 'unmatched topic'))
    else if (event === 'phx_join') await this.#join(frame)
    else if (event === 'phx_leave') this.#leave(frame)
    else if (event === 'access_token') await this.#refresh(frame)
    else if (frame.ref !== null && frame.ref !== undefined) this.#reply(frame, unsupported(event))
  }

  /** Version 2.0.0 sends broadcasts as binary frames, which are not supported. */
  binary(): void {
    if (this.#version === '1.0.0') this.#malformed('Frames must be JSON text, not binary.')
  }

  rateExceeded(): void {
    this.#system('phoenix', 'error', 'system', 'Too many frames: the limit is 20 a second, with bursts of 200.')
    this.socket.close(4429, 'too_many_frames')
  }

  end(): void {
    for (const channel of this.#channels.values()) channel.end()
    this.#channels.clear()
  }

  identityDeleted(): void {
    // a channel of the whole account stays; those of the identity are closed with their socket
  }

  async #join(frame: PhoenixFrame): Promise<void> {
    const { topic, payload } = frame
    try {
      const token = tokenOf(payload) ?? this.#apikey
      const opening = await this.#deps.access.open(token)
      if (!this.socket.open) return
      this.#close(topic)
      if (this.#channels.size >= maxSubscriptions) throw new Fault('rate_limited', 'A WebSocket can have at most 100 channels.')
      const nextId = (): number => (this.#lastId += 1)
      const { filters, access } = this.#deps
      const bindings = await readBindings(payload, { grant: opening, held: this.#held(), filters, nextId })
      let grant: Grant
      try {
        // the key may have ended while patterns were compiled
        grant = await access.open(token)
        if (this.socket.open) this.#show(grant)
      } catch (error) {
        releaseBindings(bindings, opening, filters)
        throw error
      }
      // a channel joined after the end would never be closed
      if (!this.socket.open) return releaseBindings(bindings, opening, filters)
      const joinRef = frame.join_ref ?? frame.ref
      const channel = new SupabaseChannel(
        this.#deps,
        { topic, joinRef, token, grant, bindings },
        {
          push: (ids, row) => {
            const [before, after] = aroundPayload(this.#version, { topic, event: 'postgres_changes' })
            this.socket.send(textFrame(`${before}{"ids":${JSON.stringify(ids)},"data":`, row, `}${after}`))
          },
          overrun: () => {
            this.#system(topic, 'error', 'system', overrun, joinRef)
            this.#close(topic)
          },
        },
      )
      this.#channels.set(topic, channel)
      this.#reply(frame, { postgres_changes: bindings.map(({ asked, id }) => ({ ...asked, id })) })
      if (bindings.length > 0) this.#system(topic, 'ok', 'postgres_changes', 'Subscribed to PostgreSQL', joinRef)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      this.#reply(frame, error)
    }
  }

  #leave(frame: PhoenixFrame): void {
    this.#reply(frame, {})
    this.#close(frame.topic)
  }

  /** Applies a new token silently and ignores the current one; an invalid one, or one with fewer rights, closes the channel. */
  async #refresh({ topic, payload }: PhoenixFrame): Promise<void> {
    const token = tokenOf(payload)
    const channel = this.#channels.get(topic)
    if (!channel || token === undefined || token === channel.token) return
    try {
      const grant = await this.#deps.access.open(token)
      if (this.#channels.get(topic) !== channel || !this.socket.open) return
      if (grant.account_id !== channel.account_id) throw new Fault('forbidden', 'The token belongs to another account.')
      this.#show(grant)
      channel.renew(token, grant)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      // supabase-js falls back to this token with a heartbeat even after a refresh: no reason to close channels
      if (token === this.#apikey) return
      this.#system(topic, 'error', 'system', reasonOf(error), channel.joinRef)
      this.#close(topic)
    }
  }

  #show(grant: Grant): void {
    this.#deps.hold(this.socket, grant)
    this.#latest = grant
    this.tokenAt = this.#deps.clock.now()
  }

  #close(topic: string): void {
    const channel = this.#channels.get(topic)
    if (!channel) return
    channel.end()
    this.#channels.delete(topic)
    this.#send({ join_ref: channel.joinRef, ref: channel.joinRef, topic, event: 'phx_close', payload: '{}' })
  }

  #held(): Binding[] {
    return [...this.#channels.values()].flatMap(({ bindings }) => bindings)
  }

  #malformed(message: string): void {
    this.#system('phoenix', 'error', 'system', message)
    this.socket.close(4400, 'malformed_frame')
  }

  #system(topic: string, status: 'ok' | 'error', extension: string, message: string, join_ref?: PhoenixFrame['ref']): void {
    const payload = JSON.stringify({ extension, status, message, channel: topic.replace(/^realtime:/, '') })
    this.#send({ join_ref, topic, event: 'system', payload })
  }

  #reply({ join_ref, ref, topic }: PhoenixFrame, answer: object | Fault): void {
    const told =
      answer instanceof Fault ? { status: 'error', response: { reason: reasonOf(answer) } } : { status: 'ok', response: answer }
    this.#send({ join_ref, ref, topic, event: 'phx_reply', payload: JSON.stringify(told) })
  }

  #send(frame: Parameters<typeof writeFrame>[1]): void {
    this.socket.send(textFrame(writeFrame(this.#version, frame)))
  }
}

const overrun =
  'ChannelRateLimitReached: There were more events than the filter patterns of this account could process, and some were not sent. Read the list of events, use simpler patterns, and join again.'

const reasons: Partial<Record<Fault['type'], string>> = {
  unauthorized: 'InvalidJWTToken',
  forbidden: 'Unauthorized',
  rate_limited: 'ChannelRateLimitReached',
  invalid_request: 'InvalidRequest',
}

function reasonOf(fault: Fault): string {
  const code = reasons[fault.type]
  return code === undefined ? fault.message : `${code}: ${fault.message}`
}

function unsupported(event: string): Fault {
  return new Fault('not_found', `Unsupported event ${JSON.stringify(event.slice(0, 100))}`)
}

function tokenOf(payload: Record<string, unknown>): string | undefined {
  const token = payload['access_token']
  return typeof token === 'string' && token !== '' ? token : undefined
}
