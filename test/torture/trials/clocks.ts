import { setTimeout as sleep } from 'node:timers/promises'
import { day, hour, minute, second } from '../../../src/core/clock.ts'
import { deliver, message } from '../../support/appliance.ts'
import { pick, type Random, randomFrom } from '../../support/random.ts'
import { freePort } from '../../support/free-port.ts'
import { ShiftedClock } from '../clock/clock.ts'
import { noPreload } from '../disk/preload.ts'
import { faultsOfLog } from '../box/log.ts'
import { type RunningBox, World } from '../box/world.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

const zones = ['UTC', 'America/St_Johns', 'Pacific/Kiritimati', 'Australia/Lord_Howe']

/** A second is the step of a clock that was wrong about a leap second. */
const jumps = [hour, -hour, day, -day, 3653 * day, -3653 * day, second, -second, 26 * minute, 34 * minute]

/** Milliseconds from a call until what it scheduled: an e-mail, and the end of a key. */
const ahead = 30 * minute

/** Milliseconds of an identity token (`expires_in` in seconds). */
const tokenLife = 15 * minute

/** Milliseconds in which a box does what has become due. */
const patience = 120_000

/** Milliseconds in which nothing may happen that is not due. */
const quiet = 4000

export const clocks: Trial = {
  name: 'clocks',
  about:
    'The time of day of a box jumps by a second, minutes, an hour, a day or ten years, forwards and backwards, several times in a row, in four time zones, ' +
    'and the box is restarted after some. Mail that was accepted stays, mail is accepted and sent at once after each jump, scheduled mail leaves once, never ' +
    'before its time and soon after it, a key and an identity token are refused from the time of their end on and accepted before it (a key that was once over ' +
    'may stay refused), and the box logs no error.',
  goal: { tries: 1000, unit: 'jumps', faults: 'nothing lost, no mail sent early, tokens honest' },
  short: 6,
  hours: 1.2,
  broken: {
    'early-delivery': {
      what: 'what is due within the hour is taken',
      file: 'src/queue/queue.ts',
      find: 'return iso(this.#deps.clock.now())',
      replace: 'return iso(this.#deps.clock.now() + 3_600_000)',
    },
    'eternal-key': {
      what: 'keys do not expire',
      file: 'src/accounts/keys.ts',
      find: 'if (admits.until <= this.#clock.now()) return undefined',
      replace: 'if (admits.until <= 0) return undefined',
    },
    'early-end': {
      what: 'keys end an hour before their time',
      file: 'src/accounts/keys.ts',
      find: 'if (admits.until <= this.#clock.now()) return undefined',
      replace: 'if (admits.until <= this.#clock.now() + 3_600_000) return undefined',
    },
    'eternal-token': {
      what: 'identity tokens do not expire',
      file: 'src/tokens/reading.ts',
      find: 'if (exp * 1000 + leeway <= now)',
      replace: 'if (exp <= 0)',
    },
    'lost-mail': {
      what: 'mail is not found while the clock is before the time at which it came',
      file: 'src/mail/emails.ts',
      find: 'const list = { account: caller.account_id, ...selection(identityId, filter) }',
      replace:
        'const list = { account: caller.account_id, ...selection(identityId, { ...filter, before: iso(this.#deps.clock.now()) }) }',
    },
  },
  missing: noPreload,
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const clock = new ShiftedClock(directory)
    const world = await World.open(directory, program, randomFrom(seed))
    return {
      run: (number) => new ClockCase(world, clock, randomFrom(caseSeed(seed, number)), number).run(),
      async close() {
        clock.close()
        await world.close()
      },
    }
  },
}

/** What was made before a jump. */
interface Made {
  /** The subject of scheduled mail, and when it is due. */
  scheduled: string
  due: number
  key: string
  ends: number
  /** A box has run after the end of the key: it may be gone for good, also where the clock is set back. */
  over: boolean
  token: string
  /** The times from which and until which the token is valid. */
  valid: [number, number]
}

class ClockCase {
  readonly #world: World
  readonly #clock: ShiftedClock
  readonly #random: Random
  readonly #name: string
  readonly #home: string
  readonly #env: Record<string, string>
  readonly #faults: string[] = []
  readonly #accepted: string[] = []
  readonly #made: Made[] = []
  #box!: RunningBox
  #number = 0

  constructor(world: World, clock: ShiftedClock, random: Random, number: number) {
    this.#world = world
    this.#clock = clock
    this.#random = random
    this.#name = `case${number}`
    this.#home = world.home('box')
    this.#env = { ...clock.env, TZ: pick(zones, random) }
  }

  async run(): Promise<CaseResult> {
    const { peers } = this.#world
    peers.begin(() => this.#clock.now())
    this.#clock.jump(-this.#clock.offset)
    // its URL, which is the issuer of tokens, stays when it is restarted
    this.#env['PILLARBOX_HTTP__LISTEN'] = `127.0.0.1:${await freePort()}`
    await this.#start()
    const count = 3
    try {
      for (let jump = 0; jump < count; jump += 1) {
        await this.#make()
        const by = pick(jumps, this.#random)
        this.#markOver()
        this.#clock.jump(by)
        this.#markOver()
        if (this.#random(3) === 0) await this.#restart()
        const before = this.#faults.length
        await this.#check()
        for (let index = before; index < this.#faults.length; index += 1)
          this.#faults[index] = `after a jump by ${by / second} s in ${this.#env['TZ']}: ${this.#faults[index]}`
      }
      await this.#box.process.end('SIGTERM')
    } catch (error) {
      this.#faults.push((error as Error).message)
    } finally {
      await this.#box.process.end('SIGKILL')
    }
    return { tries: count, faults: this.#faults }
  }

  async #start(): Promise<void> {
    this.#box = await this.#world.start(this.#home, this.#env)
  }

  async #restart(): Promise<void> {
    await this.#box.process.end('SIGTERM')
    await this.#start()
  }

  /** Makes what a jump may harm. */
  async #make(): Promise<void> {
    const { inbox, writer } = this.#world.furnished
    await this.#mailIn()
    const due = this.#clock.now() + ahead
    const scheduled = `${this.#name}-later-${(this.#number += 1)}`
    await this.#box.get('POST', `/v1/identities/${writer.id}/emails`, {
      to: `${scheduled}@far0.test`,
      subject: scheduled,
      body_text: 'Later.',
      send_at: new Date(due).toISOString(),
    })
    const { key, expires_at } = await this.#box.get('POST', '/v1/api-keys', { expires_at: new Date(due).toISOString() })
    const issued = this.#clock.now()
    const { token } = await this.#box.get('POST', `/v1/identities/${inbox.id}/token`, {
      audience: 'https://shop.test',
      expires_in: tokenLife / second,
    })
    this.#made.push({
      scheduled,
      due,
      key,
      ends: Date.parse(expires_at),
      over: false,
      token,
      valid: [issued, issued + tokenLife],
    })
  }

  /** Mail arrives. */
  async #mailIn(): Promise<void> {
    const subject = `${this.#name}-in-${(this.#number += 1)}`
    const raw = message({ Subject: subject, 'Message-ID': `<${subject}@client.test>` }, 'Hello.\n')
    await deliver(this.#box.smtp, { to: this.#world.furnished.inbox.email, raw })
    this.#accepted.push(subject)
  }

  async #check(): Promise<void> {
    await this.#mailIn()
    await this.#mailOut()
    const stored = new Set<string>()
    for (const spam of [false, true])
      for (const { subject } of await this.#box.list(`/v1/identities/${this.#world.furnished.inbox.id}/emails?spam=${spam}`))
        stored.add(subject as string)
    for (const subject of this.#accepted) if (!stored.has(subject)) this.#faults.push(`${subject} was accepted and is lost`)
    for (const made of this.#made) {
      await this.#checkKey(made)
      await this.#checkToken(made)
      await this.#checkScheduled(made)
    }
    this.#faults.push(...faultsOfLog(this.#box))
  }

  /** What is sent now leaves. */
  async #mailOut(): Promise<void> {
    const subject = `${this.#name}-out-${(this.#number += 1)}`
    const input = { to: `${subject}@far1.test`, subject, body_text: 'Now.' }
    await this.#box.get('POST', `/v1/identities/${this.#world.furnished.writer.id}/emails`, input)
    if (!(await this.#arrives(subject, patience))) this.#faults.push(`${subject} did not leave`)
  }

  #markOver(): void {
    for (const made of this.#made) made.over ||= this.#clock.now() >= made.ends
  }

  async #checkKey(made: Made): Promise<void> {
    const { key, ends } = made
    const isOver = this.#clock.now() >= ends
    const { status } = await fetch(`${this.#box.api}/v1/whoami`, { headers: { Authorization: `Bearer ${key}` } })
    this.#markOver()
    // one that was over may be gone for good
    if (isOver ? status !== 401 : status !== 200 && !(status === 401 && made.over))
      this.#faults.push(`a key that ends in ${(ends - this.#clock.now()) / second} s is answered with ${status}`)
  }

  async #checkToken({ token, valid: [from, until] }: Made): Promise<void> {
    const asked = this.#clock.now()
    const { valid, reason } = await this.#box.get('POST', '/v1/verify/token', { token, audience: 'https://shop.test' })
    // a minute for clocks that differ
    const [outside, inside] = [asked < from - 2 * minute || asked > until + 2 * minute, asked >= from && asked < until - second]
    if (valid ? outside : inside)
      this.#faults.push(`a token of ${(asked - from) / second} s ago is ${valid ? 'valid' : `not valid (${reason})`}`)
  }

  async #checkScheduled(made: Made): Promise<void> {
    const { scheduled, due } = made
    const copies = (): number => this.#copiesOf(scheduled).length
    if (this.#clock.now() >= due + second) {
      if (!(await this.#arrives(scheduled, patience))) this.#faults.push(`${scheduled} did not leave when it was due`)
    } else await sleep(copies() > 0 ? 0 : quiet / this.#made.length)
    if (copies() > 1) this.#faults.push(`${scheduled} left ${copies()} times`)
    for (const arrived of this.#copiesOf(scheduled))
      if (arrived < due - second) this.#faults.push(`${scheduled} left ${(due - arrived) / second} s early`)
  }

  /** The times, by the clock of the box, at which mail with this subject arrived. */
  #copiesOf(subject: string): number[] {
    const { peers } = this.#world
    return [...peers.copies()]
      .filter(([, copies]) => copies.some((raw) => raw.includes(`Subject: ${subject}\r\n`)))
      .flatMap(([id, copies]) => copies.map(() => peers.arrivals.get(id) ?? Infinity))
  }

  async #arrives(subject: string, within: number): Promise<boolean> {
    for (const end = performance.now() + within; performance.now() < end; await sleep(100))
      if (this.#copiesOf(subject).length > 0) return true
    return false
  }
}
