import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BoxProcess } from '../../support/process.ts'
import { pick, type Random, randomFrom } from '../../support/random.ts'
import { Load, type Refusal } from '../box/load.ts'
import type { HandedOver } from '../box/peers.ts'
import { faultsOfLog, loggedErrors } from '../box/log.ts'
import { faultsInBackup, faultsOf, faultsOfDrafts, faultsOfKeys, faultsOfShelf, faultsOnDisk } from '../box/oracle.ts'
import { lastLines, type RunningBox, started, World } from '../box/world.ts'
import { faultsOfFollower } from '../boxes/checks.ts'
import { Follower } from '../boxes/follower.ts'
import { compilePreload, type KillAt, noPreload, preloadEnv } from '../disk/preload.ts'
import { checkout } from '../builds.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'
import { fetchPackages, noHistory, releases, unpack } from '../upgrades/releases.ts'

const newest = readdirSync(join(checkout, 'src/store/migrations')).length

/** Kills of the box of one case under load; those of starts, of migrations and of rotations come besides. */
const lives = 4

/** Milliseconds for a box under load to come to the window in which it is to be killed. */
const patience = 6000

const backupWindow = 'before a backup gets its name'

/** The windows that are hit under load: the call of the box at which it is killed, and up to which such call. */
const windows: Record<string, Omit<KillAt, 'at'> & { upTo: number }> = {
  'between the fsync of a message and its 250': { call: 'send', text: '250 2.0.0 Ok: queued as', upTo: 20 },
  'between the commit of a call and its answer': { call: 'send', text: 'HTTP/1.1 201', upTo: 40 },
  'between the commit of a deletion or a rotation and its answer': { call: 'send', text: 'HTTP/1.1 200', upTo: 20 },
  'between the record of an attempt and the bytes of the message': { call: 'send', text: 'DATA\r', upTo: 8 },
  'between the 250 of the receiver and the record of it': { call: 'receive', text: '250 2.0.0 Ok', upTo: 8 },
  'between the fan-out of an event and its post': { call: 'send', text: 'POST / HTTP/1.1', upTo: 8 },
  'between the answer of a webhook and the record of it': { call: 'receive', text: 'HTTP/1.1 200', upTo: 8 },
  'between the record of an attempt and a text message': { call: 'send', text: '/Messages.json', upTo: 5 },
  'between the answer to a text message and the record of it': { call: 'receive', text: 'HTTP/1.1 201', upTo: 5 },
  'between the commit of an event and its WebSocket': { call: 'send', text: '"type":"event"', upTo: 20 },
  [backupWindow]: { call: 'rename', text: '.tar', upTo: 1 },
  'in the middle of writing files': { call: 'write', text: '', upTo: 200 },
}

export const kills: Trial = {
  name: 'kills',
  about:
    'A box under mixed load (mail in by SMTP and its deletion, identities, outgoing mail, text messages in and out, one-time passwords, cards, their reveals ' +
    'and cancellations, API keys and their rotation, rotation of the secret of a webhook, metadata, webhooks, a WebSocket, backups) is ended by SIGKILL: at a ' +
    'random moment under load, while it starts or while it stops; or by itself in a window that is named, when it is about to make, or has just made, the ' +
    'call to the system that opens or ends the window. In some cases its data are of a former form, and it is killed while it migrates them; between two lives ' +
    'the master key is rotated, and the command killed. Started again, it has all that it acknowledged, once. What was not answered and is repeated under the ' +
    'same idempotency key is there once; or its key says that it was interrupted (409), and it is there once or not at all. Mail that was not answered is sent ' +
    'to the box again: it is listed once, its other copies are marked and are no event. A message that leaves, or a post of a webhook, arrives with the same ' +
    'bytes, at most once in each life of the box, and never again once its outcome is in the database, as that is after each kill: no more than once, and once for ' +
    'each kill between its acceptance and its record. A text message is handed over at most once. A WebSocket that resumes with `since` is sent the whole log, in ' +
    'its order, each event once. The database and its backups verify. Where the process that writes a backup is killed with the box, the unfinished ' +
    'files, which a later backup removes, are not looked at. A box that ends by itself, or logs an error, is a fault. The provider of text messages is a stand-in for Twilio; the key of the API that the load ' +
    'itself uses is not rotated.',
  goal: { tries: 1000, unit: 'kills', faults: '0 acknowledged lost, 0 doubled beyond what is promised, 0 half-made' },
  short: 4,
  hours: 1,
  fetch: async () => {
    if (noHistory() === undefined) await fetchPackages()
  },
  missing: noPreload,
  broken: {
    'early-answer': {
      what: 'mail is acknowledged before it is stored',
      file: 'src/mail/inbox.ts',
      find: 'return await store()',
      replace: "setTimeout(() => void store().catch(() => undefined), 30)\n      return ['']",
    },
    'repeated-call': {
      what: 'a call that had changed something when the box was killed is made again',
      file: 'src/http/idempotency.ts',
      find: '(status = 0 AND ${interrupted})',
      replace: '(status < 2 AND ${interrupted})',
    },
    'text-again': {
      what: 'a text message whose answer was lost is handed over again',
      file: 'src/sms/courier.ts',
      find: 'row.lost === 1 && !provider.idempotent',
      replace: 'row.lost === 2 && !provider.idempotent',
    },
    'skipped-event': {
      what: 'a WebSocket that resumes is not sent the first event that it missed',
      file: 'src/realtime/subscription.ts',
      find: 'for (const place of found) await this.#sendStored(place)',
      replace: 'for (const place of found.slice(low === seq ? 1 : 0)) await this.#sendStored(place)',
    },
    'unmarked-copy': {
      what: 'mail that is sent again as its answer was lost is not recognised',
      file: 'src/mail/inbox.ts',
      find: 'const original = await duplicateOf(tx, { ...copy, ...content, recipient: to }, now)',
      replace: 'const original = now < 0 ? await duplicateOf(tx, { ...copy, ...content, recipient: to }, now) : undefined',
    },
    'self-exit': {
      what: 'the box ends by itself after 16 messages',
      file: 'src/mail/inbox.ts',
      find: 'note({ email_ids: await this.#storeAll({ envelope, raw, examined, spam }) })',
      replace:
        "note({ email_ids: await this.#storeAll({ envelope, raw, examined, spam }) })\n    Object.assign(globalThis, { taken: (Reflect.get(globalThis, 'taken') ?? 0) + 1 })\n    if (Reflect.get(globalThis, 'taken') === 16) process.exit(1)",
    },
    'early-outcome': {
      what: 'a message is recorded as delivered before it is handed over',
      file: 'src/outbound/transport/courier.ts',
      find: "{ status: 'sending', attempts: attempt, next_attempt_at: null })",
      replace: "{ status: 'delivered', attempts: attempt, next_attempt_at: null })",
    },
  },
  async open({ directory, program, seed, short = false }: Setting): Promise<Cases> {
    const library = compilePreload(directory)
    const beginning = randomFrom(seed)
    const world = await World.open(join(directory, 'now'), program, beginning, { texts: true })
    const tally = new Map<string, number>()
    const former = short || noHistory() !== undefined ? undefined : await formerWorld(directory, program, beginning)
    return {
      async run(number) {
        const random = randomFrom(caseSeed(seed, number))
        const migrates = former !== undefined && number % 4 === 3
        const one = new KillCase(migrates ? former.world : world, { number, library, migrates, tally }, random)
        return one.run()
      },
      notes: () => [
        ...Array.from(tally, ([window, count]) => `killed ${window}: ${count}`).toSorted(),
        ...(former === undefined ? ['no data of a former form'] : [`data of the form of version ${former.version}`]),
      ],
      async close() {
        await world.close()
        await former?.world.close()
      },
    }
  },
}

/** A world whose homes are those of a former release, and whose boxes are of now. */
async function formerWorld(directory: string, program: string, random: Random): Promise<{ world: World; version: number }> {
  const release = pick(releases(), random)
  const place = join(directory, `program-${release.version}`)
  await unpack(release, place)
  const world = await World.open(join(directory, 'former'), place, random, { texts: true })
  return { world: world.of(program), version: release.version }
}

interface Plan {
  number: number
  library: string
  /** Whether the data are of a former form. */
  migrates: boolean
  /** Kills by window. */
  tally: Map<string, number>
}

/** When a box was dead, and what it had recorded as over by then. */
interface Death {
  at: number
  over: Set<string>
}

class KillCase {
  readonly #world: World
  readonly #plan: Plan
  readonly #random: Random
  readonly #home: string
  readonly #load: Load
  readonly #syncDelay: number
  readonly #deaths: Death[] = []
  readonly #faults: string[] = []
  #follower: Follower | undefined
  #box: RunningBox | undefined
  /** The former form of the data. */
  #version: number | undefined
  #kills = 0

  constructor(world: World, plan: Plan, random: Random) {
    this.#world = world
    this.#plan = plan
    this.#random = random
    this.#home = world.home(`case-${plan.number}`)
    // on a slow disk more is between a write and its answer
    this.#syncDelay = random(3) * 4000
    this.#load = new Load(random, world.furnished, () => performance.now())
  }

  async run(): Promise<CaseResult> {
    this.#world.peers.begin(() => 0)
    try {
      if (this.#plan.migrates) await this.#migrate()
      for (let life = 0; life < lives; life++) await this.#live(life)
      await this.#compare()
      return { tries: this.#kills, faults: this.#faults }
    } catch (error) {
      // what was found before is not lost
      if (this.#faults.length === 0) throw error
      return { tries: this.#kills, faults: [...this.#faults, (error as Error).message] }
    } finally {
      await this.#box?.process.end('SIGKILL')
      await this.#follower?.stop()
      rmSync(this.#home, { recursive: true, force: true })
    }
  }

  #env(kill?: KillAt): Record<string, string> {
    return preloadEnv(this.#plan.library, this.#home, { syncDelay: this.#syncDelay, kill })
  }

  /** Counts a kill. */
  #count(window: string): void {
    this.#kills += 1
    this.#plan.tally.set(window, (this.#plan.tally.get(window) ?? 0) + 1)
  }

  /** Notes the end of a box: where it was killed, or undefined where it ended otherwise. */
  async #died(process: BoxProcess, window: string | undefined): Promise<void> {
    if (window !== undefined) this.#count(window)
    this.#faults.push(...loggedErrors(process))
    // what the box had sent is read by its peers
    const { sink } = this.#world.peers
    while (sink.open > 0) await sleep(5)
    await sleep(30)
    // its process was killed, too: a later backup removes what is left
    if (window === backupWindow) this.#removeBackups(/\.tar\.part/)
    const file = join(this.#home, 'data', 'pillarbox.db')
    this.#deaths.push({ at: performance.now(), over: recorded(file) })
  }

  async #live(life: number): Promise<void> {
    const random = this.#random
    if (life > 0 && random(4) === 0) {
      const process = this.#world.begin(this.#home, this.#env())
      const hasStarted = process.said('started').then(
        () => true,
        () => false,
      )
      await Promise.race([hasStarted, sleep(random(1500))])
      const isKilled = this.#isKilled(process, await process.end('SIGKILL'))
      const where = (await hasStarted) ? 'once it has started' : 'while it starts'
      await this.#died(process, isKilled ? where : undefined)
    }
    if (life > 0 && random(4) === 0) await this.#rotate()
    const names = Object.keys(windows)
    const window = random(4) === 0 ? undefined : names[(this.#plan.number * lives + life) % names.length]!
    const { upTo, ...call } = windows[window ?? names[0]!]!
    const kill = window === undefined ? undefined : { ...call, at: 1 + random(upTo) }
    const process = this.#world.begin(this.#home, this.#env(kill))
    let box: RunningBox
    try {
      box = await started(process)
    } catch (error) {
      // one that does not start in time is killed by this process
      if ((await process.ended) !== 'SIGKILL' || process.child.killed || window === undefined) throw error
      return await this.#died(process, window)
    }
    this.#box = box
    this.#follower ??= new Follower(box.api)
    this.#follower.api = box.api
    if (life > 0) {
      await this.#load.repeat(box)
      await this.#load.sendAgain(box)
    }
    await this.#died(process, await this.#underLoad(box, window))
  }

  /** Whether a box was killed: while it lived, or by its preload in a window. A fault where it ended by itself. */
  #isKilled(process: BoxProcess, status: number | string, window?: string): boolean {
    if (status === 'SIGKILL' && (process.child.killed || window !== undefined)) return true
    this.#faults.push(`the box ended by itself with ${status}: ${lastLines(process)}`)
    return false
  }

  /** Lets a box work until it is killed; answers where it was, or undefined where it ended otherwise. */
  async #underLoad(box: RunningBox, window: string | undefined): Promise<string | undefined> {
    const [load, random] = [this.#load, this.#random]
    const before = load.acknowledged
    const running = load.begin(box)
    const wanted = window === backupWindow || random(2) === 0
    const backup = wanted ? load.backup(box) : undefined
    const { child } = box.process
    const isGone = (): boolean => child.exitCode !== null || child.signalCode !== null
    const refused = load.refusals.length
    let stops = false
    if (window !== undefined) await Promise.race([box.process.ended, sleep(patience)])
    else {
      while (load.acknowledged === before && !isGone()) await sleep(2)
      await sleep(random(400))
      stops = random(4) === 0
      if (stops) {
        child.kill('SIGTERM')
        await sleep(random(60))
      }
    }
    const status = await box.process.end('SIGKILL')
    running.stop()
    await running.ended
    await backup
    // some put off what they are asked while they stop
    if (stops) load.refusals.push(...load.refusals.splice(refused).filter((refusal) => !isPutOff(refusal)))
    // it had stopped before it was killed
    if (stops && status === 0) return undefined
    if (!this.#isKilled(box.process, status, window)) return undefined
    if (!child.killed) return window
    return stops ? 'while it stops' : 'at a random moment under load'
  }

  /** Starts a box on data of a former form, and kills it while it migrates them. */
  async #migrate(): Promise<void> {
    const file = join(this.#home, 'data', 'pillarbox.db')
    const before = (this.#version = versionOf(file))
    for (let tries = 0; tries < 2; tries++) {
      const process = this.#world.begin(this.#home, this.#env({ call: 'write', at: 1 + this.#random(400), text: '' }))
      const where = await Promise.race([
        process.said('started').then(
          () => 'started',
          () => 'ended',
        ),
        sleep(60_000),
      ])
      const status = await process.end('SIGKILL')
      // the write ahead log is read by what is started next, and by this
      const after = versionOf(file)
      if (where === undefined) this.#faults.push(`it has not migrated within a minute: ${lastLines(process)}`)
      else if (status !== 'SIGKILL') this.#faults.push(`it does not migrate, and ended with ${status}: ${lastLines(process)}`)
      else
        this.#count(
          where === 'ended' && after < newest
            ? 'in the migration of data of a former form'
            : 'after the migration of data of a former form',
        )
      this.#faults.push(...loggedErrors(process))
      if (after < before) this.#faults.push(`the version went from ${before} to ${after}`)
    }
  }

  #removeBackups(which: RegExp): void {
    const shelf = join(this.#home, 'backups')
    for (const name of readdirSync(shelf)) if (which.test(name)) rmSync(join(shelf, name))
  }

  /** The copy from before the migration is whole, and stays. */
  #checkCopy(version: number): void {
    const copy = join(this.#home, 'data', `pillarbox.db.before-${version}`)
    const kept = versionOf(copy)
    if (kept !== version) this.#faults.push(`${copy} has version ${kept}`)
    // it is nothing that is left by mistake
    rmSync(copy, { force: true })
  }

  /** Rotates the master key of a box that is dead, in half of the cases killed meanwhile. */
  async #rotate(): Promise<void> {
    const random = this.#random
    // those of before need the key of before
    this.#faults.push(...(await faultsOfShelf(this.#world, this.#home)))
    this.#removeBackups(/\.tar$/)
    const points: KillAt[] = [
      { call: 'rename', at: 1 + random(2), text: 'master.key' },
      { call: 'write', at: 1 + random(60), text: '' },
    ]
    const kill = random(2) === 0 ? pick(points, random) : undefined
    const command = this.#world.command(this.#home, ['key', 'rotate-master'], this.#env(kill))
    const status = await command.ended
    if (status === 'SIGKILL' && kill !== undefined) this.#count('in the rotation of the master key')
    else if (status !== 0) this.#faults.push(`key rotate-master ended with ${status}: ${lastLines(command)}`)
  }

  async #compare(): Promise<void> {
    const [world, load, home] = [this.#world, this.#load, this.#home]
    const box = (this.#box = await world.start(home))
    this.#follower ??= new Follower(box.api)
    this.#follower.api = box.api
    await load.repeat(box)
    await load.sendAgain(box)
    const faults = this.#faults
    faults.push(...faultsOfKeys(load))
    faults.push(...(await faultsOf(box, { world, load, starts: this.#deaths.length + 1 })))
    faults.push(...faultsOfCopies(world.peers.handedOver, this.#deaths))
    for (const end = Date.now() + 20_000; this.#follower.first === undefined && Date.now() < end;) await sleep(50)
    faults.push(...(await faultsOfFollower(box, this.#follower)))
    await this.#follower.stop()
    for (const { write, status, answer } of load.refusals) faults.push(`${write.name} was answered with ${status}: ${answer}`)
    if (this.#random(4) === 0) faults.push(...(await faultsInBackup(world, home)))
    faults.push(...faultsOfLog(box))
    const status = await box.process.end('SIGTERM')
    if (status !== 0) faults.push(`the box ended with ${status}`)
    faults.push(...loggedErrors(box.process))
    if (this.#version !== undefined) this.#checkCopy(this.#version)
    faults.push(...(await faultsOnDisk(world, home)), ...(await faultsOfDrafts(home)))
  }
}

/** Copies of messages and events that no kill explains: two in one life, and any after the outcome was recorded. */
function faultsOfCopies(handedOver: readonly HandedOver[], deaths: readonly Death[]): string[] {
  const faults: string[] = []
  for (const copies of Map.groupBy(handedOver, ({ id }) => id).values()) {
    const { kind, id } = copies[0]!
    const lived = copies.map(({ at }) => deaths.filter((death) => death.at < at).length)
    if (new Set(lived).size < lived.length)
      faults.push(`${kind} ${id} was handed over twice in one life of the box (${lived.join(', ')})`)
    for (const life of lived)
      if (deaths.slice(0, life).some(({ over }) => over.has(id)))
        faults.push(`${kind} ${id} was handed over again in life ${life}, after its outcome was recorded`)
  }
  return faults
}

/** The Message-IDs and the ids of events whose handover the database of a dead box records. */
function recorded(file: string): Set<string> {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const rows = database
      .prepare(
        `SELECT message_id AS id FROM emails JOIN email_recipients ON email_id = emails.id WHERE email_recipients.status = 'delivered'
          UNION SELECT json_extract(load, '$.event_id') FROM deliveries_queue WHERE kind = 'webhook' AND state = 'done'`,
      )
      .all()
    return new Set(rows.map(({ id }) => String(id)))
  } finally {
    database.close()
  }
}

/** The number of migrations that a database has. */
function versionOf(file: string): number {
  if (!existsSync(file)) return -1
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return Number(database.prepare('PRAGMA user_version').get()!['user_version'])
  } finally {
    database.close()
  }
}

/** Whether it is the answer of a box that stops. */
function isPutOff({ write, status, answer }: Refusal): boolean {
  return write.kind === 'mail' ? status === 421 : answer.includes('"code":"restarting"')
}
