import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { Fault } from '../core/fault.ts'
import type { UpgradeRequest } from '../http/server/upgrades.ts'
import { lengthOf } from './text-frame.ts'
import { type UnsentClient, UnsentFrames, type UnsentLimiter } from './unsent.ts'

/** The protocol handler of a socket. */
export interface SocketSession {
  /** Receives text frames, one after the other. */
  receive(text: string): Promise<void>
  /** Receives a binary frame. */
  binary(): void
  /** The client exceeded the frame rate: nothing more of it is read, and the socket closes it. */
  rateExceeded(): void
  /** The socket has closed, for any reason. */
  end(): void
}

export interface SocketDeps {
  now: () => number
  limiter: UnsentLimiter
  /** The account or network whose unsent bytes its own are. */
  ownerOf: (socket: Socket) => string
  sent: () => void
  slow: () => void
  /** Called before a frame is sent: closes a socket whose key, session or identity has ended. */
  closeIfEnded: (socket: Socket) => void
  /** Called for a bug in a session: the socket is closed with 1011. */
  failed: (error: unknown) => void
  closed: (socket: Socket) => void
}

/** The most bytes that wait for a client that does not read; above it the socket is closed. */
const backlog = 1024 * 1024

/** The most waiting bytes before sending from the log pauses. */
const pause = 256 * 1024

/** The frames a client may send, including pings and pongs: a burst, and a second. */
const frames = { burst: 200, perSecond: 20 }

/** Milliseconds in which a client closes the connection of a closed socket. */
const closingTime = 1000

/** A frame that is written, or held: once it is counted, it is counted until the connection has taken it. */
interface Written {
  frame: readonly Buffer[]
  done: (() => void) | undefined
  counted: boolean
}

const server = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  maxPayload: 16 * 1024,
  maxFragments: 256,
  perMessageDeflate: false,
  // a packet holds ten thousand empty frames: others are served between two of them
  allowSynchronousEvents: false,
  handleProtocols: (offered) => (offered.has('pillarbox.v1') ? 'pillarbox.v1' : false),
})

let handshakeError: Error | undefined
server.on('wsClientError', (error) => (handshakeError = error))

/** One WebSocket (RFC 6455): sends, limits the rate of received frames, and never throws for client errors. */
export class Socket implements UnsentClient {
  /** The time the last frame arrived, and the time a ping without an answer was sent, in milliseconds since the epoch. */
  lastFrameAt: number
  pingSentAt: number | undefined
  readonly openedAt: number
  /** The keys, sessions and accounts it counts for; none before a token was given. */
  readonly holders = new Set<string>()
  readonly #webSocket: WebSocket
  readonly #connection: Duplex
  readonly #deps: SocketDeps
  readonly #unsent: UnsentFrames
  /** How many times it is suspended. */
  #suspended = 0
  /** Frames that wait while it is. */
  #held: Written[] = []
  #tokens = frames.burst
  /** Nothing more is read. */
  #muted = false
  #work = Promise.resolve()

  private constructor(webSocket: WebSocket, connection: Duplex, deps: SocketDeps) {
    this.#webSocket = webSocket
    this.#connection = connection
    this.#deps = deps
    this.#unsent = new UnsentFrames(this, deps.limiter, () => deps.ownerOf(this))
    this.openedAt = deps.now()
    this.lastFrameAt = this.openedAt
  }

  /** Completes the handshake. Throws Fault invalid_request for an invalid one. */
  static accept<Kind extends SocketSession>(
    { request, socket, head }: UpgradeRequest,
    begin: (socket: Socket) => Kind,
    deps: SocketDeps,
  ): Kind {
    handshakeError = undefined
    let session: Kind | undefined
    // it either opens or reports before it returns
    server.handleUpgrade(request, socket, head, (webSocket) => {
      const opened = new Socket(webSocket, socket, deps)
      session = begin(opened)
      opened.#listen(session)
    })
    if (session) return session
    const failure = handshakeError as Error | undefined
    throw new Fault('invalid_request', `This is not a WebSocket handshake: ${failure?.message ?? 'it was incomplete'}.`, {
      code: 'bad_handshake',
    })
  }

  get open(): boolean {
    return this.#webSocket.readyState === this.#webSocket.OPEN
  }

  /** Bytes that wait, because the client does not read or the socket is suspended. */
  get waiting(): number {
    let bytes = this.#webSocket.bufferedAmount
    for (const { frame } of this.#held) bytes += lengthOf(frame)
    return bytes
  }

  /** Sends a frame of `textFrame`; closes with 1013 when the client has stopped reading. */
  send(frame: readonly Buffer[]): void {
    this.#deps.closeIfEnded(this)
    if (!this.open) return
    if (this.waiting > backlog) this.tooSlow()
    else this.#write(frame)
  }

  /** Sends a frame of `textFrame`, and resolves when the next may be sent, or the socket has closed. */
  async sendPaced(frame: readonly Buffer[]): Promise<void> {
    this.#deps.closeIfEnded(this)
    if (!this.open) return
    await new Promise<void>((resolve) => {
      this.#write(frame, resolve)
      if (this.waiting < pause) resolve()
    })
  }

  /** Frames wait from now on: whether its key, session or identity has ended is being read. */
  suspend(): void {
    this.#suspended += 1
  }

  /** Sends the frames that waited, unless the socket is closed for what was read. */
  resume(): void {
    this.#suspended -= 1
    if (this.#suspended > 0) return
    this.#deps.closeIfEnded(this)
    for (const written of this.#held.splice(0)) this.#transmit(written)
  }

  /** Closes because the client does not read. */
  tooSlow(): void {
    if (this.open) this.#deps.slow()
    this.close(1013, 'the client reads too slowly; reconnect and resume with since')
  }

  ping(): void {
    this.pingSentAt = this.#deps.now()
    if (this.open) this.#webSocket.ping()
  }

  /** Sends a close frame; without an answer within 30 s the connection is cut. */
  close(code: number, reason: string): void {
    this.#webSocket.close(code, reason)
    this.#discardHeld()
    this.#unsent.closing()
  }

  cut(): void {
    this.#webSocket.terminate()
  }

  /** Calls `done` when the connection has taken the frame, or has closed. What it takes at once is not counted as unsent. */
  #write(frame: readonly Buffer[], done?: () => void): void {
    this.#deps.sent()
    const written: Written = { frame, done, counted: this.#suspended > 0 }
    if (written.counted) this.#held.push(written)
    else {
      this.#transmit(written)
      if (this.#connection.writableLength === 0) return
      written.counted = true
    }
    this.#unsent.add(frame)
  }

  #transmit(written: Written): void {
    const sent = (): void => {
      if (written.counted) this.#unsent.sent()
      written.done?.()
    }
    if (!this.open) return sent()
    const { frame } = written
    const last = frame.length - 1
    // past the library, which makes the head of a frame anew for every socket; one packet, not one for each buffer
    if (last > 0) this.#connection.cork()
    for (let index = 0; index < last; index += 1) this.#connection.write(frame[index])
    this.#connection.write(frame[last], sent)
    if (last > 0) this.#connection.uncork()
  }

  #discardHeld(): void {
    for (const { done } of this.#held.splice(0)) done?.()
  }

  #listen(session: SocketSession): void {
    const count = (): boolean => {
      const waited = Math.max(0, this.#deps.now() - this.lastFrameAt)
      this.lastFrameAt = this.#deps.now()
      this.pingSentAt = undefined
      if (!this.open) return false
      this.#tokens = Math.min(frames.burst, this.#tokens + (waited * frames.perSecond) / 1000) - 1
      if (this.#tokens >= 0) return true
      session.rateExceeded()
      // it counts as open until the library's timeout: else it could be opened again at once, for the next ten thousand frames
      this.#muted = true
      this.#webSocket.pause()
      this.#connection.end()
      return false
    }
    // protocol errors are answered by the library's close code
    this.#webSocket.on('error', () => undefined)
    // when both sides have closed, the library reads on and discards what comes
    this.#connection.once('finish', () => {
      if (!this.#muted) setTimeout(() => this.cut(), closingTime).unref()
    })
    this.#webSocket.on('pong', count)
    this.#webSocket.on('ping', count)
    this.#webSocket.on('message', (data: Buffer, binary) => {
      if (!count()) return
      if (binary) session.binary()
      else this.#receive(session, data.toString())
    })
    this.#webSocket.on('close', () => {
      this.#discardHeld()
      this.#unsent.clear()
      session.end()
      this.#deps.closed(this)
    })
  }

  #receive(session: SocketSession, text: string): void {
    this.#work = this.#work
      .then(() => (this.open ? session.receive(text) : undefined))
      .catch((error: unknown) => {
        this.#deps.failed(error)
        this.close(1011, 'internal error')
      })
  }
}
