import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { onTestFinished } from 'vitest'

/** A message as it arrived, dots unstuffed. */
export interface Landed {
  from: string
  to: string[]
  raw: string
  octets: Buffer
  /** What followed the address in MAIL FROM. */
  parameters: string
  secure: boolean
  user: string | null
}

/** One connection as a script sees it. */
export interface Guest {
  readonly secure: boolean
  /** Octets as they are. */
  write: (text: string | Buffer) => void
  socket: Socket
}

/**
 * Answers a command (or `<greeting>`, or `<end>` after the final dot) in place of the sink: a reply without its CRLF, or null to say
 * nothing. Undefined leaves it to the sink.
 */
export type Script = (line: string, guest: Guest) => string | null | undefined

interface Options {
  tls?: { cert: string; key: string }
  /** TLS from the first octet. */
  implicit?: boolean
  extensions?: string[]
  /** It ends a line at any CR or LF, and drops NUL, as some servers do. */
  lenient?: boolean
  script?: Script
  host?: string
  port?: number
}

/** Somebody else's mail server, on loopback: a true SMTP server that keeps what it got, and misbehaves on demand. */
export class MailSink {
  readonly messages: Landed[] = []
  /** The octets of messages that came whole and were answered by the script. */
  readonly rejected: string[] = []
  /** Every line, commands only, in order. */
  readonly commands: string[] = []
  connections = 0
  open = 0
  script: Script | undefined
  /** Called with each message that came whole, before it is answered. */
  arrived: ((raw: string) => void) | undefined
  readonly #options: Options
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((socket) => this.#greet(socket))

  private constructor(options: Options) {
    this.#options = options
    this.script = options.script
  }

  /** Stopped when the test ends. */
  static async start(options: Options = {}): Promise<MailSink> {
    const sink = await MailSink.open(options)
    onTestFinished(() => sink.stop())
    return sink
  }

  static async open(options: Options = {}): Promise<MailSink> {
    const sink = new MailSink(options)
    sink.#server.listen(options.port ?? 0, options.host ?? '127.0.0.1')
    await once(sink.#server, 'listening')
    return sink
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #greet(socket: Socket): void {
    this.connections += 1
    this.open += 1
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.open -= 1
      this.#sockets.delete(socket)
    })
    if (this.#options.implicit) this.#serve(this.#secure(socket), true)
    else this.#serve(socket, false)
  }

  #secure(socket: Socket): TLSSocket {
    const secure = new TLSSocket(socket, { isServer: true, secureContext: createSecureContext(this.#options.tls) })
    secure.on('error', () => undefined)
    return secure
  }

  #serve(socket: Socket, secure: boolean, greeted = false): void {
    const dialogue = new Dialogue(this, socket, secure, {
      extensions: [
        ...(this.#options.extensions ?? ['SIZE 10485760', '8BITMIME']),
        ...(this.#options.tls && !secure ? ['STARTTLS'] : []),
      ],
      upgrade: () => this.#serve(this.#secure(socket), true, true),
      lenient: this.#options.lenient === true,
    })
    if (!greeted) dialogue.begin()
  }
}

interface Abilities {
  extensions: string[]
  upgrade: () => void
  lenient: boolean
}

class Dialogue {
  readonly #sink: MailSink
  readonly #guest: Guest
  readonly #socket: Socket
  readonly #abilities: Abilities
  #buffer = ''
  /** A CR whose LF may follow. */
  #held = ''
  #data = false
  #user: string | null = null
  #mail: { from: string; to: string[]; parameters: string } = { from: '', to: [], parameters: '' }

  constructor(sink: MailSink, socket: Socket, secure: boolean, abilities: Abilities) {
    this.#sink = sink
    this.#socket = socket
    this.#abilities = abilities
    this.#guest = { secure, socket, write: (text) => void (socket.writable && socket.write(text)) }
    socket.on('data', (chunk: Buffer) => this.#take(chunk.toString('latin1')))
  }

  begin(): void {
    this.#answer('<greeting>', () => '220 sink.test ESMTP')
  }

  #take(text: string): void {
    this.#buffer += this.#abilities.lenient ? this.#ended(text) : text
    for (;;) {
      const end = this.#data ? this.#endOfData() : this.#buffer.indexOf('\r\n')
      if (end < 0) return
      const piece = this.#buffer.slice(0, end)
      this.#buffer = this.#buffer.slice(end + (this.#data ? 3 : 2))
      if (this.#data) this.#land(piece)
      else if (this.#command(piece)) return
    }
  }

  /** What has come, each line with CRLF. */
  #ended(text: string): string {
    const all = `${this.#held}${text}`.replaceAll('\0', '')
    this.#held = all.endsWith('\r') ? '\r' : ''
    return all.slice(0, all.length - this.#held.length).replaceAll(/\r\n?|\n/g, '\r\n')
  }

  #endOfData(): number {
    if (this.#buffer.startsWith('.\r\n')) return 0
    const dot = this.#buffer.indexOf('\r\n.\r\n')
    return dot < 0 ? -1 : dot + 2
  }

  #land(stuffed: string): void {
    this.#data = false
    const octets = Buffer.from(stuffed.replaceAll(/^\./gm, ''), 'latin1')
    const raw = octets.toString('utf8')
    const before = this.#sink.messages.length
    this.#sink.arrived?.(raw)
    this.#answer('<end>', () => {
      this.#sink.messages.push({ ...this.#mail, raw, octets, secure: this.#guest.secure, user: this.#user })
      return '250 2.0.0 Ok: queued'
    })
    if (this.#sink.messages.length === before) this.#sink.rejected.push(raw)
  }

  /** Answers whether the dialogue goes on elsewhere. */
  #command(line: string): boolean {
    this.#sink.commands.push(line)
    const verb = line.split(/[ :]/, 1)[0]!.toUpperCase()
    const said = this.#answer(line, () => this.#usual(verb, line))
    if (verb === 'STARTTLS' && said.startsWith('220')) {
      this.#socket.removeAllListeners('data')
      this.#abilities.upgrade()
      return true
    }
    if (verb === 'QUIT') this.#socket.end()
    if (verb === 'DATA' && said.startsWith('354')) this.#data = true
    return false
  }

  #usual(verb: string, line: string): string {
    if (verb === 'EHLO')
      return ['250-sink.test', ...this.#abilities.extensions.map((one) => `250-${one}`), '250 HELP'].join('\r\n')
    if (verb === 'MAIL') {
      const [, from = '', parameters = ''] = /^MAIL FROM:<([^>]*)>(.*)$/i.exec(line) ?? []
      this.#mail = { from: utf8(from), to: [], parameters: parameters.trim() }
    }
    if (verb === 'RCPT') this.#mail.to.push(utf8(/<([^>]*)>/.exec(line)?.[1] ?? ''))
    if (verb === 'RSET') this.#mail = { from: '', to: [], parameters: '' }
    if (verb === 'AUTH') {
      this.#user =
        Buffer.from(line.split(' ')[2] ?? '', 'base64')
          .toString()
          .split('\0')[1] ?? null
      return '235 2.7.0 Welcome'
    }
    if (verb === 'DATA' && this.#mail.to.length === 0) return '503 5.5.1 No recipients'
    return { DATA: '354 Go on', STARTTLS: '220 Go on', QUIT: '221 Bye' }[verb] ?? '250 2.1.0 Ok'
  }

  #answer(line: string, usual: () => string): string {
    const scripted = this.#sink.script?.(line, this.#guest)
    if (scripted === null) return ''
    const said = scripted ?? usual()
    this.#guest.write(`${said}\r\n`)
    return said
  }
}

function utf8(latin: string): string {
  return Buffer.from(latin, 'latin1').toString('utf8')
}
