import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import { limitRecords } from '../../net/tls-records.ts'

/** PEM texts. */
export interface TlsPair {
  cert: string
  key: string
}

/** The certificates of a port. */
export interface ServedCertificate {
  certificate: () => TlsPair
  /** The certificate for a host name (SNI), if it is not the default. */
  byHostname?: ((host: string) => SecureContext | undefined) | undefined
}

/** The TLS of an HTTP server: hands it connections when their handshake is complete. Used in place of `node:https`, which reads records without limits. */
export class TlsAcceptor {
  readonly #served: ServedCertificate
  readonly #options: { timeout: number; failed: (() => void) | undefined }
  /** Connections whose handshake is not complete. */
  readonly #open = new Set<TLSSocket>()
  #context: SecureContext

  /** `timeout` of the handshake, in milliseconds; `failed` is called when one fails. */
  constructor(server: Server, served: ServedCertificate, options: { timeout: number; failed: (() => void) | undefined }) {
    this.#served = served
    this.#options = options
    this.#context = contextOf(served.certificate())
    interceptConnections(server, (socket, serve) => this.#accept(socket, serve))
  }

  renew(certificate: TlsPair): void {
    this.#context = contextOf(certificate)
  }

  /** Ends the connections whose handshake is not complete: the HTTP server does not know them. */
  cut(): void {
    for (const secured of this.#open) secured.destroy()
  }

  #accept(socket: Socket, serve: (secured: TLSSocket) => void): void {
    // a peer that has disconnected, or was refused
    if (socket.destroyed) return
    const { remoteAddress, remotePort } = socket
    socket.setNoDelay(true)
    const { stream, complete } = limitRecords(socket)
    const { byHostname } = this.#served
    const secured = new TLSSocket(stream, {
      isServer: true,
      secureContext: this.#context,
      ALPNProtocols: ['http/1.1'],
      ...(byHostname ? { SNICallback: (host: string, done) => done(null, byHostname(host)) } : {}),
    })
    Object.defineProperties(secured, { remoteAddress: { value: remoteAddress }, remotePort: { value: remotePort } })
    const fail = (): void => void secured.destroy()
    const failed = (): void => this.#options.failed?.()
    const timer = setTimeout(fail, this.#options.timeout)
    const settle = (): void => {
      clearTimeout(timer)
      this.#open.delete(secured)
    }
    this.#open.add(secured)
    secured.on('error', fail).on('_tlsError', fail)
    secured.once('close', failed).once('close', settle)
    secured.once('secure', () => {
      settle()
      secured.disableRenegotiation()
      // from here on the HTTP server listens, but not for errors of TLS
      secured.off('error', fail).off('close', failed)
      complete(secured)
      serve(secured)
    })
  }
}

/** Has a server get its connections from `accept`, which calls `serve` with what takes the place of a socket. */
export function interceptConnections(server: Server, accept: (socket: Socket, serve: (socket: Socket) => void) => void): void {
  const listeners = server.listeners('connection') as ((socket: Socket) => void)[]
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) =>
    accept(socket, (served) => {
      for (const listener of listeners) listener.call(server, served)
    }),
  )
}

function contextOf({ cert, key }: TlsPair): SecureContext {
  return createSecureContext({ cert, key, minVersion: 'TLSv1.2', honorCipherOrder: true })
}
