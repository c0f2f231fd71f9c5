import { connect, type Socket } from 'node:net'

/** Opens a connection to an address; tests replace it. */
export type Dial = (place: { host: string; port: number }, signal: AbortSignal) => Promise<Socket>

/** A TCP connection; rejects when there is none, or when the signal aborts before there is. */
export const dialSocket: Dial = ({ host, port }, signal) =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true })
    const fail = (error: Error): void => {
      signal.removeEventListener('abort', abort)
      socket.destroy()
      reject(error)
    }
    const abort = (): void => fail(signal.reason as Error)
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort)
    // this listener stays: an error without any listener would end the process
    socket.on('error', fail)
    socket.once('connect', () => {
      signal.removeEventListener('abort', abort)
      resolve(socket)
    })
  })

const reasons: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was cut off',
  EPIPE: 'the connection was cut off',
  ETIMEDOUT: 'no connection in time',
  EHOSTUNREACH: 'there is no route to it',
  ENETUNREACH: 'there is no route to it',
  EADDRNOTAVAIL: 'there is no route to it',
}

/** A description of a connection error. */
export function connectFailure(error: unknown): string {
  if (!(error instanceof Error)) return 'it failed'
  if (error.name === 'TimeoutError') return 'no connection in time'
  return reasons[(error as NodeJS.ErrnoException).code ?? ''] ?? error.message.slice(0, 200)
}
