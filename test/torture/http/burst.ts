import { connect, type Socket } from 'node:net'
import { atOnce } from '../box/at-once.ts'
import { type Answer, type Answered, apiKey } from '../box/world.ts'
import { abreast, addressOf } from '../crowd/clients.ts'
import { mustBeLoopback } from '../loopback.ts'
import { answersOf, type RawAnswer } from './answers.ts'

export interface Call {
  method: string
  path: string
  body?: object
}

/** Requests of one connection, one behind the other: the box disconnects who sends more. */
const pipelined = 8

/** Milliseconds in which a connection must have ended. */
const patience = 120_000

interface Options {
  key?: string
  /** Told, each time some answers have come, how many there are. */
  heard?: (answers: number) => void
}

/**
 * Makes calls at once: the last of them is written before an answer to the first is read. Each connection has eight; twenty connections share an
 * address. Answers what came back in the order of the calls, undefined for a call whose connection ended before.
 */
export async function burst(api: string, calls: readonly Call[], options: Options = {}): Promise<(Answer | undefined)[]> {
  const { hostname: host, port } = new URL(api)
  mustBeLoopback(host)
  const groups = Array.from({ length: Math.ceil(calls.length / pipelined) }, (_, index) =>
    calls.slice(index * pipelined, (index + 1) * pipelined),
  )
  const { key = apiKey, heard } = options
  const sockets = await atOnce(
    abreast,
    groups.map((group, index) => async () => {
      const socket = await opened({ host, port: Number(port), localAddress: addressOf(index) })
      // at once: the box waits ten seconds for the first request of a connection
      await written(socket, octetsOf(group, host, key))
      return socket
    }),
  )
  let count = 0
  const hear = (piece: Buffer): void => heard?.((count += piece.toString('latin1').split('HTTP/1.1 ').length - 1))
  const answers = await Promise.all(groups.map((group, index) => answersTo(group, sockets[index]!, hear)))
  return answers.flat()
}

/** Resolves also for a socket that was refused: its calls have no answer. */
function opened(target: { host: string; port: number; localAddress: string }): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect({ ...target, noDelay: true })
    // nothing is read until all is written
    socket.pause()
    socket.on('error', () => resolve(socket))
    socket.once('connect', () => resolve(socket))
  })
}

function written(socket: Socket, octets: Buffer): Promise<void> {
  return new Promise((resolve) => void socket.write(octets, () => resolve()))
}

function octetsOf(calls: readonly Call[], host: string, key: string): Buffer {
  const requests = calls.map(({ method, path, body }, index) => {
    const text = body === undefined ? '' : JSON.stringify(body)
    const lines = [
      `${method} ${path} HTTP/1.1`,
      `Host: ${host}`,
      `Authorization: Bearer ${key}`,
      ...(body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(text)}`]),
      ...(index === calls.length - 1 ? ['Connection: close'] : []),
    ]
    return `${lines.join('\r\n')}\r\n\r\n${text}`
  })
  return Buffer.from(requests.join(''))
}

async function answersTo(calls: readonly Call[], socket: Socket, hear: (piece: Buffer) => void): Promise<(Answer | undefined)[]> {
  const received: Buffer[] = []
  if (!socket.destroyed)
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        socket.destroy()
        reject(new Error(`a connection did not end within ${patience} ms`))
      }, patience)
      socket.on('data', (piece: Buffer) => {
        received.push(piece)
        hear(piece)
      })
      socket.on('end', () => socket.end())
      socket.on('close', () => {
        clearTimeout(timer)
        resolve()
      })
      socket.resume()
    })
  const answers = wholeOf(Buffer.concat(received), calls)
  return calls.map((_, index) => answers[index])
}

/** The answers that came as a whole: a box that ends cuts the last one. */
function wholeOf(octets: Buffer, calls: readonly Call[]): Answer[] {
  const answers: RawAnswer[] = []
  const methods = calls.map(({ method }) => method)
  try {
    for (const answer of answersOf(octets, methods)) answers.push(answer)
  } catch {
    // what is cut is no answer
  }
  return answers.map(({ status, body }) => ({
    status,
    body: body.length === 0 ? {} : (JSON.parse(body.toString()) as Answered),
  }))
}
