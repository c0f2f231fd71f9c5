import { connect, createServer, type Socket } from 'node:net'
import { once } from 'node:events'

/** A way to a server that can be cut. */
export interface CuttingProxy {
  port: number
  /** Cuts the connection that sends these bytes next: before they arrive, or when they have and before there is an answer. */
  cutAt(bytes: string, when: 'before' | 'after'): void
  /** Resolves when that connection was cut. */
  cut(): Promise<void>
  /** Lets nothing through, as a network that is down: connections stay, and nobody is told. */
  block(): void
  /** Lets requests through, and no answers. */
  mute(): void
  /** Ends the connections that were blocked; new ones reach the server. */
  unblock(): void
  /** Ends all connections; new ones reach the server on this port. */
  turnTo(port: number): void
  close(): Promise<void>
}

export async function cuttingProxy(first: number): Promise<CuttingProxy> {
  let port = first
  let wanted: { bytes: string; when: 'before' | 'after'; done: () => void } | undefined
  let cut = Promise.resolve()
  let blocked = false
  let muted = false
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        upstream.destroy()
      })
    }
    let mute = false
    upstream.on('data', (bytes) => mute || blocked || muted || client.write(bytes))
    client.on('data', (bytes) => {
      if (blocked) return
      const { bytes: text, when, done } = wanted ?? {}
      if (text === undefined || !bytes.includes(text)) {
        upstream.write(bytes)
        return
      }
      wanted = undefined
      mute = true
      if (when === 'after') upstream.write(bytes)
      // the server has time to act on it, and nobody hears of it
      setTimeout(() => {
        client.destroy()
        done?.()
      }, 200)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as { port: number }).port,
    cutAt(bytes, when) {
      cut = new Promise((done) => (wanted = { bytes, when, done }))
    },
    cut: () => cut,
    block: () => void (blocked = true),
    mute: () => void (muted = true),
    unblock() {
      for (const socket of sockets) socket.destroy()
      blocked = false
      muted = false
    },
    turnTo(next) {
      port = next
      for (const socket of sockets) socket.destroy()
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
