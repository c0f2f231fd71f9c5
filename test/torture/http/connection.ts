import { connect } from 'node:net'
import { mustBeLoopback } from '../loopback.ts'

/** How a client sends: at once or in pieces; to its end, or away in the middle. */
export interface Manner {
  pieces: number
  /** Disconnects after so many octets, with a reset or without. */
  leaves: { after: number; reset: boolean } | undefined
}

/** Milliseconds in which a connection must have ended. */
const patience = 60_000

/** Sends some octets to a box; answers all that came back until the box closes, or until what came is enough. */
export function exchanged(
  url: URL,
  octets: Buffer,
  { pieces, leaves }: Manner,
  isEnough: (received: Buffer) => boolean,
): Promise<Buffer> {
  mustBeLoopback(url.hostname)
  return new Promise((resolve, reject) => {
    const received: Buffer[] = []
    const socket = connect({ host: url.hostname, port: Number(url.port), allowHalfOpen: true, noDelay: true })
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`the connection did not end within ${patience} ms`))
    }, patience)
    let sent = false
    const endIfEnough = (): void => {
      if (sent && isEnough(Buffer.concat(received))) socket.end()
    }
    socket.on('data', (piece: Buffer) => {
      received.push(piece)
      endIfEnough()
    })
    // a box that has refused a request may reset the rest
    socket.on('error', () => undefined)
    socket.on('end', () => socket.end())
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(Buffer.concat(received))
    })
    socket.on('connect', () => {
      const whole = leaves ? octets.subarray(0, leaves.after) : octets
      const size = Math.ceil(whole.length / pieces)
      const send = (at: number): void => {
        if (at >= whole.length) {
          sent = true
          if (!leaves) endIfEnough()
          else if (leaves.reset) socket.resetAndDestroy()
          else socket.destroy()
          return
        }
        socket.write(whole.subarray(at, at + size), () => setImmediate(send, at + size))
      }
      send(0)
    })
  })
}
