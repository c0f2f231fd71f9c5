import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { getCACertificates } from 'node:tls'
import { Worker } from 'node:worker_threads'
import type { TlsAuthorities, TlsFacts, TlsOptions, TlsOrder, TlsReport } from './tls-worker.ts'

/** A connection with TLS. It emits `secureConnect` when the handshake is complete; then it has the facts. */
export interface SecureStream extends Duplex {
  facts: TlsFacts | undefined
  readonly remoteAddress: string | undefined
  bytesRead: number
  bytesWritten: number
  /** Emits `timeout` when nothing was read or written for so many milliseconds; 0 for never. */
  setTimeout(milliseconds: number): SecureStream
}

/** Bytes of the server that the thread has not read, above which no more is read from the socket. */
const window = 256 * 1024

/** The heap of the thread in megabytes. */
const memory = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8 }

/**
 * A TLS client on an open connection to a server of strangers. All of TLS is in a thread of its own: a server chooses what its certificates cost (four
 * seconds for 16 KB of keys with curves of its own), and nothing else may wait for them.
 */
export function secureStream(socket: Socket, options: TlsOptions): SecureStream {
  const thread = (running ??= startThread())
  const id = thread.next++
  const post = (order: OrderOf<TlsOrder>): void => thread.worker.postMessage({ ...order, id })
  let written: (() => void) | undefined
  /** Bytes of text that are not yet read here, and bytes of the server that are not yet read by the thread. */
  let owed = 0
  let unread = 0
  let timer: NodeJS.Timeout | undefined
  const duplex = new Duplex({
    allowHalfOpen: false,
    read() {
      if (owed > 0) post({ read: owed })
      owed = 0
    },
    write(text: Buffer, _encoding, done) {
      timer?.refresh()
      stream.bytesWritten += text.length
      written = done
      post({ text })
    },
    final(done) {
      post({ text: null })
      done()
    },
    destroy(error, done) {
      clearTimeout(timer)
      post({ close: true })
      thread.connections.delete(id)
      socket.destroy()
      done(error)
    },
  })
  const stream: SecureStream = Object.assign(duplex, {
    facts: undefined,
    remoteAddress: socket.remoteAddress,
    bytesRead: 0,
    bytesWritten: 0,
    setTimeout(milliseconds: number) {
      clearTimeout(timer)
      timer = milliseconds === 0 ? undefined : setTimeout(() => stream.emit('timeout'), milliseconds).unref()
      return stream
    },
  })
  const receive = (report: TlsReport): void => {
    if ('sealed' in report) {
      if (report.sealed === null) socket.end()
      else socket.write(report.sealed, () => post({ sent: true }))
    } else if ('read' in report) {
      unread -= report.read
      if (unread <= window) socket.resume()
    } else if ('written' in report) written?.()
    else if ('facts' in report) {
      stream.facts = report.facts
      stream.emit('secureConnect')
    } else if ('text' in report) {
      timer?.refresh()
      owed += report.text?.length ?? 0
      stream.bytesRead += report.text?.length ?? 0
      stream.push(report.text)
    } else stream.destroy(Object.assign(new Error(report.failed.message), report.failed))
  }
  thread.connections.set(id, { receive, end: (error) => stream.destroy(error) })
  share(thread, getCACertificates('default'))
  post({ open: { ...options, remoteAddress: socket.remoteAddress ?? '' } })
  socket.on('data', (sealed: Buffer) => {
    unread += sealed.length
    if (unread > window) socket.pause()
    post({ sealed })
  })
  socket.on('end', () => post({ sealed: null }))
  socket.on('error', (error) => stream.destroy(error))
  socket.resume()
  return stream
}

type OrderOf<Order> = Order extends unknown ? Omit<Order, 'id'> : never

interface Thread {
  worker: Worker
  connections: Map<number, { receive(report: TlsReport): void; end(error: Error): void }>
  next: number
  /** Of this thread: those set with `setDefaultCACertificates` count in the other too. */
  authorities: readonly string[] | undefined
}

/** The thread, from the first connection on. */
let running: Thread | undefined

function startThread(): Thread {
  const worker = new Worker(new URL('./tls-worker.ts', import.meta.url), { name: 'tls', resourceLimits: memory })
  const thread: Thread = { worker, connections: new Map(), next: 1, authorities: undefined }
  const end = (error: Error): void => {
    if (running === thread) running = undefined
    for (const connection of thread.connections.values()) connection.end(error)
  }
  worker.unref()
  worker.on('message', (report: TlsReport) => thread.connections.get(report.id)?.receive(report))
  worker.on('error', end)
  worker.on('exit', () => end(new Error('the TLS thread ended')))
  return thread
}

function share(thread: Thread, authorities: readonly string[]): void {
  if (authorities === thread.authorities) return
  thread.authorities = authorities
  thread.worker.postMessage({ authorities } satisfies TlsAuthorities)
}
