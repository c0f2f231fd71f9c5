import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { getCACertificates } from 'node:tls'
import { Worker } from 'node:worker_threads'
import type { TlsAuthorities, TlsFacts, TlsOptions, TlsOrder, TlsReport } from './tls-worker.ts'

/** Octets of the server that the thread has not read, above which no more is read from the socket. */
const window = 256 * 1024

/** The heap of the thread in megabytes. */
const memory = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8 }

/**
 * A TLS client on an open connection to a server of strangers. All of TLS is in a thread of its own: a server chooses what its certificates cost (four
 * seconds for 16 KB of keys with curves of its own), and nothing else may wait for them. Emits `secureConnect` when the handshake is complete.
 */
export class SecureStream extends Duplex {
  /** Set when the handshake is complete. */
  facts: TlsFacts | undefined
  bytesRead = 0
  bytesWritten = 0
  readonly #socket: Socket
  readonly #thread: TlsThread
  readonly #id: number
  #written: (() => void) | undefined
  /** Octets of text that are not yet read. */
  #owed = 0
  #unread = 0
  #timer: NodeJS.Timeout | undefined

  constructor(socket: Socket, options: TlsOptions) {
    super({ allowHalfOpen: false })
    this.#socket = socket
    this.#thread = TlsThread.running()
    this.#id = this.#thread.add(this)
    this.#post({ open: { ...options, remoteAddress: socket.remoteAddress ?? '' } })
    socket.on('data', (sealed: Buffer) => {
      this.#unread += sealed.length
      if (this.#unread > window) socket.pause()
      this.#post({ sealed })
    })
    socket.on('end', () => this.#post({ sealed: null }))
    socket.on('error', (error) => this.destroy(error))
    socket.resume()
  }

  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress
  }

  /** Emits `timeout` when nothing was read or written for so many milliseconds; 0 for never. */
  setTimeout(milliseconds: number): this {
    clearTimeout(this.#timer)
    this.#timer = milliseconds === 0 ? undefined : setTimeout(() => this.emit('timeout'), milliseconds).unref()
    return this
  }

  ref(): this {
    this.#socket.ref()
    return this
  }

  unref(): this {
    this.#socket.unref()
    return this
  }

  /** Takes a message of the thread. */
  receive(report: TlsReport): void {
    if ('sealed' in report) {
      if (report.sealed === null) this.#socket.end()
      else this.#socket.write(report.sealed, () => this.#post({ sent: true }))
    } else if ('read' in report) {
      this.#unread -= report.read
      if (this.#unread <= window) this.#socket.resume()
    } else if ('written' in report) {
      const written = this.#written
      this.#written = undefined
      written?.()
    } else if ('facts' in report) {
      this.facts = report.facts
      this.emit('secureConnect')
    } else if ('text' in report) {
      this.#timer?.refresh()
      this.#owed += report.text?.length ?? 0
      this.bytesRead += report.text?.length ?? 0
      this.push(report.text)
    } else this.destroy(Object.assign(new Error(report.failed.message), report.failed))
  }

  override _read(): void {
    if (this.#owed > 0) this.#post({ read: this.#owed })
    this.#owed = 0
  }

  override _write(text: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#timer?.refresh()
    this.bytesWritten += text.length
    this.#written = done
    this.#post({ text })
  }

  override _final(done: () => void): void {
    this.#post({ text: null })
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#timer)
    this.#post({ close: true })
    this.#thread.remove(this.#id)
    this.#socket.destroy()
    done(error)
  }

  #post(order: OrderOf<TlsOrder>): void {
    this.#thread.post({ ...order, id: this.#id })
  }
}

type OrderOf<Order> = Order extends unknown ? Omit<Order, 'id'> : never

/** The thread, from the first connection on. */
class TlsThread {
  static #running: TlsThread | undefined
  readonly #worker = new Worker(new URL('./tls-worker.ts', import.meta.url), { name: 'tls', resourceLimits: memory })
  readonly #streams = new Map<number, SecureStream>()
  /** Of this thread: those set with `setDefaultCACertificates` count in the other too. */
  #authorities: readonly string[] | undefined
  #next = 1

  static running(): TlsThread {
    return (TlsThread.#running ??= new TlsThread())
  }

  private constructor() {
    this.#worker.unref()
    this.#worker.on('message', (report: TlsReport) => this.#streams.get(report.id)?.receive(report))
    this.#worker.on('error', (error) => this.#end(error))
    this.#worker.on('exit', () => this.#end(new Error('its thread ended')))
  }

  add(stream: SecureStream): number {
    this.#streams.set(this.#next, stream)
    return this.#next++
  }

  remove(id: number): void {
    this.#streams.delete(id)
  }

  post(order: TlsOrder): void {
    const authorities = getCACertificates('default')
    if ('open' in order && authorities !== this.#authorities) {
      this.#authorities = authorities
      this.#worker.postMessage({ authorities } satisfies TlsAuthorities)
    }
    this.#worker.postMessage(order)
  }

  #end(error: Error): void {
    if (TlsThread.#running === this) TlsThread.#running = undefined
    for (const stream of this.#streams.values()) stream.destroy(error)
  }
}
