import { TLSSocket } from 'node:tls'
import { randomFrom } from '../../support/random.ts'
import { Dialogue } from '../../support/smtp.ts'
import { atOnce } from '../box/at-once.ts'
import { faultsOfLog } from '../box/log.ts'
import { type RunningBox, World } from '../box/world.ts'
import { dialogueOf, foreign, smuggler, type Step } from '../smtp/dialogue-grammar.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Dialogues of one case, and those that are open at once. */
const [dialoguesOfCase, clients] = [100, 10]

/** Milliseconds for a reply. */
const patience = 60_000

/** A reply as RFC 5321 4.2.1 has it, whose lines have one code. */
const wellFormed = /^(?:([2-5]\d\d)-[\x20-\x7e]*\r\n)*([2-5]\d\d) [\x20-\x7e]*$/

export const smtp: Trial = {
  name: 'smtp',
  about:
    'Clients hold dialogues by a grammar with faults: commands out of order, malformed, unknown or pipelined, recipients elsewhere, STARTTLS at any time, ' +
    'octets of no meaning, messages that hide another behind what some servers take for the end of data, disconnects. Each command and each message has ' +
    'exactly one reply, recipients elsewhere are refused and nothing is sent to them, a message that was answered with 250 is stored once and no other is, no ' +
    'hidden one is stored, and the box logs no error and goes on.',
  goal: { tries: 100_000, unit: 'dialogues', faults: '0 crashes, 0 relayed, 0 smuggled' },
  short: 300,
  broken: {
    'open-relay': {
      what: 'recipients elsewhere are accepted',
      file: 'src/mail/inbox.ts',
      find: 'if (!this.#deps.hosted.receives(domain)) throw new Refusal(',
      replace: "if (!this.#deps.hosted.receives(domain)) return ''\n    if (false) throw new Refusal(",
    },
    'lenient-end': {
      what: 'a dot and a bare LF end a message',
      file: 'src/smtp/unstuffing.ts',
      find: "if (position === 'dot' && octet === cr) {",
      replace:
        "if (position === 'dot' && octet === lf) return { content: content.subarray(0, length), rest: chunk.subarray(at + 1) }\n      if (position === 'dot' && octet === cr) {",
    },
    'two-replies': {
      what: 'an unknown command has two replies',
      file: 'src/smtp/session.ts',
      find: "this.#sendReply(500, '5.5.2', 'Command not recognized')",
      replace:
        "this.#sendReply(500, '5.5.2', 'Command not recognized')\n    this.#sendReply(500, '5.5.2', 'Command not recognized')",
    },
  },
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const world = await World.open(directory, program, randomFrom(seed))
    const box = await world.start(world.home('box'))
    const trial = new SmtpTrial(world, box, seed)
    return {
      run: (number) => trial.run(number),
      async close() {
        await box.process.end('SIGKILL')
        await world.close()
      },
    }
  },
}

class SmtpTrial {
  readonly #world: World
  readonly #box: RunningBox
  readonly #seed: number

  constructor(world: World, box: RunningBox, seed: number) {
    this.#world = world
    this.#box = box
    this.#seed = seed
  }

  async run(number: number): Promise<CaseResult> {
    const random = randomFrom(caseSeed(this.#seed, number))
    const { inbox } = this.#world.furnished
    const dialogues = Array.from({ length: dialoguesOfCase }, (_, index) => {
      const name = `case${number}-${index}`
      return { name, steps: dialogueOf(random, inbox.email, name) }
    })
    const held = await atOnce(
      clients,
      dialogues.map(
        ({ name, steps }) =>
          async () =>
            new Conversation(name, await Dialogue.connect(this.#box.smtp.port, this.#box.smtp.host)).hold(steps),
      ),
    )
    const faults = held.flatMap((one) => one.faults)
    faults.push(...(await this.#faultsKept(number, new Set(held.flatMap((one) => one.accepted)))))
    return { tries: dialoguesOfCase, faults: [...faults, ...this.#faultsOfBox()] }
  }

  /** What is wrong with what the box has stored of a case. */
  async #faultsKept(number: number, accepted: ReadonlySet<string>): Promise<string[]> {
    const { inbox } = this.#world.furnished
    const stored: string[] = []
    const faults: string[] = []
    for (const spam of [false, true]) {
      // those of this case are the newest
      for (let cursor = ''; ;) {
        const path = `/v1/identities/${inbox.id}/emails?limit=200&duplicates=true&spam=${spam}${cursor}`
        const { data, next_cursor } = await this.#box.get('GET', path)
        const own = (data as { subject: string; from: string }[]).filter(({ subject }) => subject.includes(`case${number}-`))
        for (const { subject, from } of own) {
          if (from === smuggler || subject.startsWith('smuggled')) faults.push(`a smuggled message is stored: ${subject}`)
          else stored.push(subject)
        }
        if (own.length === 0 || next_cursor === null) break
        cursor = `&cursor=${next_cursor}`
      }
    }
    for (const marker of accepted) if (!stored.includes(marker)) faults.push(`${marker} was accepted and is not stored`)
    for (const marker of stored) if (!accepted.has(marker)) faults.push(`${marker} is stored and was not accepted`)
    if (new Set(stored).size < stored.length) faults.push('a message is stored twice')
    return faults
  }

  #faultsOfBox(): string[] {
    const { messages } = this.#world.peers.sink
    return [...faultsOfLog(this.#box), ...(messages.length > 0 ? [`${messages.length} messages were relayed`] : [])]
  }
}

/** One client. */
class Conversation {
  /** The markers of the messages that were answered with 250. */
  readonly accepted: string[] = []
  readonly faults: string[] = []
  readonly #name: string
  readonly #client: Dialogue

  constructor(name: string, client: Dialogue) {
    this.#name = name
    this.#client = client
  }

  async hold(steps: readonly Step[]): Promise<this> {
    try {
      await this.#reply('the greeting')
      for (const step of steps) {
        if (this.#client.closed || this.faults.length > 0) break
        await this.#take(step)
      }
    } catch (error) {
      this.#fault((error as Error).message)
    } finally {
      this.#client.destroy()
    }
    return this
  }

  async #take(step: Step): Promise<void> {
    if (step.kind === 'commands') {
      this.#client.send(`${step.lines.join('\r\n')}\r\n`)
      for (const line of step.lines) {
        const reply = await this.#reply(line)
        const isForeign = foreign.some((recipient) => line.startsWith(`RCPT TO:${recipient}`))
        if (isForeign && reply.startsWith('2')) this.#fault(`${line} was answered with ${reply}`)
      }
      await this.#expectNoMore(step.lines.at(-1)!)
    } else if (step.kind === 'message') await this.#message(step)
    else if (step.kind === 'tls') {
      if ((await this.#say('STARTTLS')).startsWith('220')) await this.#client.upgrade()
    } else if (step.kind === 'garbage') {
      this.#client.send(Buffer.from(`${step.octets}\r\nVRFY end\r\n`, 'latin1'))
      // as many replies as it has lines
      while (!this.#client.closed && !(await this.#reply('garbage')).startsWith('252 '));
    } else {
      this.#client.send(step.octets)
      if (step.reset && !(this.#client.socket instanceof TLSSocket)) this.#client.reset()
      else this.#client.destroy()
    }
  }

  async #message({ octets, marker }: Extract<Step, { kind: 'message' }>): Promise<void> {
    if (!(await this.#say('DATA')).startsWith('354')) return
    this.#client.send(Buffer.from(octets, 'latin1'))
    const reply = await this.#reply(`the message ${marker}`)
    if (reply.startsWith('250')) this.accepted.push(marker)
    await this.#expectNoMore(`the message ${marker}`)
  }

  /** The next reply must be that of one more command. */
  async #expectNoMore(after: string): Promise<void> {
    const reply = await this.#say('VRFY end')
    if (reply !== '' && !/^(?:252|421) /.test(reply)) this.#fault(`after ${after.slice(0, 60)} came another reply: ${reply}`)
  }

  async #say(line: string): Promise<string> {
    this.#client.send(`${line}\r\n`)
    return this.#reply(line)
  }

  /** The next reply; empty when the box has closed the connection. */
  async #reply(to: string): Promise<string> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no reply to ${to.slice(0, 60)} within ${patience} ms`)), patience)
    })
    try {
      const reply = await Promise.race([this.#client.reply(), late])
      if (reply !== '' && !wellFormed.test(reply)) this.#fault(`${to.slice(0, 60)} was answered with ${JSON.stringify(reply)}`)
      return reply
    } finally {
      clearTimeout(timer)
    }
  }

  #fault(text: string): void {
    this.faults.push(`${this.#name}: ${text}`)
  }
}
