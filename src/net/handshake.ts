import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { DEFAULT_CIPHERS } from 'node:tls'

/**
 * The ciphers offered to foreign servers: those of Node.js without finite-field key exchange, whose group the server chooses. One of
 * 10,000 bits takes a second of the event loop.
 */
export const clientCiphers = `${DEFAULT_CIPHERS}:!kDHE`

/**
 * Maximum bytes that a server sends until the TLS handshake is complete. Each KiB of certificates may take 6 ms of the event loop to verify, and
 * OpenSSL accepts 100 KiB. A scan of web servers found 14.5 KB at most, and 3.9 KB in three of four with three certificates (CA/Browser Forum,
 * performance list, May 2014).
 */
const maxHandshake = 16 * 1024

/** A connection on which a TLS client completes its handshake. */
export interface LimitedHandshake {
  /** The socket, for the TLS client; it ends with an error when the server sends too much before `complete`. */
  stream: Duplex
  /** Lifts the limit. */
  complete: () => void
}

/** Limits what the server sends in the TLS handshake. */
export function limitHandshake(socket: Socket): LimitedHandshake {
  let left = maxHandshake
  const stream = new Duplex({
    read: () => void socket.resume(),
    write: (chunk: Buffer, _encoding, done) => void socket.write(chunk, done),
    final: (done) => void socket.end(done),
    destroy(error, done) {
      socket.destroy()
      done(error)
    },
  })
  socket.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0)
      stream.destroy(new Error(`its TLS handshake has more than ${maxHandshake} bytes (too many or too large certificates)`))
    else if (!stream.push(chunk)) socket.pause()
  })
  socket.on('end', () => stream.push(null))
  socket.on('error', (error) => stream.destroy(error))
  socket.on('close', () => stream.destroy())
  return { stream, complete: () => (left = Infinity) }
}
