import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { apiKey } from '../box/world.ts'

interface Frame {
  type: string
  since?: string | null
  event?: { id: string }
}

/** A client that follows all events by WebSocket, and connects again with `since` as often as it is cut off. */
export class Follower {
  /** The ids of events, in the order in which they were sent. */
  readonly heard: string[] = []
  /** Where it began. */
  first: string | undefined
  /** Connections after the first. */
  resumed = -1
  /** Where it connects next. */
  api: string
  readonly #running: Promise<void>
  #stopped = false
  #socket: WebSocket | undefined

  constructor(api: string) {
    this.api = api
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#socket?.terminate()
    await this.#running
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      await this.#follow().catch(() => undefined)
      if (!this.#stopped) await sleep(100)
    }
  }

  /** Resolves when the connection has ended. */
  async #follow(): Promise<void> {
    const response = await fetch(`${this.api}/v1/realtime/token`, {
      method: 'POST',
      signal: AbortSignal.timeout(10_000),
      headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
      body: '{}',
    })
    if (!response.ok) return
    const { url, token } = (await response.json()) as { url: string; token: string }
    const { pathname } = new URL(url)
    const socket = new WebSocket(`${this.api.replace(/^http/, 'ws')}${pathname}?token=${token}`, { handshakeTimeout: 10_000 })
    this.#socket = socket
    socket.on('error', () => undefined)
    const closed = once(socket, 'close')
    socket.on('open', () => {
      const since = this.heard.at(-1) ?? this.first
      socket.send(JSON.stringify({ type: 'subscribe', channel: 'agent_events', ...(since === undefined ? {} : { since }) }))
    })
    socket.on('message', (data: Buffer) => this.#take(JSON.parse(data.toString()) as Frame))
    await closed
  }

  #take(frame: Frame): void {
    if (frame.type === 'subscribed') {
      this.resumed += 1
      this.first ??= frame.since ?? undefined
    } else if (frame.type === 'event') this.heard.push(frame.event!.id)
  }
}
