import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { json } from 'node:stream/consumers'
import { connect as connectSecurely } from 'node:tls'
import { WebSocket } from 'ws'
import type { Answered } from '../box/world.ts'

/** Connections that are opened at once. */
export const abreast = 50

/** The address from which a client calls: twenty share one. */
export function addressOf(number: number): string {
  const host = Math.floor(number / 20)
  return `127.1.${Math.floor(host / 250)}.${(host % 250) + 1}`
}

/** A client that sends an octet at a time. */
export class SlowClient {
  readonly #socket: Socket
  readonly #octets: string
  #sent = 0
  heard = ''

  private constructor(socket: Socket, octets: string) {
    this.#socket = socket
    this.#octets = octets
    socket.on('error', () => undefined)
    socket.on('data', (octet: Buffer) => (this.heard = (this.heard + octet.toString('latin1')).slice(0, 500)))
  }

  /** Connects from the address of this number; resolves at once for a client that was refused. */
  static async open(
    target: { host: string; port: number; secure: boolean },
    octets: string,
    number: number,
  ): Promise<SlowClient> {
    const options = { host: target.host, port: target.port, localAddress: addressOf(number) }
    const socket = target.secure ? connectSecurely({ ...options, rejectUnauthorized: false }) : connect(options)
    const client = new SlowClient(socket, octets)
    await new Promise<void>((resolve) => {
      socket.once(target.secure ? 'secureConnect' : 'connect', resolve)
      socket.once('close', () => resolve())
    })
    return client
  }

  /** True if the box has let it in, and has not ended it but for being slow. */
  get wasLetIn(): boolean {
    if (this.#socket.writable && !this.#socket.readableEnded) return true
    return this.heard.includes('request_timeout')
  }

  /** Sends the next octet. */
  step(): void {
    if (this.#socket.writable) this.#socket.write(this.#octets[this.#sent++ % this.#octets.length]!)
  }

  end(): void {
    this.#socket.destroy()
  }
}

/** A WebSocket that hears of mail; `heard` are the subjects. */
export class Listener {
  readonly heard: string[] = []
  readonly #socket: WebSocket

  private constructor(socket: WebSocket) {
    this.#socket = socket
  }

  /** Resolves once it is subscribed. */
  static async open(api: string, token: string, number: number): Promise<Listener> {
    const url = `${api.replace('http', 'ws')}/v1/realtime?token=${token}`
    const socket = new WebSocket(url, { localAddress: addressOf(number), perMessageDeflate: false })
    const listener = new Listener(socket)
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject)
      socket.on('close', (code) => reject(new Error(`A socket was closed with ${code}.`)))
      socket.on('open', () => socket.send(JSON.stringify({ type: 'subscribe', channel: 'email_messages' })))
      socket.on('message', (text: Buffer) => {
        const frame = JSON.parse(text.toString()) as Answered
        if (frame['type'] === 'subscribed') resolve()
        else if (frame['type'] === 'event') listener.heard.push(JSON.stringify(frame))
      })
    })
    return listener
  }

  end(): void {
    this.#socket.terminate()
  }
}

/** Calls that wait for mail; each answers its body, or why there is none. */
export class Waits {
  readonly #agent = new Agent({ keepAlive: false })

  ask(api: string, path: string, { key, number }: { key: string; number: number }): Promise<Answered> {
    return new Promise((resolve) => {
      const fail = ({ message }: Error): void => resolve({ failed: message })
      const options = { agent: this.#agent, localAddress: addressOf(number), headers: { Authorization: `Bearer ${key}` } }
      const asked = request(`${api}${path}`, options, (response) => {
        json(response).then((body) => resolve({ ...(body as Answered), http: response.statusCode }), fail)
      })
      asked.on('error', fail)
      asked.end()
    })
  }

  end(): void {
    this.#agent.destroy()
  }
}
