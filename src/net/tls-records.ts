import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { networkOf } from './networks.ts'
import { kindOf, readingTurns } from './reading-turns.ts'

/** Maximum bytes of a client until its handshake is complete: a ClientHello with hybrid keys has two thousand. */
const maxHandshake = 16 * 1024

/**
 * Records after the handshake, and bytes of text for each further one. A record without text, such as a new key (KeyUpdate, RFC 8446 4.6.3), of which no
 * TLS library limits the number, takes this thread 10 to 20 µs.
 */
const maxRecords = { always: 256, perText: 16 }

/** Bytes that are read at once: those of the largest record, or of six hundred of the smallest; and of a network that used no time lately. */
const slice = { usual: 16 * 1024, first: 2 * 1024 }

/** A connection on which a TLS server reads the records of a client. */
export interface LimitedRecords {
  /** The socket, for the TLS server; it ends with an error when the client sends too much that is no text. */
  stream: Duplex
  /** The handshake is over. */
  complete: (secured: Pick<Socket, 'bytesRead'>) => void
}

/** Limits what a TLS client may cost: its records are read in turns with those of other networks, and those without text are limited. */
export function limitRecords(socket: Socket): LimitedRecords {
  const network = networkOf(socket.remoteAddress ?? '')
  const records = new RecordCounter()
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
    if (!secured && received > maxHandshake) {
      stream.destroy(new Error(`its TLS handshake has more than ${maxHandshake} bytes`))
      return
    }
    // what waits in the stream was counted, and its text was not
    const isRead = stream.readableLength === 0
    if (secured && isRead && records.count > maxRecords.always + secured.bytesRead / maxRecords.perText) {
      stream.destroy(new Error('it sends TLS records without text'))
      return
    }
    received += octets.length
    records.read(octets)
    full = !stream.push(octets)
    proceed()
  }
  socket.on('data', (octets: Buffer) => {
    const size = readingTurns.isIdle(network) ? slice.first : slice.usual
    const kind = secured ? kindOf(octets, network) : 'handshake'
    for (let at = 0; at < octets.length; at += size) {
      waiting += 1
      readingTurns.enter(kind, network, () => read(octets.subarray(at, at + size)))
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
      records.count = 0
    },
  }
}

/** Counts TLS records by their headers (RFC 8446 5.1). */
class RecordCounter {
  count = 0
  /** Bytes of the header that were read, and the upper half of the length in it. */
  #seen = 0
  #upper = 0
  /** Bytes of the current record that are still to come. */
  #left = 0

  read(octets: Buffer): void {
    for (let at = 0; at < octets.length;) {
      if (this.#left > 0) {
        const taken = Math.min(this.#left, octets.length - at)
        this.#left -= taken
        at += taken
      } else {
        this.#readHeader(octets[at]!)
        at += 1
      }
    }
  }

  #readHeader(octet: number): void {
    this.#seen += 1
    if (this.#seen === 4) this.#upper = octet
    if (this.#seen < 5) return
    this.#left = this.#upper * 256 + octet
    this.#seen = 0
    this.count += 1
  }
}
