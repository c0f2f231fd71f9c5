import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../support/free-port.ts'
import { MailSink } from '../../support/mail-sink.ts'
import { randomFrom } from '../../support/random.ts'
import { Dialogue } from '../../support/smtp.ts'
import { atOnce } from '../box/at-once.ts'
import { faultsOfLog } from '../box/log.ts'
import { apiKey, type RunningBox, World } from '../box/world.ts'
import { shrunk } from '../shrink.ts'
import { Conversation } from '../smtp/conversation.ts'
import { abroad, dialogueOf, type Door, type Parties, smuggler, type Step } from '../smtp/dialogue-grammar.ts'
import { hidingEmail } from '../smtp/sent-by-api.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Dialogues of one case, those that are open at once, and messages that the API sends meanwhile. */
const [dialoguesOfCase, clients, sentByApi] = [100, 10, 10]

/** Dialogues with a fault of one case that are shortened. */
const maxShrunk = 3

/** Milliseconds for a message that was accepted to be stored here, or to arrive elsewhere. */
const patience = 60_000

/** Of five dialogues, two are held where mail is submitted. */
const doors: Door[] = ['smtp', 'submission', 'smtp', 'tls', 'smtp']

export const smtp: Trial = {
  name: 'smtp',
  about:
    'Clients hold dialogues by a grammar with faults, three of five at the port for other servers, and two at those for submission, with STARTTLS and with ' +
    'implicit TLS: commands out of order, malformed, unknown or pipelined, recipients elsewhere, octets of no meaning, messages that hide another behind ' +
    'what some servers take for the end of data, disconnects; AUTH with PLAIN and LOGIN, right, wrong, aborted, too long, twice, in the clear and amid a ' +
    'transaction; STARTTLS at any time and twice, with commands behind it in the same packet, with other octets or a part of a handshake in place of one; ' +
    'commands in the clear under TLS, renegotiations, and connections that end without the end of TLS. Each command and each message has ' +
    'exactly one reply, and what stood behind STARTTLS has none; the box closes a connection only after 421, after a message that may hide another, and where TLS is broken; recipients elsewhere are refused to strangers; nobody submits without a right login under ' +
    'TLS, nor as another; a message that was answered with 250 is stored once, or arrives once at each recipient, and no other does; no hidden one is ' +
    'stored. Messages with such hidden ones are also sent by the API. What the box sends goes to a server that takes any CR or LF for the end of a line and ' +
    'drops NUL, where no hidden one arrives. After each case, mail is taken at all ports, and the box has logged no error. A dialogue that found a fault is shortened to ' +
    'the steps that still find it.',
  goal: { tries: 100_000, unit: 'dialogues', faults: '0 crashes, 0 relayed, 0 smuggled' },
  short: 200,
  hours: 0.5,
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
    'hang-up': {
      what: 'after an unknown command the connection is closed without a reply',
      file: 'src/smtp/session.ts',
      find: "this.#sendReply(500, '5.5.2', 'Command not recognized')",
      replace: 'this.#socket.destroy()',
    },
    'injected-commands': {
      what: 'commands that came behind STARTTLS are run after the handshake',
      file: 'src/smtp/receiver.ts',
      find: 'upgrade(...callbacks)',
      replace: `const [resume, ready] = callbacks
    upgrade(
      () => undefined,
      () => {
        resume?.()
        ready?.()
      },
    )
    if (parser) {
      parser.isClosed = false
      connection._parser = parser
    }`,
    },
    'any-sender': {
      what: 'who has logged in may send as anybody',
      file: 'src/outbound/submission.ts',
      find: 'if (!(await maySendFrom(this.#deps.identities, this.#login.owner, sender)))',
      replace: 'if (false)',
    },
    'any-author': {
      what: 'who has logged in may write as anybody',
      file: 'src/outbound/submission.ts',
      find: 'if (!(await maySendFrom(this.#deps.identities, owner, address))) throw this.#notAllowed(`From: ${address}`)',
      replace: '',
    },
    'any-password': {
      what: 'a login needs no key',
      file: 'src/outbound/submission.ts',
      find: 'const holder = await keys.authenticate(password)',
      replace: `const holder = await keys.authenticate('${apiKey}')`,
    },
    'on-behalf': {
      what: 'a login on behalf of another is accepted',
      file: 'src/smtp/logins.ts',
      find: 'if (entry.deliveryTarget && !isProxy) {',
      replace: 'if (entry.deliveryTarget) {',
    },
    unstuffed: {
      what: 'lines that begin with a dot are sent without another before it',
      file: 'src/outbound/transport/session.ts',
      find: 'const restore = asked ? declareInternational(this.#connection) : undefined',
      replace: `const restore = asked ? declareInternational(this.#connection) : undefined
      const create = Object.getPrototypeOf(this.#connection)._createSendStream
      this.#connection._createSendStream = function (done) {
        const stream = create.call(this, done)
        stream._transform = (chunk, _encoding, next) => {
          stream.lastByte = chunk.at(-1)
          next(null, chunk)
        }
        return stream
      }`,
    },
  },
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const world = await World.open(directory, program, randomFrom(seed))
    const receiver = await MailSink.open({ lenient: true })
    const [starttls, tls] = [await freePort(), await freePort()]
    const box = await world.start(world.home('box'), {
      PILLARBOX_OUTBOUND__PORT: String(receiver.port),
      PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '0',
      PILLARBOX_OUTBOUND__RATE_PER_DOMAIN: '0',
      PILLARBOX_SUBMISSION__LISTEN: `127.0.0.1:${starttls}`,
      PILLARBOX_SUBMISSION__LISTEN_TLS: `127.0.0.1:${tls}`,
      PILLARBOX_SUBMISSION__MAX_FAILED_LOGINS: '100000',
      PILLARBOX_SUBMISSION__FAILED_LOGIN_DELAY: '0 ms',
    })
    const trial = new SmtpTrial({ world, box, receiver, seed, ports: { smtp: box.smtp.port, submission: starttls, tls } })
    return {
      run: (number) => trial.run(number),
      notes: () => [trial.note()],
      async close() {
        await box.process.end('SIGKILL')
        await receiver.stop()
        await world.close()
      },
    }
  },
}

interface Deps {
  world: World
  box: RunningBox
  /** Where all goes that the box sends. */
  receiver: MailSink
  ports: Record<Door, number>
  seed: number
}

interface Held {
  name: string
  door: Door
  steps: Step[]
}

class SmtpTrial {
  readonly #deps: Deps
  /** Messages that must arrive, and that have arrived, each with its recipient. */
  readonly #due = new Set<string>()
  readonly #arrived = new Set<string>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async run(number: number): Promise<CaseResult> {
    const random = randomFrom(caseSeed(this.#deps.seed, number))
    const dialogues = Array.from({ length: dialoguesOfCase }, (_, index): Held => {
      const [name, door] = [`case${number}-${index}`, doors[index % doors.length]!]
      return { name, door, steps: dialogueOf(random, this.#parties(door), name) }
    })
    const sending = Array.from({ length: sentByApi }, (_, index) => hidingEmail(random, abroad, `case${number}-api${index}`))
    const [found, refused] = await Promise.all([this.#hold(dialogues), Promise.all(sending.map((email) => this.#send(email)))])
    const last = await this.#hold(
      doors.slice(1, 4).map((door) => this.#honest(`case${number}-${door}`, door)),
      true,
    )
    const arrived = await this.#faultsArrived(patience)
    const logged = faultsOfLog(this.#deps.box)
    const shortened = await this.#shrunken(number, dialogues, found)
    const told = [...found].flatMap(([name, faults]) => faults.map((fault) => `${fault}${shortened.get(name) ?? ''}`))
    return { tries: dialoguesOfCase, faults: [...refused.flat(), ...told, ...[...last.values()].flat(), ...arrived, ...logged] }
  }

  note(): string {
    return `${this.#arrived.size} messages were accepted for recipients elsewhere, and each arrived once`
  }

  #parties(door: Door): Parties {
    const { inbox, writer } = this.#deps.world.furnished
    return { door, mailbox: inbox.email, user: writer.email, password: apiKey }
  }

  /** A dialogue without a fault. */
  #honest(name: string, door: Door): Held {
    const { mailbox, user, password } = this.#parties(door)
    const ehlo: Step = { kind: 'commands', lines: ['EHLO client.test'] }
    const token = Buffer.from(`\0${user}\0${password}`).toString('base64')
    const login: Step = { kind: 'login', lines: [`AUTH PLAIN ${token}`], right: true, pipelined: false }
    const octets = `From: ${user}\r\nSubject: ${name}\r\nMessage-ID: <${name}@client.test>\r\n\r\nHello.\r\n.\r\n`
    return {
      name,
      door,
      steps: [
        ehlo,
        ...(door === 'tls' ? [] : [{ kind: 'tls', behind: '', version: 'TLSv1.3' } as Step, ehlo]),
        ...(door === 'smtp' ? [] : [login]),
        { kind: 'commands', lines: [`MAIL FROM:<${user}>`, `RCPT TO:<${mailbox}>`] },
        { kind: 'message', octets, marker: name, own: true },
      ],
    }
  }

  /** Holds dialogues, some at once; answers the faults of each that has any, those of what is stored under the first name. */
  async #hold(dialogues: Held[], mustBeTaken = false, wait = patience): Promise<Map<string, string[]>> {
    const { box, ports, world } = this.#deps
    const held = await atOnce(
      clients,
      dialogues.map(({ name, door, steps }) => async () => {
        const client = await Dialogue.connect(ports[door], box.smtp.host)
        return new Conversation(name, client, this.#parties(door)).hold(steps)
      }),
    )
    const found = new Map<string, string[]>()
    const stored = new Set<string>()
    for (const [index, { accepted, faults }] of held.entries()) {
      const { name, door } = dialogues[index]!
      if (faults.length > 0) found.set(name, faults)
      if (mustBeTaken && accepted.length === 0) found.set(name, [...faults, `${name}: mail is not taken any more`])
      for (const { marker, recipients } of accepted) {
        if (recipients.includes(world.furnished.inbox.email)) stored.add(marker)
        if (door !== 'smtp' && recipients.includes(abroad)) this.#due.add(`${marker} for ${abroad}`)
        // by routes, of which some servers make one elsewhere
        if (door !== 'smtp' && recipients.includes('@pillarbox.test:b@far1.test')) this.#due.add(`${marker} for b@far1.test`)
      }
    }
    for (const [name, faults] of await this.#faultsKept(dialogues, stored, wait))
      found.set(name, [...(found.get(name) ?? []), ...faults])
    return found
  }

  /** What is wrong with what the box has stored of dialogues, by the names of these. */
  async #faultsKept(dialogues: Held[], accepted: ReadonlySet<string>, wait: number): Promise<Map<string, string[]>> {
    let stored: Stored[] = []
    // what is submitted is stored a while after it was accepted
    for (const end = Date.now() + wait; ; await sleep(50)) {
      stored = await this.#stored(dialogues[0]!.name.split('-', 1)[0]!)
      const subjects = new Set(stored.map(({ subject }) => subject))
      if (Date.now() > end || [...accepted].every((marker) => subjects.has(marker))) break
    }
    const found = new Map<string, string[]>()
    for (const { name } of dialogues) {
      const faults: string[] = []
      const isOwn = (marker: string): boolean => `${marker}-`.startsWith(`${name}-`)
      const own = stored.filter(({ subject }) => isOwn(subject.replace('smuggled ', '')))
      for (const { subject, from } of own)
        if (from === smuggler || subject.startsWith('smuggled')) faults.push(`a smuggled message is stored: ${subject}`)
        else if (!accepted.has(subject)) faults.push(`${subject} is stored and was not accepted`)
      const subjects = own.map(({ subject }) => subject)
      for (const marker of accepted)
        if (isOwn(marker) && !subjects.includes(marker)) faults.push(`${marker} was accepted and is not stored`)
      if (new Set(subjects).size < subjects.length) faults.push(`${name}: a message is stored twice`)
      if (faults.length > 0) found.set(name, faults)
    }
    return found
  }

  /** What is stored of the names with this beginning. */
  async #stored(names: string): Promise<Stored[]> {
    const { box, world } = this.#deps
    const stored: Stored[] = []
    for (const spam of [false, true]) {
      // the newest come first
      for (let cursor = ''; ;) {
        const path = `/v1/identities/${world.furnished.inbox.id}/emails?limit=200&duplicates=true&spam=${spam}${cursor}`
        const { data, next_cursor } = await box.get('GET', path)
        const own = (data as Stored[]).filter(({ subject }) => subject.includes(`${names}-`))
        stored.push(...own)
        if (own.length === 0 || next_cursor === null) break
        cursor = `&cursor=${next_cursor}`
      }
    }
    return stored
  }

  async #send(email: Record<string, unknown>): Promise<string[]> {
    const { box, world } = this.#deps
    const answer = await box.ask('POST', `/v1/identities/${world.furnished.writer.id}/emails`, email)
    if (answer === undefined || answer.status >= 500) return [`${JSON.stringify(email)} was answered with ${answer?.status}`]
    if (answer.status < 300) this.#due.add(`${String(email['subject'])} for ${abroad}`)
    return []
  }

  /** Waits for what must arrive; answers what is wrong with what has. */
  async #faultsArrived(wait: number): Promise<string[]> {
    const { messages } = this.#deps.receiver
    const faults: string[] = []
    for (const end = Date.now() + wait; ; await sleep(50)) {
      for (const { raw, to } of messages.splice(0)) {
        const arrival = `${/^Subject: (.*?)\r?$/im.exec(raw)?.[1]} for ${to.join(', ')}`
        if (this.#arrived.has(arrival)) faults.push(`${arrival} has arrived twice`)
        else if (!this.#due.has(arrival)) faults.push(`${arrival} was relayed or smuggled`)
        this.#arrived.add(arrival)
      }
      const missing = [...this.#due].filter((one) => !this.#arrived.has(one))
      if (missing.length === 0) return faults
      if (Date.now() > end) {
        for (const one of missing) this.#due.delete(one)
        return [...faults, ...missing.map((one) => `${one} was accepted and has not arrived`)]
      }
    }
  }

  /** Writes the steps that find the same fault, of the first dialogues with one. */
  async #shrunken(number: number, dialogues: Held[], found: Map<string, string[]>): Promise<Map<string, string>> {
    const told = new Map<string, string>()
    let repeats = 0
    for (const { name, door, steps } of dialogues.filter((one) => found.has(one.name)).slice(0, maxShrunk)) {
      const kind = kindOf(found.get(name)![0]!)
      const small = await shrunk(
        steps,
        (before, after) => [...before, ...after],
        async (fewer) => {
          // names of their own, so that what is stored is told apart
          const again = `again${number}x${repeats++}-0`
          const renamed = JSON.parse(JSON.stringify(fewer).replaceAll(`${name}-`, `${again}-`)) as Step[]
          const faults = (await this.#hold([{ name: again, door, steps: renamed }], false, 3000)).get(again) ?? []
          return faults.some((fault) => kindOf(fault) === kind)
        },
      )
      const file = join(tmpdir(), `torture-smtp-${this.#deps.seed}-${name}.json`)
      writeFileSync(file, `${JSON.stringify({ door, steps: small }, null, 1)}\n`)
      told.set(name, `; shortened from ${steps.length} steps to ${small.length}, in ${file}`)
    }
    // those are known
    if (repeats > 0) await this.#faultsArrived(patience)
    faultsOfLog(this.#deps.box)
    return told
  }
}

interface Stored {
  subject: string
  from: string
}

/** A fault without the name of its dialogue. */
function kindOf(fault: string): string {
  return fault.replaceAll(/(?:case|again)[\w-]+/g, '').slice(0, 60)
}
