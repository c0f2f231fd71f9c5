import type { Socket } from 'node:net'
import type { Log } from '../core/log.ts'
import { canonicalAddress, type Networks } from './networks.ts'
import { readProxyHeader } from './proxy-header.ts'

/** Milliseconds in which the header must have arrived: it is the first that a proxy sends, and may be lost once. */
const headerTimeout = 5000

/**
 * Connections of proxies that speak the PROXY protocol. Each must begin with its header, as the proxy could not be told from a client otherwise; from any
 * other address the header is what a client has sent.
 */
export class ProxiedConnections {
  readonly #proxies: () => Networks
  readonly #log: Log
  readonly #timeout: number
  /** Those whose header has not arrived. */
  readonly #waiting = new Set<Socket>()

  constructor(proxies: () => Networks, log: Log, timeout: number = headerTimeout) {
    this.#proxies = proxies
    this.#log = log
    this.#timeout = timeout
  }

  /** Calls `serve` with a connection that has the address of its client: at once, or when the header of its proxy has been read. */
  accept(socket: Socket, serve: (socket: Socket) => void): void {
    const { remoteAddress } = socket
    if (remoteAddress === undefined || !this.#proxies().has(remoteAddress)) return serve(socket)
    let received: Buffer = Buffer.alloc(0)
    const leave = (): void => {
      clearTimeout(timer)
      this.#waiting.delete(socket)
      socket.off('data', read).off('end', end).off('close', leave).off('error', ignore)
    }
    const refuse = (why: string): void => {
      leave()
      socket.on('error', ignore).destroy()
      this.#log.warn({ ip: canonicalAddress(remoteAddress), why }, 'connection of a proxy was closed')
    }
    const read = (bytes: Buffer): void => {
      received = received.length === 0 ? bytes : Buffer.concat([received, bytes])
      const header = readProxyHeader(received)
      if (header === undefined) return
      if (typeof header === 'string') return refuse(header)
      socket.pause()
      leave()
      if (header.client) setClient(socket, header.client)
      serve(socket)
      if (socket.destroyed) return
      // the server may have replaced this method, to read in turns
      if (received.length > header.length) socket.push(received.subarray(header.length))
      socket.resume()
    }
    // a port that is only probed
    const end = (): void => {
      if (received.length > 0) return refuse('it ended within its PROXY protocol header')
      leave()
      socket.on('error', ignore).destroy()
    }
    const timer = setTimeout(() => refuse(`it sent no PROXY protocol header within ${this.#timeout} ms`), this.#timeout)
    this.#waiting.add(socket)
    socket.on('data', read).on('end', end).on('close', leave).on('error', ignore)
  }

  /** Closes the connections whose header has not arrived: no server knows them. */
  cut(): void {
    for (const socket of this.#waiting) socket.destroy()
  }
}

function ignore(): void {
  // 'close' follows
}

function setClient(socket: Socket, { address, port }: { address: string; port: number }): void {
  Object.defineProperties(socket, {
    remoteAddress: { value: address },
    remotePort: { value: port },
    remoteFamily: { value: address.includes(':') ? 'IPv6' : 'IPv4' },
  })
}
