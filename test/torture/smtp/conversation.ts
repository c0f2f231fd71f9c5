import { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectSecurely, TLSSocket } from 'node:tls'
import { Dialogue } from '../../support/smtp.ts'
import { foreign, type Parties, type Step } from './dialogue-grammar.ts'

/** Milliseconds for a reply. */
const patience = 60_000

/** A reply as RFC 5321 4.2.1 has it, whose lines have one code; without a blank at its end. */
const wellFormed = /^(?:([2-5]\d\d)-[\x20-\x7e]*\r\n)*([2-5]\d\d)(?: [\x20-\x7e]*)?$/

/** Replies after which the box closes the connection: 421 (RFC 5321 3.8), and that to a message which may hide another. */
const closing = /^(?:421 |550 5\.6\.0 )/

/** A message that was answered with 250. */
interface Accepted {
  marker: string
  /** The recipients that were answered with 250, without their angle brackets. */
  recipients: string[]
}

/** One client. */
export class Conversation {
  readonly accepted: Accepted[] = []
  readonly faults: string[] = []
  readonly #name: string
  readonly #client: Dialogue
  readonly #parties: Parties
  /** That of TCP. */
  readonly #socket: Dialogue['socket']
  #loggedIn = false
  /** The last reply. */
  #last = ''
  /** Nothing more is said: the client has left, or the box has closed the connection. */
  #over = false
  #recipients: string[] = []

  constructor(name: string, client: Dialogue, parties: Parties) {
    this.#name = name
    this.#client = client
    this.#parties = parties
    this.#socket = client.socket
  }

  async hold(steps: readonly Step[]): Promise<this> {
    try {
      if (steps[0]?.kind !== 'no handshake') {
        if (this.#parties.door === 'tls') await this.#within(this.#client.upgrade(), 'a handshake')
        await this.#reply('the greeting')
      }
      for (const step of steps) {
        if (this.#over || this.faults.length > 0) break
        await this.#take(step)
      }
    } catch (error) {
      this.#fault((error as Error).message)
    } finally {
      this.#client.destroy()
      this.#socket.destroy()
    }
    return this
  }

  get #secure(): TLSSocket | undefined {
    return this.#client.socket instanceof TLSSocket ? this.#client.socket : undefined
  }

  async #take(step: Step): Promise<void> {
    if (step.kind === 'commands') await this.#commands(step.lines)
    else if (step.kind === 'message') await this.#message(step)
    else if (step.kind === 'login') await this.#login(step)
    else if (step.kind === 'tls') await this.#startTls(step)
    else if (step.kind === 'no handshake') await this.#breakHandshake(step)
    else if (step.kind === 'renegotiation') await this.#renegotiate(step.times)
    else if (step.kind === 'plaintext') await this.#plaintext(step.octets)
    else if (step.kind === 'garbage') {
      this.#client.send(Buffer.from(`${step.octets}\r\nVRFY end\r\n`, 'latin1'))
      // as many replies as it has lines
      while (!/^(?:252 |$)/.test(await this.#reply('garbage')));
    } else {
      this.#over = true
      this.#client.send(step.octets)
      if (step.way === 'close') this.#client.destroy()
      else if (step.way === 'cut') this.#socket.destroy()
      else this.#socket.resetAndDestroy()
    }
  }

  async #commands(lines: string[]): Promise<void> {
    this.#client.send(`${lines.join('\r\n')}\r\n`)
    for (const line of lines) this.#judge(line, await this.#reply(line))
    await this.#expectNoMore(lines.at(-1)!)
  }

  /** Notes what follows from a reply to a command, and that no stranger may send. */
  #judge(line: string, reply: string): void {
    if (!reply.startsWith('2')) return
    const { door, user } = this.#parties
    const isWrong =
      door === 'smtp'
        ? foreign.some((recipient) => line.startsWith(`RCPT TO:${recipient}`))
        : /^(?:MAIL|RCPT)/.test(line) && !(this.#loggedIn && (line.startsWith('RCPT') || line.startsWith(`MAIL FROM:<${user}>`)))
    if (isWrong) this.#fault(`${line} was answered with ${reply}`)
    if (line.startsWith('RCPT')) this.#recipients.push(/<(.*)>/.exec(line)?.[1] ?? '')
    else if (/^(?:MAIL|RSET|EHLO|HELO)/i.test(line)) this.#recipients = []
  }

  async #message({ octets, marker, own }: Extract<Step, { kind: 'message' }>): Promise<void> {
    const ready = await this.#say('DATA')
    if (!ready.startsWith('354')) return
    const mayNot = this.#parties.door !== 'smtp' && !(this.#loggedIn && own)
    if (mayNot && !this.#loggedIn) this.#fault(`DATA was answered with ${ready} before a login`)
    this.#client.send(Buffer.from(octets, 'latin1'))
    const reply = await this.#reply(`the message ${marker}`)
    if (reply.startsWith('250')) {
      this.accepted.push({ marker, recipients: this.#recipients })
      if (mayNot) this.#fault(`a message with the author of another was answered with ${reply}`)
    }
    this.#recipients = []
    await this.#expectNoMore('the message')
  }

  async #login({ lines, right, pipelined }: Extract<Step, { kind: 'login' }>): Promise<void> {
    const may = right && this.#parties.door !== 'smtp' && this.#secure !== undefined && !this.#loggedIn
    if (pipelined) this.#client.send(`${lines.join('\r\n')}\r\n`)
    let reply = ''
    for (const line of lines) {
      reply = await (pipelined ? this.#reply(line) : this.#say(line))
      if (reply.startsWith('235') && !may) this.#fault(`${line.slice(0, 60)} was answered with ${reply}`)
      if (reply.startsWith('235')) this.#loggedIn = true
      if (!pipelined && !reply.startsWith('334')) break
    }
    // 503 before EHLO, 421 after too many errors
    if (may && !this.#loggedIn && !/^(?:503|421|$)/.test(reply)) this.#fault(`a right login was answered with ${reply}`)
    while (reply.startsWith('334')) reply = await this.#say('*')
    await this.#expectNoMore('AUTH')
  }

  async #startTls({ behind, version }: Extract<Step, { kind: 'tls' }>): Promise<void> {
    if (this.#secure) return this.#expectRefused('STARTTLS')
    this.#client.send(`STARTTLS\r\n${behind}`)
    // what stands behind is for a server that takes it for commands
    if (!(await this.#reply('STARTTLS')).startsWith('220')) return this.#leave()
    this.#recipients = []
    await this.#within(this.#client.upgrade({ maxVersion: version }), 'a handshake')
    await this.#expectNoMore('STARTTLS')
  }

  async #expectRefused(line: string): Promise<void> {
    const reply = await this.#say(line)
    if (/^[23]/.test(reply)) this.#fault(`a second ${line} was answered with ${reply}`)
  }

  async #breakHandshake({ octets, reset }: Extract<Step, { kind: 'no handshake' }>): Promise<void> {
    if (this.#secure) return
    if (this.#parties.door !== 'tls' && !(await this.#say('STARTTLS')).startsWith('220')) return
    this.#over = true
    const before = this.#client.transcript.length
    const sent = typeof octets === 'number' ? (await clientHello).subarray(0, octets) : Buffer.from(octets, 'latin1')
    this.#client.send(sent)
    if (reset) return this.#client.reset()
    this.#socket.end()
    await this.#within(this.#client.end(), 'an end of the connection after no handshake')
    const said = this.#client.transcript.slice(before)
    if (/(?:^|\n)[2-5]\d\d[ -]/.test(said)) this.#fault(`no handshake was answered with ${JSON.stringify(said)}`)
  }

  async #renegotiate(times: number): Promise<void> {
    const secure = this.#secure
    if (secure?.getProtocol() !== 'TLSv1.2') return
    for (let count = 0; count < times && !secure.destroyed; count += 1) {
      const done = new Promise<boolean>((resolve) => secure.renegotiate({}, () => resolve(true)))
      const ended = this.#client.end().then(() => true)
      // nothing can be sent amid one: a server that takes no part need not say so
      if (!(await Promise.race([done, ended, sleep(2000).then(() => false)]))) return this.#leave()
    }
    await this.#expectNoMore('a renegotiation', true)
  }

  async #plaintext(octets: string): Promise<void> {
    if (!this.#secure) return
    this.#socket.write(octets)
    const reply = await this.#reply('commands in the clear', true)
    if (reply !== '') this.#fault(`commands in the clear under TLS were answered with ${reply}`)
  }

  /** The next reply must be that of one more command. */
  async #expectNoMore(after: string, mayClose = false): Promise<void> {
    const reply = await this.#say('VRFY end', mayClose)
    if (reply !== '' && !/^(?:252|421) /.test(reply)) this.#fault(`after ${after.slice(0, 60)} came another reply: ${reply}`)
  }

  async #say(line: string, mayClose = false): Promise<string> {
    this.#client.send(`${line}\r\n`)
    return this.#reply(line, mayClose)
  }

  /** The next reply; empty when the box has closed the connection, which is a fault unless the last reply says so or it may close at any time. */
  async #reply(to: string, mayClose = false): Promise<string> {
    const reply = await this.#within(this.#client.reply(), `a reply to ${to.slice(0, 60)}`)
    if (reply === '') {
      if (!this.#over && !mayClose && !closing.test(this.#last))
        this.#fault(`${to.slice(0, 60)} has no reply: the connection was closed after ${JSON.stringify(this.#last)}`)
      this.#over = true
    } else if (!wellFormed.test(reply)) this.#fault(`${to.slice(0, 60)} was answered with ${JSON.stringify(reply)}`)
    this.#last = reply || this.#last
    return reply
  }

  #leave(): void {
    this.#over = true
    this.#client.destroy()
  }

  async #within<Result>(work: Promise<Result>, what: string): Promise<Result> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`there was not ${what} within ${patience} ms`)), patience)
    })
    try {
      return await Promise.race([work, late])
    } finally {
      clearTimeout(timer)
    }
  }

  #fault(text: string): void {
    this.faults.push(`${this.#name}: ${text}`)
  }
}

/** The first octets of a handshake. */
const clientHello = new Promise<Buffer>((resolve) => {
  const socket = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _encoding, done) {
      resolve(chunk)
      done()
    },
  })
  connectSecurely({ socket, rejectUnauthorized: false }).on('error', () => undefined)
})
