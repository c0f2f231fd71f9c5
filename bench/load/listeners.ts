import { connect, type Socket } from 'node:net'
import { answerQuestions } from '../program.ts'
import { Arrivals } from './arrivals.ts'

// Subscribers, many in one process: they read frames (RFC 6455) and do nothing that could be spared, so that who sends is the narrow place.

interface Joining {
  host: string
  port: number
  path: string
  /** One socket for each: what it sends when it is open. */
  frames: string[]
}

const arrivals = new Arrivals()
const sockets: Socket[] = []
let numbered: RegExp | undefined
const together = 100

function join({ host, port, path }: Joining, frame: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let open = false
    let held: Buffer = Buffer.alloc(0)
    const take = (text: string): void => {
      if (text.includes('"type":"event"')) arrivals.note(numbered?.exec(text)?.[1])
      else if (text.includes('"type":"subscribed"')) resolve()
      else reject(new Error(text))
    }
    const read = (octets: Buffer): void => {
      held = held.length === 0 ? octets : Buffer.concat([held, octets])
      if (!open) {
        const end = held.indexOf('\r\n\r\n')
        if (end === -1) return
        if (!held.toString('latin1', 0, 12).includes(' 101')) return reject(new Error(held.toString('latin1')))
        open = true
        held = held.subarray(end + 4)
        socket.write(masked(frame))
      }
      for (let next = frameOf(held); next; next = frameOf(held)) {
        if (next.ping) socket.write(masked(next.text, pong))
        else take(next.text)
        held = held.subarray(next.end)
      }
      // the buffer is read into again
      if (held.length > 0) held = Buffer.from(held)
    }
    const callback = (size: number, buffer: Uint8Array): boolean => {
      read(Buffer.from(buffer.buffer, 0, size))
      return true
    }
    const socket = connect({ host, port, onread: { buffer: shared, callback } })
    sockets.push(socket)
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('a socket was closed')))
    socket.on('connect', () =>
      socket.write(
        `GET ${path} HTTP/1.1\r\nHost: ${host}:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
      ),
    )
  })
}

const shared = Buffer.from(new ArrayBuffer(64 * 1024))

/** The first bytes of the frames that are sent, and the opcode of a ping. */
const [text, pong, ping] = [0x81, 0x8a, 0x09]

/** The first whole frame: a text or a ping. */
function frameOf(octets: Buffer): { ping: boolean; text: string; end: number } | undefined {
  if (octets.length < 2) return undefined
  const short = octets[1]! & 0x7f
  if (short === 127) throw new Error('a frame too long')
  const start = short === 126 ? 4 : 2
  if (octets.length < start) return undefined
  const end = start + (short === 126 ? octets.readUInt16BE(2) : short)
  return octets.length < end
    ? undefined
    : { ping: (octets[0]! & 0x0f) === ping, text: octets.toString('latin1', start, end), end }
}

/** A client masks what it sends; zeros leave it readable. */
function masked(payload: string, first = text): Buffer {
  const body = Buffer.from(payload)
  const size = body.length < 126 ? [0x80 | body.length] : [0xfe, body.length >> 8, body.length & 0xff]
  return Buffer.concat([Buffer.from([first, ...size, 0, 0, 0, 0]), body])
}

answerQuestions({
  /** Resolves when every socket is subscribed. */
  join: async (joining: Joining) => {
    for (let first = 0; first < joining.frames.length; first += together) {
      await Promise.all(joining.frames.slice(first, first + together).map((frame) => join(joining, frame)))
    }
  },
  leave: () => {
    for (const socket of sockets.splice(0)) socket.destroy()
  },
  /** Begins anew; `pattern` finds the number in a frame, when the times are wanted. */
  reset: ({ pattern }: { pattern?: string }) => {
    numbered = pattern === undefined ? undefined : new RegExp(pattern)
    arrivals.reset()
  },
  until: (count: number) => arrivals.until(count),
  told: () => ({ count: arrivals.count, times: arrivals.times }),
})
