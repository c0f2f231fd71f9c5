import { type WebSocket, WebSocketServer } from 'ws'
import { Fault } from '../core/fault.ts'
import type { UpgradeRequest } from '../http/server/upgrades.ts'

/** What a protocol does with a socket. */
export interface SocketSession {
  /** Text frames, one after the other. */
  receive(text: string): Promise<void>
  /** A binary frame came. */
  binary(): void
  /** More frames came than are taken. */
  hurried(): void
  /** The socket is gone, for whatever reason. */
  end(): void
}

export interface SocketEvents {
  sent: () => void
  slow: () => void
  /** A bug in a session: the socket is closed with 1011. */
  failed: (error: unknown) => void
  closed: (socket: Socket) => void
}

/** Octets that may wait for a client that does not read; above it the socket is closed. */
const backlog = 1024 * 1024

/** Octets that may wait before what is sent from the store pauses. */
const pause = 256 * 1024

/** Frames a client may send, pings and pongs too: at once, and a second. */
const frames = { burst: 200, perSecond: 20 }

const server = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  maxPayload: 16 * 1024,
  maxFragments: 256,
  perMessageDeflate: false,
  handleProtocols: (offered) => (offered.has('pillarbox.v1') ? 'pillarbox.v1' : false),
})

let handshakeError: Error | undefined
server.on('wsClientError', (error) => (handshakeError = error))

/** One WebSocket (RFC 6455): sends, paces, counts what comes, and never throws for what its client does. */
export class Socket {
  /** When it last heard its client, and when it asked without an answer since, in milliseconds since the epoch. */
  heardAt: number
  askedAt: number | undefined
  readonly openedAt: number
  /** What it counts as: keys and accounts, or an address as long as no key is known. */
  readonly holders = new Set<string>()
  readonly #webSocket: WebSocket
  readonly #events: SocketEvents
  readonly #now: () => number
  #tokens = frames.burst
  #work = Promise.resolve()

  private constructor(webSocket: WebSocket, events: SocketEvents, now: () => number) {
    this.#webSocket = webSocket
    this.#events = events
    this.#now = now
    this.openedAt = now()
    this.heardAt = this.openedAt
  }

  /** Answers the handshake. Throws Fault invalid_request for one that is none. */
  static accept<Kind extends SocketSession>(
    { request, socket, head }: UpgradeRequest,
    begin: (socket: Socket) => Kind,
    events: SocketEvents,
    now: () => number,
  ): Kind {
    handshakeError = undefined
    let session: Kind | undefined
    // it either opens or reports before it returns
    server.handleUpgrade(request, socket, head, (webSocket) => {
      const opened = new Socket(webSocket, events, now)
      session = begin(opened)
      opened.#listen(session)
    })
    if (session) return session
    const told = handshakeError as Error | undefined
    throw new Fault('invalid_request', `This is no WebSocket handshake: ${told?.message ?? 'it was cut off'}.`, {
      code: 'bad_handshake',
    })
  }

  get open(): boolean {
    return this.#webSocket.readyState === this.#webSocket.OPEN
  }

  /** Octets that wait because the client does not read. */
  get waiting(): number {
    return this.#webSocket.bufferedAmount
  }

  /** Sends a text frame, unless the client has stopped reading: then closes with 1013. */
  send(frame: string | Buffer): void {
    if (!this.open) return
    if (this.waiting > backlog) {
      this.#events.slow()
      this.close(1013, 'you read too slowly; resume with since')
      return
    }
    this.#events.sent()
    this.#webSocket.send(frame, { binary: false })
  }

  /** Sends a text frame, and resolves when there is room for the next; also when the socket has closed. */
  async sendPaced(frame: Buffer): Promise<void> {
    if (!this.open) return
    this.#events.sent()
    await new Promise<void>((resolve) => {
      this.#webSocket.send(frame, { binary: false }, () => resolve())
      if (this.waiting < pause) resolve()
    })
  }

  ping(): void {
    this.askedAt = this.#now()
    if (this.open) this.#webSocket.ping()
  }

  /** Says goodbye; after 30 s without an answer the connection is cut. */
  close(code: number, reason: string): void {
    this.#webSocket.close(code, reason)
  }

  cut(): void {
    this.#webSocket.terminate()
  }

  #listen(session: SocketSession): void {
    const count = (): boolean => {
      const waited = Math.max(0, this.#now() - this.heardAt)
      this.heardAt = this.#now()
      this.askedAt = undefined
      if (!this.open) return false
      this.#tokens = Math.min(frames.burst, this.#tokens + (waited * frames.perSecond) / 1000) - 1
      if (this.#tokens < 0) session.hurried()
      return this.#tokens >= 0
    }
    // what a client does wrong on the wire is answered by the library's close code
    this.#webSocket.on('error', () => undefined)
    this.#webSocket.on('pong', count)
    this.#webSocket.on('ping', count)
    this.#webSocket.on('message', (data: Buffer, binary) => {
      if (!count()) return
      if (binary) session.binary()
      else this.#receive(session, data.toString())
    })
    this.#webSocket.on('close', () => {
      session.end()
      this.#events.closed(this)
    })
  }

  #receive(session: SocketSession, text: string): void {
    this.#work = this.#work
      .then(() => (this.open ? session.receive(text) : undefined))
      .catch((error: unknown) => {
        this.#events.failed(error)
        this.close(1011, 'something went wrong on our side')
      })
  }
}
