import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { hour } from '../../../src/core/clock.ts'
import { deliver, message } from '../../support/appliance.ts'
import { pick, type Random, randomFrom } from '../../support/random.ts'
import { atOnce } from '../box/at-once.ts'
import { farDomains } from '../box/peers.ts'
import { faultsOfLog } from '../box/log.ts'
import { type RunningBox, World } from '../box/world.ts'
import { ShiftedClock } from '../clock/clock.ts'
import { noPreload } from '../disk/preload.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Messages that arrive in an hour of the box, which is a case, and clients that deliver them. */
const [messagesOfCase, clients] = [3000, 6]

/** One in so many is answered to somebody elsewhere: an identity may send to 200 recipients an hour. */
const answered = 20

const hoursOfDay = 24

/** Hours after which its owner deletes an e-mail, and hours from one backup to the next. */
const [keptFor, betweenBackups] = [6, 6]

/** The most hours for which a deleted e-mail can be restored: one by its setting, and some in which the job that deletes it waits on the clock of the machine. */
const mostHoursInTrash = 12

/** Milliseconds in which what was accepted leaves, and events are heard. */
const patience = 60_000

/** The most memory of a box at any time, in bytes. */
const mostMemory = 600 * 1024 * 1024

/** A later day may take so many times what the day has that it is compared with: the second for memory, the fourth, when what is kept for a day or two has been deleted before, for files. */
const growth = 1.05
const [dayOfMemory, dayOfFiles] = [2, 4]

const settings = {
  PILLARBOX_RETENTION__TRASH: '1 h',
  PILLARBOX_RETENTION__EVENTS: '1 d',
  PILLARBOX_RETENTION__AUDIT: '1 d',
  PILLARBOX_RETENTION__DELIVERIES: '1 d',
  PILLARBOX_BACKUP__KEEP: '2',
}

export const soak: Trial = {
  name: 'soak',
  about:
    'As many messages as in eight hours at 20 a second, on one box whose time of day runs through eight days meanwhile, so that each night retention deletes. One in twenty is ' +
    'answered to somebody elsewhere, each is told to a webhook, their owners delete what is older than six hours, and every six hours there is a backup. What ' +
    'was accepted is there once until it is deleted, what was sent arrives, every event is heard, the box logs no error and takes 600 MiB at most; memory of ' +
    'a day is at most 1.05 times that of the second, files 1.05 times those of the fourth. These two comparisons begin with the third and the fifth day, after 216,000 and 360,000 messages: no ' +
    'shorter run makes them, and of the builds `leak` and `kept-trash` are found by other checks before; `slow-leak` is for the first of them, and the second has none. Its hours follow each other on one box: what takes days to show is repeated by a whole run.',
  goal: { tries: 576_000, unit: 'messages', faults: 'memory flat, file size bounded, 0 errors' },
  short: messagesOfCase,
  hours: 1.75,
  broken: {
    leak: {
      what: 'something of each message stays in memory',
      file: 'src/mail/inbox.ts',
      find: 'if (!this.#deps.hosted.receives(domain)) throw new Refusal(',
      replace:
        'Object.assign(globalThis, { [String(Math.random())]: Buffer.alloc(65_536, 1) })\n    if (!this.#deps.hosted.receives(domain)) throw new Refusal(',
    },
    'slow-leak': {
      what: 'some 600 octets of each message stay in memory',
      file: 'src/mail/inbox.ts',
      find: 'if (!this.#deps.hosted.receives(domain)) throw new Refusal(',
      replace:
        'Object.assign(globalThis, { [String(Math.random())]: Buffer.alloc(512, 1) })\n    if (!this.#deps.hosted.receives(domain)) throw new Refusal(',
    },
    'kept-trash': {
      what: 'the trash is never emptied',
      file: 'src/ops/retention/module.ts',
      find: 'await this.trash.sweep(signal)',
      replace: '',
    },
  },
  missing: noPreload,
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const clock = new ShiftedClock(directory)
    const world = await World.open(directory, program, randomFrom(seed))
    const home = world.home('box')
    const box = await world.start(home, { ...clock.env, ...settings })
    const trial = new Soak(world, { box, home, clock, seed })
    return {
      run: (number) => trial.run(number),
      notes: () => trial.notes(),
      async close() {
        await box.process.end('SIGKILL')
        clock.close()
        await world.close()
      },
    }
  },
}

/** The memory and the files of a day, in bytes. */
interface Day {
  memory: number[]
  files: number
}

class Soak {
  readonly #world: World
  readonly #box: RunningBox
  readonly #home: string
  readonly #clock: ShiftedClock
  readonly #seed: number
  /** The subjects that are stored, by the hour in which they came. */
  readonly #kept: Set<string>[] = []
  /** The ids of the answers that are stored, by the hour in which they were sent. */
  readonly #sent: string[][] = []
  readonly #days: Day[] = []
  #hours = 0

  constructor(world: World, { box, home, clock, seed }: { box: RunningBox; home: string; clock: ShiftedClock; seed: number }) {
    this.#world = world
    this.#box = box
    this.#home = home
    this.#clock = clock
    this.#seed = seed
  }

  async run(number: number): Promise<CaseResult> {
    const random = randomFrom(caseSeed(this.#seed, number))
    this.#world.peers.begin(() => this.#clock.now())
    const subjects = Array.from({ length: messagesOfCase }, (_, index) => `case${number}-${index}`)
    const faults: string[] = []
    const day = (this.#days[Math.floor(this.#hours / hoursOfDay)] ??= { memory: [], files: 0 })
    const received = subjects.map((subject, index) => async () => {
      this.#clock.jump(hour / messagesOfCase)
      const raw = message({ Subject: subject, 'Message-ID': `<${subject}@client.test>` }, `${'words '.repeat(random(300))}\n`)
      const reply = await deliver(this.#box.smtp, { to: this.#world.furnished.inbox.email, raw })
      if (!reply.startsWith('250')) faults.push(`${subject} was answered with ${reply}`)
      if (index % answered === 0) await this.#answer(subject, random)
      if (index % 100 === 0) day.memory.push(this.#memory())
    })
    this.#sent.push([])
    await atOnce(clients, received)
    this.#kept.push(new Set(subjects))
    this.#hours += 1
    if (this.#hours % betweenBackups === 0) await this.#backup()
    faults.push(...(await this.#faultsOfPeers(subjects)), ...(await this.#faultsKept()), ...this.#faultsOfBox())
    day.files = Math.max(day.files, bytesBelow(join(this.#home, 'data')))
    if (this.#hours % hoursOfDay === 0) faults.push(...this.#faultsOfDay())
    return { tries: messagesOfCase, faults }
  }

  async #answer(subject: string, random: Random): Promise<void> {
    const path = `/v1/identities/${this.#world.furnished.writer.id}/emails`
    const { id } = await this.#box.get('POST', path, {
      to: `${subject}@${pick(farDomains, random)}`,
      subject,
      body_text: 'Thank you.\n',
    })
    this.#sent.at(-1)!.push(String(id))
  }

  async #backup(): Promise<void> {
    const { id } = await this.#box.get('POST', '/v1/backups')
    for (let status = 'running'; status !== 'done'; await sleep(50)) {
      status = String((await this.#box.get('GET', `/v1/jobs/${id}`))['status'])
      if (status === 'failed') throw new Error(`The backup ${id} failed.`)
    }
  }

  /** What has not arrived elsewhere, or not once. */
  async #faultsOfPeers(subjects: readonly string[]): Promise<string[]> {
    const { peers } = this.#world
    const events = (): number => [...peers.heard().values()].filter(([one]) => one!.body.type === 'email.received').length
    const [answers, arrived] = [Math.ceil(subjects.length / answered), (): number => peers.copies().size]
    for (const end = performance.now() + patience; performance.now() < end; await sleep(200))
      if (arrived() >= answers && events() >= subjects.length) break
    return [
      ...(arrived() === answers ? [] : [`${arrived()} of ${answers} messages arrived elsewhere`]),
      ...(events() === subjects.length ? [] : [`${events()} of ${subjects.length} events were heard`]),
      ...[...peers.copies()].filter(([, copies]) => copies.length > 1).map(([id]) => `${id} was sent more than once`),
    ]
  }

  /** Compares what is stored, and deletes what is old. */
  async #faultsKept(): Promise<string[]> {
    const { inbox, writer } = this.#world.furnished
    const stored = await this.#box.list(`/v1/identities/${inbox.id}/emails?duplicates=true`)
    const expected = new Set(this.#kept.flatMap((one) => [...one]))
    const found = new Set(stored.map(({ subject }) => String(subject)))
    const faults = [...expected].filter((subject) => !found.has(subject)).map((subject) => `${subject} was accepted and is lost`)
    if (stored.length !== expected.size) faults.push(`${stored.length} e-mails are stored, and ${expected.size} should be`)
    const inTrash = `/v1/identities/${inbox.id}/emails?trash=true&limit=1&offset=${mostHoursInTrash * messagesOfCase}`
    if ((await this.#box.get('GET', inTrash))['data'].length > 0) faults.push('what was deleted is in the trash for too long')
    if (this.#kept.length <= keptFor) return faults
    const old = this.#kept.shift()!
    const ids = stored.filter(({ subject }) => old.has(String(subject))).map(({ id }) => String(id))
    await this.#delete(inbox.id, ids)
    await this.#delete(writer.id, this.#sent.shift()!)
    return faults
  }

  async #delete(identity: string, ids: readonly string[]): Promise<void> {
    for (let at = 0; at < ids.length; at += 500)
      await this.#box.get('POST', `/v1/identities/${identity}/emails/bulk`, { ids: ids.slice(at, at + 500), delete: true })
  }

  /** What each day took, and with which days the last one was compared. */
  notes(): string[] {
    const taken = this.#days.map(
      ({ memory, files }, index) => `day ${index + 1}: ${mebibytes(median(memory))} of memory, ${mebibytes(files)} of files`,
    )
    const whole = Math.floor(this.#hours / hoursOfDay)
    const compared = (first: number): string =>
      whole > first ? `compared with day ${first}` : 'not compared, as there were too few days'
    return [...taken, `memory was ${compared(dayOfMemory)}, files were ${compared(dayOfFiles)}`]
  }

  #faultsOfBox(): string[] {
    const memory = Math.max(this.#memory(), ...this.#days.at(-1)!.memory)
    return [...faultsOfLog(this.#box), ...(memory > mostMemory ? [`the box holds ${mebibytes(memory)}`] : [])]
  }

  /** What has grown since the days that the last one is compared with. */
  #faultsOfDay(): string[] {
    const today = this.#days.at(-1)!
    const [second, fourth] = [this.#days[dayOfMemory - 1], this.#days[dayOfFiles - 1]]
    const faults: string[] = []
    if (second && median(today.memory) > growth * median(second.memory))
      faults.push(
        `day ${this.#days.length} takes ${mebibytes(median(today.memory))}, the second ${mebibytes(median(second.memory))}`,
      )
    if (fourth && today.files > growth * fourth.files)
      faults.push(`the files of day ${this.#days.length} are ${mebibytes(today.files)}, of the fourth ${mebibytes(fourth.files)}`)
    return faults
  }

  /** Resident memory of the box, in bytes. */
  #memory(): number {
    const status = readFileSync(`/proc/${this.#box.process.child.pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)![1]) * 1024
  }
}

function bytesBelow(directory: string): number {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + (statSync(join(parentPath, name), { throwIfNoEntry: false })?.size ?? 0), 0)
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 / 1024)} MiB`
}
