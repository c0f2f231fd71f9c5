import type { Socket } from 'node:net'

/**
 * Closes a connection with this error once more than `most` octets have come in answer to what was last said on it: heads, interim
 * answers and chunk extensions are no body, and an HTTP client reads them without end.
 */
export function allow(socket: Socket, most: number, tooMuch: () => Error): void {
  let said = socket.bytesWritten
  let heard = socket.bytesRead
  let before = heard
  socket.on('readable', () => {
    const { bytesWritten, bytesRead } = socket
    if (bytesWritten !== said) {
      said = bytesWritten
      before = heard
    }
    heard = bytesRead
    if (heard - before > most) socket.destroy(tooMuch())
  })
}
