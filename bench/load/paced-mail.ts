import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { answerQuestions } from '../program.ts'
import { atRate } from './pace.ts'

// Mail at a fixed rate over sessions that stay open; a message is answered when its 250 is read.

interface Mailing {
  host: string
  port: number
  from: string
  /** Recipients are numbered, from 1 to `recipients`, before this address. */
  to: string
  recipients: number
  size: number
  perSecond: number
  count: number
  first: number
}

/** One session, one message at a time. */
class Session {
  readonly #socket: Socket
  #held = ''
  #heard: ((reply: string) => void) | undefined

  constructor(host: string, port: number) {
    this.#socket = connect({ host, port, noDelay: true })
    this.#socket.setEncoding('latin1').on('data', (text: string) => {
      this.#held += text
      const whole = /^(?:\d{3}-.*\r\n)*\d{3} .*\r\n/.exec(this.#held)?.[0]
      if (whole === undefined) return
      this.#held = this.#held.slice(whole.length)
      this.#heard?.(whole)
    })
  }

  async begin(): Promise<this> {
    await this.#reply('220')
    await this.#say('EHLO mail.sender.test\r\n', '250')
    return this
  }

  async send(from: string, to: string, message: string): Promise<void> {
    await this.#say(`MAIL FROM:<${from}>\r\n`, '250')
    await this.#say(`RCPT TO:<${to}>\r\n`, '250')
    await this.#say('DATA\r\n', '354')
    await this.#say(`${message}\r\n.\r\n`, '250')
  }

  async end(): Promise<void> {
    this.#socket.end('QUIT\r\n')
    await once(this.#socket, 'close')
  }

  async #say(text: string, wanted: string): Promise<void> {
    const reply = this.#reply(wanted)
    this.#socket.write(text)
    await reply
  }

  #reply(wanted: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#heard = (reply) => (reply.startsWith(wanted) ? resolve() : reject(new Error(reply)))
    })
  }
}

const text = 'A line of seventy-two characters, as people and programs write them...\r\n'

function messageOf(number: number, from: string, to: string, size: number): string {
  const head = `From: ${from}\r\nTo: ${to}\r\nSubject: paced ${number}\r\nMessage-ID: <paced.${number}@sender.test>\r\nDate: Fri, 20 Nov 2026 10:03:00 +0000\r\n`
  return `${head}\r\nYour code is ${100_000 + (number % 900_000)}.\r\n${text.repeat(Math.ceil(size / text.length))}`
}

answerQuestions({
  send: async ({ host, port, from, to, recipients, size, ...pace }: Mailing) => {
    const sessions = await Promise.all(Array.from({ length: 50 }, () => new Session(host, port).begin()))
    const free = [...sessions]
    const waiting: ((session: Session) => void)[] = []
    const paced = await atRate(pace, async (number) => {
      const session = free.pop() ?? (await new Promise<Session>((resolve) => waiting.push(resolve)))
      const recipient = `${(number % recipients) + 1}${to}`
      await session.send(from, recipient, messageOf(number, from, recipient, size))
      const next = waiting.shift()
      if (next) next(session)
      else free.push(session)
    })
    await Promise.all(sessions.map((session) => session.end()))
    return paced
  },
})
