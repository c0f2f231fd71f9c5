import { constants } from 'node:crypto'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { DEFAULT_CIPHERS } from 'node:tls'
import { lruMap } from '../core/memory.ts'
import { networkOf } from './networks.ts'

/**
 * The TLS options towards servers of strangers. No finite-field key exchange, whose group the server chooses: one of 10,000 bits takes a
 * second. No renegotiation (TLS 1.2): the server could send other certificates as often as it likes.
 */
export const clientTls = {
  minVersion: 'TLSv1.2',
  ciphers: `${DEFAULT_CIPHERS}:!kDHE`,
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const

/**
 * Maximum bytes that a server sends until the TLS handshake is complete. Each KiB of ordinary certificates takes 7 ms at most to verify, one with
 * an elliptic curve of its own 250 ms, and OpenSSL accepts 100 KiB. A scan of web servers found 14.5 KB at most, and 3.9 KB in three of four with
 * three certificates (CA/Browser Forum, performance list, May 2014).
 */
const maxHandshake = 16 * 1024

/**
 * Bytes after the handshake that are no text of the application, and bytes for each byte of text: a record of TLS 1.3 has 22 bytes besides its text
 * (RFC 8446 5.2), a message without text (session tickets, key updates) takes some microseconds.
 */
const maxOverhead = { always: 64 * 1024, perByte: 4 }

/** The code of the error with which a handshake is refused because others with its network took too long. It says nothing about this server. */
export const networkBarred = 'NETWORK_BARRED'

/** A connection on which a TLS client completes its handshake. */
export interface LimitedHandshake {
  /** The socket, for the TLS client; it ends with an error when the server sends too much before `complete`. */
  stream: Duplex
  /** The handshake is over: from now on only what is no text of the application is limited. */
  complete: (client: Pick<Socket, 'bytesRead'>) => void
}

/** Limits what the server sends in the TLS handshake, and when: handshakes of all servers take turns. */
export function limitHandshake(socket: Duplex & { remoteAddress?: string | undefined }): LimitedHandshake {
  const network = networkOf(socket.remoteAddress ?? '')
  let received = 0
  let client: Pick<Socket, 'bytesRead'> | undefined
  let held: (Buffer | null)[] = []
  const stream = new Duplex({
    read: () => void socket.resume(),
    write: (chunk: Buffer, _encoding, done) => void socket.write(chunk, done),
    final: (done) => void socket.end(done),
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  const release = (): void => {
    const chunks = held
    held = []
    for (const chunk of chunks) if (!stream.destroyed && !stream.push(chunk)) socket.pause()
  }
  const read = (): void => {
    if (!turns.isBarred(network)) release()
    else {
      const why = 'certificates from its network take too long to verify: retry in some minutes'
      stream.destroy(Object.assign(new Error(why), { code: networkBarred }))
    }
  }
  const take = (chunk: Buffer | null): void => {
    held.push(chunk)
    if (client) release()
    else if (held.length === 1) turns.enter({ network, bytes: () => received, read })
  }
  socket.on('data', (chunk: Buffer) => {
    // the text of this chunk is not counted yet
    const isEmpty = client && received - stream.readableLength > maxOverhead.always + maxOverhead.perByte * client.bytesRead
    received += chunk.length
    if (!client && received > maxHandshake)
      stream.destroy(new Error(`its TLS handshake has more than ${maxHandshake} bytes (too many or too large certificates)`))
    else if (isEmpty) stream.destroy(new Error('it sends TLS records without text'))
    else take(chunk)
  })
  socket.on('end', () => take(null))
  socket.on('error', (error) => stream.destroy(error))
  socket.on('close', () => stream.destroy())
  return {
    stream,
    complete: (completed) => {
      client = completed
      release()
    },
  }
}

/** A connection whose server sent something in its handshake. */
interface Waiting {
  network: string
  /** All that the server sent so far. */
  bytes: () => number
  read: () => void
}

/** Milliseconds that a byte may cost, and how much the last turn counts in what a turn of its network takes. */
const costOfByte = 7 / 1024
const weight = 0.25

/**
 * Milliseconds of a turn from which its network is barred, and for how many times as long: it then takes a hundredth of the thread. The dearest
 * ordinary certificates take a fifth of that.
 */
const tooLong = { turn: 500, factor: 100 }

/**
 * One handshake at a time reads what its server sent, and this thread then has as much time for other connections, up to half a second: servers
 * that send their certificates at one moment take half of it at most, unless they are barred for it. First comes what costs least, by what handshakes with that network
 * took before, or by what was sent: ordinary servers do not wait for those with large certificates.
 */
class HandshakeTurns {
  readonly #waiting: Waiting[] = []
  /** Milliseconds of a turn, on average, by network. */
  readonly #times = lruMap<number>(10_000)
  /** The end, by `performance.now()`, of the time in which nothing of a network is read. */
  readonly #barred = lruMap<number>(10_000)
  #busy = false

  enter(waiting: Waiting): void {
    this.#waiting.push(waiting)
    if (!this.#busy) this.#next()
  }

  isBarred(network: string): boolean {
    return (this.#barred.peek(network) ?? 0) > performance.now()
  }

  #next(): void {
    const costs = this.#waiting.map(({ network, bytes }) => this.#times.peek(network) ?? bytes() * costOfByte)
    const [next] = this.#waiting.splice(costs.indexOf(Math.min(...costs)), 1)
    this.#busy = next !== undefined
    if (!next) return
    if (this.isBarred(next.network)) {
      next.read()
      setTimeout(() => this.#next())
      return
    }
    const before = process.threadCpuUsage()
    next.read()
    const { user, system } = process.threadCpuUsage(before)
    const took = (user + system) / 1000
    const usual = this.#times.get(next.network) ?? took
    this.#times.set(next.network, usual + weight * (took - usual))
    if (took > tooLong.turn) this.#barred.set(next.network, performance.now() + tooLong.factor * took)
    setTimeout(() => this.#next(), Math.min(took, tooLong.turn))
  }
}

const turns = new HandshakeTurns()
