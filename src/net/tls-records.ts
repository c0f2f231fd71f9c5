import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { FairQueue } from '../core/fair-queue.ts'
import { maxOverhead } from './handshake.ts'
import { networkOf } from './networks.ts'

/** Maximum bytes of a client until its handshake is complete: a ClientHello with hybrid keys has two thousand. */
const maxHandshake = 16 * 1024

/** Bytes that are read at once: those of the largest record, or of six hundred of the smallest. */
const slice = 16 * 1024

/** Milliseconds in each iteration of the event loop for the records of all TLS clients; other work is done between. */
const budget = 10

/** A connection on which a TLS server reads the records of a client. */
export interface LimitedRecords {
  /** The socket, for the TLS server; it ends with an error when the client sends too much that is no text. */
  stream: Duplex
  /** The handshake is over. */
  complete: (secured: Pick<Socket, 'bytesRead'>) => void
}

/**
 * Limits what a TLS client may cost: its records are read in turns with those of other networks, and those without text are limited. Without it a packet
 * of 20,000 new keys (KeyUpdate, RFC 8446 4.6.3), of which no TLS library limits the number, is a quarter of a second.
 */
export function limitRecords(socket: Socket): LimitedRecords {
  const network = networkOf(socket.remoteAddress ?? '')
  let secured: Pick<Socket, 'bytesRead'> | undefined
  let received = 0
  let waiting = 0
  let full = false
  const proceed = (): void => {
    if (waiting === 0 && !full) socket.resume()
  }
  const stream = new Duplex({
    read() {
      full = false
      proceed()
    },
    write: (chunk: Buffer, _encoding, done) => void socket.write(chunk, done),
    // one copy costs less than as many writes
    writev: (chunks, done) => void socket.write(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer)), done),
    final: (done) => void socket.end(done),
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  const read = (octets: Buffer): void => {
    waiting -= 1
    if (stream.destroyed) return
    // what was passed on before, and what became of it
    const passed = received - stream.readableLength
    if (!secured && passed > maxHandshake) {
      stream.destroy(new Error(`its TLS handshake has more than ${maxHandshake} bytes`))
      return
    }
    if (secured && passed > maxOverhead.always + maxOverhead.perByte * secured.bytesRead) {
      stream.destroy(new Error('it sends TLS records without text'))
      return
    }
    received += octets.length
    full = !stream.push(octets)
    proceed()
  }
  socket.on('data', (octets: Buffer) => {
    for (let at = 0; at < octets.length; at += slice) {
      waiting += 1
      turns.enter(network, () => read(octets.subarray(at, at + slice)))
    }
    if (waiting > 0 || full) socket.pause()
  })
  socket.on('end', () => stream.push(null))
  socket.on('error', (error) => stream.destroy(error))
  socket.on('close', () => stream.destroy())
  return {
    stream,
    complete: (completed) => {
      secured = completed
      received = 0
    },
  }
}

/** Networks take turns; what the budget of an iteration does not suffice for is done in the next. */
class Turns {
  readonly #waiting = new FairQueue<() => void>()
  #spent = 0
  #scheduled = false

  enter(network: string, read: () => void): void {
    this.#waiting.push(network, read)
    this.#run()
  }

  #run(): void {
    while (this.#spent < budget) {
      const read = this.#waiting.shift()
      if (!read) break
      const begun = performance.now()
      read()
      this.#spent += performance.now() - begun
    }
    if (this.#spent === 0 || this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#spent = 0
      this.#run()
    })
  }
}

const turns = new Turns()
