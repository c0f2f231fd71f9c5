import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pick, type Random, randomFrom } from '../../support/random.ts'
import { Load, type Refusal } from '../box/load.ts'
import { faultsOf, faultsOfDrafts, faultsOnDisk } from '../box/oracle.ts'
import { farDomains } from '../box/peers.ts'
import { type Answer, type Answered, lastLines, type RunningBox, started, World } from '../box/world.ts'
import { type Call, calls, compilePreload, cuts, DiskControl, type Failing, noPreload, preloadEnv } from '../disk/preload.ts'
import { inodesBelow, Recording } from '../disk/recording.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

const { EIO, ENOSPC, EDQUOT } = constants.errno
const errorNames = new Map([
  [EIO, 'EIO'],
  [ENOSPC, 'ENOSPC'],
  [EDQUOT, 'EDQUOT'],
])

/** Milliseconds in which a box goes on once its disk works again. */
const patience = 20_000

/** From when calls are counted: the first start of all, another start, the begin of a load, or the end that is asked for. */
const phases = ['first', 'start', 'load', 'stop'] as const
type Phase = (typeof phases)[number]

/**
 * The calls of a healthy first start, start, load and stop, counted once and rounded up: each of them fails in some case. They are written here so that a
 * case follows from its number alone; what a run counts itself is in its notes.
 */
const counted: Record<Call, Record<Phase, number>> = {
  open: { first: 24, start: 11, load: 12, stop: 0 },
  write: { first: 4, start: 0, load: 0, stop: 0 },
  pwrite: { first: 1920, start: 6, load: 900, stop: 80 },
  fsync: { first: 110, start: 4, load: 30, stop: 6 },
  fdatasync: { first: 10, start: 4, load: 20, stop: 8 },
  truncate: { first: 4, start: 1, load: 5, stop: 2 },
  rename: { first: 6, start: 0, load: 1, stop: 0 },
  link: { first: 5, start: 0, load: 0, stop: 0 },
  unlink: { first: 12, start: 2, load: 4, stop: 2 },
  mkdir: { first: 4, start: 3, load: 0, stop: 0 },
  close: { first: 11, start: 6, load: 13, stop: 7 },
  read: { first: 760, start: 416, load: 1050, stop: 80 },
  'open to read': { first: 23, start: 13, load: 10, stop: 0 },
}

const isRead = (call: Call): boolean => call === 'read' || call === 'open to read'
const isSync = (call: Call): boolean => call === 'fsync' || call === 'fdatasync'

type How = Omit<Failing, 'call' | 'at'>

/** How a call of this kind fails. */
function failuresOf(call: Call): How[] {
  const errors = isRead(call) ? [EIO] : [EIO, ENOSPC, EDQUOT]
  const whole = errors.flatMap((error) => [false, true].map((permanent) => ({ error, permanent })))
  if (call !== 'write' && call !== 'pwrite') return whole
  // once, the first of a disk that is full from there on, and each
  const kinds: How[] = [
    { error: 0, permanent: false },
    { error: ENOSPC, permanent: true },
    { error: 0, permanent: true },
  ]
  return [...whole, ...cuts.flatMap((cut) => kinds.map((kind) => ({ ...kind, cut })))]
}

interface Position {
  failing: Failing
  phase: Phase
}

/** Every call of every kind at least once, and every way to fail, of the few calls of a kind at two places at least. */
const positions = spread(
  calls.flatMap((call) => {
    const places = phases.flatMap((phase) =>
      Array.from({ length: counted[call][phase] }, (_, index) => ({ phase, at: index + 1 })),
    )
    const ways = failuresOf(call)
    const length = Math.max(places.length, 2 * ways.length)
    return Array.from({ length: places.length === 0 ? 0 : length }, (_, index): Position => {
      const { phase, at } = places[index % places.length]!
      return { phase, failing: { call, at, ...ways[index % ways.length]! } }
    })
  }),
)

/** All items in another order, in which neighbours are far from one another. */
function spread<Item>(items: Item[]): Item[] {
  const order = randomFrom(1)
  return items
    .map((item) => ({ item, place: order(2 ** 30) }))
    .toSorted((one, other) => one.place - other.place)
    .map(({ item }) => item)
}

/** In the next round each call fails in another way. */
function positionOf(number: number): Position {
  const { phase, failing } = positions[number % positions.length]!
  const ways = failuresOf(failing.call)
  const way = ways.findIndex(
    ({ error, permanent, cut }) => error === failing.error && permanent === failing.permanent && cut === failing.cut,
  )
  return {
    phase,
    failing: { call: failing.call, at: failing.at, ...ways[(way + Math.floor(number / positions.length)) % ways.length]! },
  }
}

export const failingDisks: Trial = {
  name: 'failing-disks',
  about:
    'Calls on the files of a box fail: opens to write and to read, writes (write, pwrite), syncs (fsync, fdatasync), truncations, renames, links, removals, new ' +
    'directories, closes and reads, with EIO, those that change something also with ENOSPC and EDQUOT, once or from then on; and writes are cut to one byte, to half ' +
    'and to all but one byte, once, each of them, or before a disk that is full; SQLite and Node.js write the rest, so that no build which leaves it out could be found. Each call of a first start, of another start, of a short load with a backup, ' +
    'and of a stop fails in one case, up to the number that was counted once; the notes say how many of them the run has failed, as a run of fewer cases than the ' +
    'goal fails a sample of them. A call fails in one of these ways in a round, and in the next one in another. Left out are what is done to the index ' +
    'of the log (-shm), which is mapped, calls of the kernel that no function of the C library makes, and calls of other kinds (stat, readdir, lseek, chmod, locks). Nothing that was ' +
    'acknowledged is lost; what is refused is put off (451, 452 or 421 by SMTP, in the API a code of the store); reading goes on; once the disk works again, the ' +
    'same box reads, in short and in slow reads, and unless a sync has failed, for which it has to be restarted, it writes, a message leaves, a webhook is told, and ' +
    'where the calls are those of backups, or in one case of four, a backup is made; the backups that are there are those that are said to be made, and no draft is ' +
    'left where removals do not fail from then on; a box that cannot start or stop in peace says why. What a failed sync was to write is taken as lost for ' +
    'good, but at a first start, after which the next box finds the files as the kernel has them.',
  goal: { tries: positions.length, unit: 'failures', faults: 'each answered as promised, 0 acknowledged lost' },
  short: 4,
  hours: 7,
  missing: noPreload,
  broken: {
    'ignored-sync': {
      what: 'a failed sync of the log is ignored',
      file: 'src/store/sqlite/database.ts',
      find: '      throw this.#break(error)\n',
      replace: '',
    },
    'permanent-refusal': {
      what: 'mail that cannot be stored is refused for good',
      file: 'src/smtp/replies.ts',
      find: "new Refusal(452, '4.3.1', 'Insufficient",
      replace: "new Refusal(552, '5.3.1', 'Insufficient",
    },
    'read-error': {
      what: 'a read error as a commit is made visible is not caught',
      file: 'src/store/sqlite/reader.ts',
      find: '      this.#database.close()\n    }\n  }\n\n  close',
      replace: "      throw new Error('the disk failed')\n    }\n  }\n\n  close",
    },
    'dead-queue': {
      what: 'the queue stops for good when it cannot read or write the store',
      file: 'src/queue/queue.ts',
      find: "      log.error({ err: error }, 'queue could not be read; retrying')\n",
      replace: "      this.#state = 'stopping'\n",
    },
    'dead-reader': {
      what: 'lists are not read any more once a read of one has failed',
      file: 'src/store/sqlite/reader.ts',
      find: '  all(query: Sql): unknown[] {\n    try {\n      return this.#prepare(query.sql).all(parameters(query))\n    } catch (error) {\n',
      replace:
        '  #dead: unknown\n\n  all(query: Sql): unknown[] {\n    try {\n      if (this.#dead !== undefined) throw this.#dead\n' +
        '      return this.#prepare(query.sql).all(parameters(query))\n    } catch (error) {\n      this.#dead = error\n',
    },
    'lost-rename': {
      what: 'a backup whose rename fails counts as made',
      file: 'src/ops/backup/make.ts',
      find: '  renameSync(draft, file)\n',
      replace: '  try {\n    renameSync(draft, file)\n  } catch {\n    // it stays a draft\n  }\n',
    },
  },
  async open({ directory, program, seed, short }: Setting): Promise<Cases> {
    const library = compilePreload(directory)
    const world = await World.open(directory, program, randomFrom(seed))
    const seen = new Seen()
    const one = (number: number, { phase, failing }: Position): FailingCase => {
      const paths = ['log', 'control', 'base', 'dropped'].map((name) => join(directory, `case-${number}-${name}`))
      return new FailingCase(world, { library, failing, phase, paths, number }, randomFrom(caseSeed(seed, number)))
    }
    return {
      async run(number) {
        // no call fails at 0: what there is to fail is counted
        if (!short && seen.healthy === undefined) seen.healthy = await one(number, { phase: 'start', failing: healthy }).count()
        const position = positionOf(number)
        const { failing, phase } = position
        const tried = one(number, position)
        const faults = await tried.run()
        if (tried.failed > 0) seen.add(position)
        return { tries: tried.failed > 0 ? 1 : 0, faults: faults.map((fault) => `${textOf(failing)} ${texts[phase]}: ${fault}`) }
      },
      notes: () => seen.notes(),
      close: () => world.close(),
    }
  },
}

const healthy: Failing = { call: 'open', at: 0, error: 0, permanent: false }

const texts: Record<Phase, string> = {
  first: 'at the first start',
  start: 'from the start',
  load: 'under load',
  stop: 'while it stops',
}

function textOf({ call, at, error, permanent, cut }: Failing): string {
  const then = permanent ? ' from then on' : ''
  if (cut === undefined) return `${call} ${at} fails with ${errorNames.get(error)}${then}`
  return `${call} ${at} is cut short (${cut})${error === 0 ? then : `, and the next fail with ${errorNames.get(error)}`}`
}

/** What there was to fail, and what has. */
class Seen {
  healthy: Record<Phase, Record<Call, number>> | undefined
  readonly #failed = new Map<Call, Map<Phase, Set<number>>>()
  readonly #ways = new Map<Call, Set<string>>()

  add({ phase, failing }: Position): void {
    const byPhase = this.#failed.get(failing.call) ?? new Map<Phase, Set<number>>()
    this.#failed.set(failing.call, byPhase.set(phase, (byPhase.get(phase) ?? new Set()).add(failing.at)))
    const way = `${failing.error} ${failing.permanent} ${failing.cut}`
    this.#ways.set(failing.call, (this.#ways.get(failing.call) ?? new Set()).add(way))
  }

  notes(): string[] {
    return calls.map((call) => {
      const parts = phases.map((phase) => {
        const failed = this.#failed.get(call)?.get(phase)?.size ?? 0
        return `${texts[phase]} ${this.healthy?.[phase][call] ?? '?'} / ${failed} (of the first ${counted[call][phase]})`
      })
      return `${call}: calls there are / different ones that failed: ${parts.join(', ')}; in ${this.#ways.get(call)?.size ?? 0} of ${failuresOf(call).length} ways`
    })
  }
}

interface Plan {
  library: string
  failing: Failing
  phase: Phase
  paths: string[]
  number: number
}

class FailingCase {
  readonly #world: World
  readonly #plan: Plan
  readonly #random: Random
  readonly #load: Load
  readonly #control: DiskControl
  readonly #home: string
  readonly #base: string
  readonly #log: string
  readonly #faults: string[] = []
  #starts = 0
  failed = 0

  constructor(world: World, plan: Plan, random: Random) {
    this.#world = world
    this.#plan = plan
    this.#random = random
    const [log, control, base] = plan.paths as [string, string, string]
    this.#log = log
    this.#control = new DiskControl(control)
    this.#load = new Load(random, world.furnished, () => this.#mark())
    this.#base = base
    this.#home = world.home(`case-${plan.number}`)
  }

  async run(): Promise<CaseResult['faults']> {
    const { failing, paths, phase } = this.#plan
    if (phase === 'first') return this.#firstLife()
    const base = this.#world.home(`case-${this.#plan.number}-base`)
    const inodes = inodesBelow(this.#home)
    this.#world.peers.begin(() => this.#mark())
    let home = this.#home
    try {
      await this.#failingLife()
      // nothing was tried: what a box does without a failure is for other trials
      if (this.failed === 0) return this.#faults
      let until = Infinity
      if (isSync(failing.call)) {
        // the next box finds in memory what is not on disk: what it acknowledges must not rest on that
        if (this.#random(2) === 0) await this.#life()
        home = paths[3]!
        const recording = new Recording(this.#log, { home: this.#home, base, inodes })
        const marks = this.#load.writes.flatMap(({ acknowledged }) => acknowledged?.mark ?? [])
        until = pick([...marks, recording.length], this.#random)
        recording.rebuild(home, { cut: until, loss: 'dropped', random: this.#random })
      }
      await this.#compare(home, until)
      return this.#faults
    } finally {
      this.#remove()
    }
  }

  /** A box that was never started before: what it acknowledged is there when it is started again, which it can be. */
  async #firstLife(): Promise<CaseResult['faults']> {
    this.#empty()
    this.#world.peers.begin(() => 0)
    this.#control.fail(this.#plan.failing)
    const process = this.#world.begin(this.#home, this.#env)
    let made: string | undefined
    try {
      const box = await started(process).catch(() => undefined)
      if (box === undefined) await this.#refusedStart(process)
      else {
        const answer = await box.ask('POST', '/v1/identities', {})
        if (answer?.status === 201) made = String(answer.body['id'])
        await process.end(this.#random(2) === 0 ? 'SIGKILL' : 'SIGTERM')
      }
      this.failed = this.#control.failed
      this.#control.recover()
      const again = await this.#world.start(this.#home)
      try {
        if (made !== undefined) await again.get('GET', `/v1/identities/${made}`)
        await again.get('POST', '/v1/identities', {})
      } finally {
        await again.process.end('SIGTERM')
      }
      this.#faults.push(...(await faultsOnDisk(this.#world, this.#home)))
    } catch (error) {
      this.#faults.push((error as Error).message)
    } finally {
      await process.end('SIGKILL')
      this.#remove()
    }
    return this.#faults
  }

  #empty(): void {
    rmSync(this.#home, { recursive: true, force: true })
    mkdirSync(join(this.#home, 'backups'), { recursive: true })
  }

  #remove(): void {
    this.#control.close()
    for (const path of [this.#home, this.#base, ...this.#plan.paths]) rmSync(path, { recursive: true, force: true })
  }

  /** How long the recording is by now. */
  #mark(): number {
    return statSync(this.#log, { throwIfNoEntry: false })?.size ?? 0
  }

  get #env(): Record<string, string> {
    return preloadEnv(this.#plan.library, this.#home, { recording: this.#log, control: this.#control.file })
  }

  async #failingLife(): Promise<void> {
    const { failing, phase } = this.#plan
    this.#starts += 1
    if (phase === 'start') this.#control.fail(failing)
    const process = this.#world.begin(this.#home, this.#env)
    try {
      let box: RunningBox
      try {
        box = await started(process)
      } catch {
        return await this.#refusedStart(process)
      }
      if (phase === 'load') this.#control.fail(failing)
      await this.#underLoad(box, phase === 'load' ? 6000 : 500)
      if (phase === 'stop') return await this.#stop(box)
      await this.#reading(box)
      this.#control.recover()
      await this.#readingAgain(box)
      if (await this.#writingAgain(box)) await this.#workingAgain(box)
      await this.#backups(box)
      this.#answers()
      await box.process.end(this.#random(2) === 0 ? 'SIGKILL' : 'SIGTERM')
    } finally {
      this.failed = this.#control.failed
      this.#control.recover()
      await process.end('SIGKILL')
    }
  }

  /** It ends, and says so in a sentence where it could not end in peace. */
  async #stop(box: RunningBox): Promise<void> {
    const { process } = box
    await this.#backups(box)
    this.#answers()
    this.#control.fail(this.#plan.failing)
    const status = await process.end('SIGTERM')
    if (typeof status !== 'number' || /^\s+at .*:\d+/m.test(process.errors()))
      this.#faults.push(`the box ended with ${status}: ${lastLines(process)}`)
  }

  /** The calls of a box on a disk that works, by kind. */
  async count(): Promise<Record<Phase, Record<Call, number>>> {
    const counts = {} as Record<Phase, Record<Call, number>>
    const counting = (phase: Phase): void => {
      counts[phase] = this.#control.counts()
      this.#control.fail(this.#plan.failing)
    }
    this.#world.peers.begin(() => this.#mark())
    const settled = `${this.#home}-settled`
    renameSync(this.#home, settled)
    this.#empty()
    const first = this.#world.begin(this.#home, this.#env)
    await started(first)
    counting('first')
    await first.end('SIGTERM')
    rmSync(this.#home, { recursive: true })
    renameSync(settled, this.#home)
    this.#control.fail(this.#plan.failing)
    const process = this.#world.begin(this.#home, this.#env)
    try {
      const box = await started(process)
      counting('start')
      await this.#underLoad(box, 500)
      counting('load')
      await process.end('SIGTERM')
      counting('stop')
      return counts
    } finally {
      await process.end('SIGKILL')
      this.#remove()
    }
  }

  /** A box that cannot start says so in a sentence. */
  async #refusedStart(process: RunningBox['process']): Promise<void> {
    const status = await process.ended
    const said = lastLines(process)
    if (this.#control.failed === 0) this.#faults.push(`the box did not start, and nothing had failed: ${said}`)
    if (typeof status !== 'number' || status === 0 || process.errors().trim() === '' || /^\s+at .*:\d+/m.test(process.errors()))
      this.#faults.push(`the box ended with ${status} and no sentence: ${said}`)
  }

  async #life(): Promise<void> {
    this.#starts += 1
    const box = await started(this.#world.begin(this.#home, this.#env))
    try {
      await this.#underLoad(box, 500)
    } finally {
      await box.process.end('SIGKILL')
    }
  }

  /** Lets the box work until something has failed, and a while longer. */
  async #underLoad(box: RunningBox, time: number): Promise<void> {
    const running = this.#load.begin(box, 4)
    const backup = this.#isOfBackups || this.#random(4) === 0 ? this.#load.backup(box) : undefined
    const end = performance.now() + time
    while (performance.now() < end && this.#control.failed === 0) await sleep(10)
    await sleep(200)
    running.stop()
    await running.ended
    await backup
  }

  /** A box under load makes these calls for backups alone. */
  get #isOfBackups(): boolean {
    const forBackups: Call[] = ['open', 'truncate', 'rename', 'link', 'unlink', 'mkdir', 'fsync', 'close', 'open to read']
    return forBackups.includes(this.#plan.failing.call)
  }

  /** The backups that are there are those that are said to be made, and nothing is left of others. */
  async #backups(box: RunningBox): Promise<void> {
    const jobs = await this.#settled(box, '/v1/jobs?kind=backup&limit=200', ({ body }) =>
      (body['data'] as { status: string }[]).every(({ status }) => status !== 'running'),
    )
    if (jobs === undefined) return
    const done = (jobs['data'] as { status: string; result: { name: string; removed: string[] } }[]).filter(
      ({ status }) => status === 'done',
    )
    const removed = new Set(done.flatMap(({ result }) => result.removed))
    const made = done.map(({ result }) => result.name).filter((name) => !removed.has(name))
    const there = readdirSync(join(this.#home, 'backups')).filter((name) => name.endsWith('.tar'))
    if (made.toSorted().join(' ') !== there.toSorted().join(' '))
      this.#faults.push(
        `the backups ${made.join(' ')} are said to be made, and ${there.join(' ')} are there: ${JSON.stringify(jobs['data'])}`,
      )
    const { call, permanent } = this.#plan.failing
    if (call !== 'unlink' || !permanent) this.#faults.push(...(await faultsOfDrafts(this.#home)))
  }

  async #reading(box: RunningBox): Promise<void> {
    const answer = await box.ask('GET', `/v1/identities/${this.#world.furnished.inbox.id}/emails`)
    if (answer?.status === 200) return
    if (isRead(this.#plan.failing.call) && answer !== undefined && isOfStore(answer.status, answer.body)) return
    this.#faults.push(
      `reading is answered with ${answer?.status} ${JSON.stringify(answer?.body)}: ${answer === undefined ? lastLines(box.process) : ''}`,
    )
  }

  /** Once the disk works again, so does reading: a list, a search, which is a slow read, and an e-mail. */
  async #readingAgain(box: RunningBox): Promise<void> {
    const path = `/v1/identities/${this.#world.furnished.inbox.id}/emails`
    const list = await this.#settled(box, `${path}?limit=1`)
    const newest = (list?.['data'] as { id: string }[] | undefined)?.[0]
    await this.#settled(box, `${path}/search?q=body&limit=1`)
    if (newest !== undefined) await this.#settled(box, `${path}/${newest.id}`)
  }

  /** Once the disk works again, so does writing: after a failed sync with the next start. Answers whether it does. */
  async #writingAgain(box: RunningBox): Promise<boolean> {
    let answer = await box.ask('POST', '/v1/identities', {})
    for (const end = Date.now() + patience; answer !== undefined && answer.status !== 201 && Date.now() < end;) {
      if (isSync(this.#plan.failing.call) && codeOf(answer.body) === 'storage_failed') return false
      await sleep(200)
      answer = await box.ask('POST', '/v1/identities', {})
    }
    if (answer?.status === 201) return true
    this.#faults.push(`writing does not go on: ${answer?.status} ${JSON.stringify(answer?.body)}\n${lastLines(box.process)}`)
    return false
  }

  /** What the box does by itself goes on: a message leaves, a webhook is told, and a backup is made. */
  async #workingAgain(box: RunningBox): Promise<void> {
    const { furnished, peers } = this.#world
    const message = { to: `again@${farDomains[0]}`, subject: 'Again', body_text: 'The disk works.\n' }
    const sent = await box.ask('POST', `/v1/identities/${furnished.writer.id}/emails`, message)
    const made = await box.ask('POST', '/v1/identities', {})
    const job = this.#isOfBackups || this.#plan.number % 4 === 0 ? await box.ask('POST', '/v1/backups') : undefined
    for (const answer of [sent, made, ...(job === undefined ? [] : [job])])
      if (answer === undefined || answer.status >= 300)
        this.#faults.push(`a call is answered with ${answer?.status} ${JSON.stringify(answer?.body)} on a disk that works`)
    const hasLeft = (): boolean => peers.arrivals.has(String(sent?.body['message_id']))
    const isTold = (): boolean => peers.hooks.received.some(({ body }) => body.data['id'] === made?.body['id'])
    for (const end = Date.now() + patience; !(hasLeft() && isTold()) && Date.now() < end;) await sleep(50)
    if (!hasLeft()) this.#faults.push(`a message does not leave on a disk that works\n${lastLines(box.process)}`)
    if (!isTold()) this.#faults.push(`a webhook is not told on a disk that works\n${lastLines(box.process)}`)
    if (job === undefined || job.status >= 300) return
    const backup = await this.#settled(box, `/v1/jobs/${job.body['id']}`, ({ body }) => body['status'] !== 'running')
    if (backup !== undefined && backup['status'] !== 'done')
      this.#faults.push(`a backup is not made on a disk that works: ${JSON.stringify(backup)}`)
  }

  /** What a call is answered in the end that is to be answered well; undefined where it is not. */
  async #settled(
    box: RunningBox,
    path: string,
    isSettled: (answer: Answer) => boolean = () => true,
  ): Promise<Answered | undefined> {
    let answer: Answer | undefined
    for (const end = Date.now() + patience; Date.now() < end; await sleep(100)) {
      answer = await box.ask('GET', path)
      if (answer === undefined) break
      if (answer.status === 200 && isSettled(answer)) return answer.body
    }
    const last = `${answer?.status} ${JSON.stringify(answer?.body)}`
    this.#faults.push(`GET ${path} is still answered with ${last} on a disk that works\n${lastLines(box.process)}`)
    return undefined
  }

  #answers(): void {
    for (const refusal of this.#load.refusals)
      if (!isPutOff(refusal)) this.#faults.push(`${refusal.write.name} was answered with ${refusal.status}: ${refusal.answer}`)
  }

  async #compare(home: string, until: number): Promise<void> {
    this.#starts += 1
    let box: RunningBox
    try {
      box = await this.#world.start(home)
    } catch (error) {
      this.#faults.push(`the box does not start: ${(error as Error).message}`)
      return
    }
    try {
      this.#faults.push(...(await faultsOf(box, { world: this.#world, load: this.#load, until, starts: this.#starts })))
      await box.process.end('SIGTERM')
      this.#faults.push(...(await faultsOnDisk(this.#world, home, { mark: until })))
    } finally {
      await box.process.end('SIGKILL')
    }
  }
}

function isPutOff({ write, status, answer }: Refusal): boolean {
  if (write.kind === 'mail') return [421, 451, 452].includes(status)
  return isOfStore(status, JSON.parse(answer) as Answered)
}

/** True if an answer says that the store failed, not that the box has a bug (internal_error). */
function isOfStore(status: number, body: Answered): boolean {
  return status >= 500 && codeOf(body)?.startsWith('storage_') === true
}

function codeOf(body: Answered): string | undefined {
  return (body['error'] as { code?: string } | undefined)?.code
}
