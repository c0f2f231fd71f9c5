import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectSecurely, type ConnectionOptions, type TLSSocket } from 'node:tls'

/** A raw SMTP dialogue from the client's side: nothing is added to what a test sends, nothing is hidden of what comes back. */
export class Dialogue {
  /** All that came, decoded as Latin-1. */
  transcript = ''
  closed = false
  #socket: Socket
  #read = 0
  #wake: () => void = () => undefined

  constructor(socket: Socket) {
    this.#socket = socket
    this.#attach(socket)
  }

  /** Connects and reads nothing yet. */
  static async connect(port: number, host = '127.0.0.1', localAddress?: string): Promise<Dialogue> {
    const socket = connect(localAddress === undefined ? { port, host } : { port, host, localAddress })
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    return new Dialogue(socket)
  }

  /** Connected, greeted, and after EHLO. */
  static async hello(port: number): Promise<Dialogue> {
    const dialogue = await Dialogue.connect(port)
    await dialogue.reply()
    await dialogue.say('EHLO client.test')
    return dialogue
  }

  get socket(): Socket {
    return this.#socket
  }

  /** The next reply, all its lines; empty when the server closed instead. */
  async reply(): Promise<string> {
    for (;;) {
      const match = /^(?:\d{3}-[^\n]*\n)*\d{3} [^\n]*\r\n/.exec(this.transcript.slice(this.#read))
      if (match) {
        this.#read += match[0].length
        return match[0].trimEnd()
      }
      if (this.closed) return ''
      await this.#news()
    }
  }

  /** Sends a line and answers with its reply. */
  say(line: string): Promise<string> {
    this.send(`${line}\r\n`)
    return this.reply()
  }

  /** Sends octets as they are; text as UTF-8. */
  send(octets: string | Buffer): void {
    if (!this.#socket.destroyed) this.#socket.write(octets)
  }

  /** MAIL, RCPT for each recipient, DATA; answers with the reply to DATA. */
  async begin(recipients: string[] = ['user@box.test'], parameters = ''): Promise<string> {
    await this.say(`MAIL FROM:<sender@client.test>${parameters}`)
    for (const recipient of recipients) await this.say(`RCPT TO:<${recipient}>`)
    return this.say('DATA')
  }

  /** Hands over one message whole, with its final dot; answers with the last reply. */
  async deliver(message: string | Buffer, recipients?: string[]): Promise<string> {
    const ready = await this.begin(recipients)
    if (!ready.startsWith('354')) return ready
    this.send(Buffer.concat([Buffer.from(message), Buffer.from('.\r\n')]))
    return this.reply()
  }

  /** The TLS handshake after STARTTLS was answered with 220. */
  async upgrade(options: ConnectionOptions = {}): Promise<TLSSocket> {
    this.#socket.removeAllListeners('data')
    const secure = connectSecurely({ socket: this.#socket, rejectUnauthorized: false, ...options })
    secure.on('error', () => undefined)
    await once(secure, 'secureConnect')
    this.#socket = secure
    this.#attach(secure)
    return secure
  }

  /** Waits until the server has closed the connection. */
  async end(): Promise<void> {
    while (!this.closed) await this.#news()
  }

  /** Vanishes. */
  reset(): void {
    this.#socket.resetAndDestroy()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #attach(socket: Socket): void {
    socket.on('data', (chunk: Buffer) => {
      this.transcript += chunk.toString('latin1')
      this.#wake()
    })
    socket.on('close', () => {
      this.closed = true
      this.#wake()
    })
  }

  #news(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}

/** Sends octets in pieces that arrive one by one. */
export async function sendInPieces(dialogue: Dialogue, pieces: Buffer[]): Promise<void> {
  for (const piece of pieces) {
    dialogue.send(piece)
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
  }
}
