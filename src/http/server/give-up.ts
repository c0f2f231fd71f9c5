import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * Discards what is left of a body without a look at it: Node.js parses all that has arrived, and a packet holds ten thousand chunks. Nothing public does
 * this before the response is sent.
 */
export function discardBody(request: IncomingMessage): void {
  const internal = request as IncomingMessage & { _dump?: () => void }
  // oxlint-disable-next-line no-underscore-dangle -- its own name
  internal._dump?.()
}

/**
 * Closes a connection that has sent too much. Node.js makes an error for each request of the same packet, of which there are thousands: their stacks would
 * take most of the time.
 */
export function giveUp(socket: Duplex): void {
  if (socket.destroyed) return
  let { stackTraceLimit } = Error
  socket.prependOnceListener('close', () => {
    stackTraceLimit = Error.stackTraceLimit
    Error.stackTraceLimit = 0
  })
  socket.once('close', () => (Error.stackTraceLimit = stackTraceLimit))
  socket.destroy()
}
