import { rmSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pick, type Random, randomFrom } from '../../support/random.ts'
import { Load, type Refusal } from '../box/load.ts'
import { faultsOf, faultsOnDisk } from '../box/oracle.ts'
import { lastLines, type RunningBox, started, World } from '../box/world.ts'
import { compilePreload, DiskControl, type Failing, noPreload, preloadEnv } from '../disk/preload.ts'
import { inodesBelow, Recording } from '../disk/recording.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

const { EIO, ENOSPC, EDQUOT } = constants.errno
const errorNames = new Map([
  [EIO, 'EIO'],
  [ENOSPC, 'ENOSPC'],
  [EDQUOT, 'EDQUOT'],
])

/** The failures that are tried, each at the first call of its kind, the second, and so on. */
const failures: Omit<Failing, 'at'>[] = [
  { call: 'write', error: ENOSPC, permanent: true, half: false },
  { call: 'sync', error: EIO, permanent: false, half: false },
  { call: 'write', error: EIO, permanent: false, half: false },
  { call: 'write', error: ENOSPC, permanent: true, half: true },
  { call: 'read', error: EIO, permanent: false, half: false },
  { call: 'sync', error: EIO, permanent: true, half: false },
  { call: 'write', error: EDQUOT, permanent: true, half: false },
  { call: 'open', error: ENOSPC, permanent: true, half: false },
  { call: 'write', error: ENOSPC, permanent: false, half: false },
  { call: 'open', error: EIO, permanent: false, half: false },
  { call: 'truncate', error: EIO, permanent: false, half: false },
  { call: 'write', error: EIO, permanent: true, half: false },
  { call: 'sync', error: ENOSPC, permanent: false, half: false },
  { call: 'rename', error: EIO, permanent: false, half: false },
  { call: 'write', error: EIO, permanent: false, half: true },
  { call: 'unlink', error: EIO, permanent: false, half: false },
]

export const failingDisks: Trial = {
  name: 'failing-disks',
  about:
    'Calls on the files of a box fail: writes, syncs, opens, truncations, renames, removals and reads, with EIO, ENOSPC and EDQUOT, once or from then on, ' +
    'and writes that are cut short; the first call of its kind, the second, and so on, counted from the start of the process or under load. Nothing that was ' +
    'acknowledged is lost; what is refused is put off (451, 452 or 421 by SMTP, internal_error in the API); reading goes on; once the disk works again, so does ' +
    'writing, without a restart unless a sync has failed; a box that cannot start says why. What a failed sync was to write is taken as lost for good.',
  goal: { tries: 2000, unit: 'failures', faults: 'each answered as promised, 0 acknowledged lost' },
  short: 4,
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
  },
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const library = compilePreload(directory)
    const world = await World.open(directory, program, randomFrom(seed))
    return {
      async run(number) {
        const failing = { ...failures[number % failures.length]!, at: 1 + (Math.floor(number / failures.length / 2) % 100) }
        const atStart = Math.floor(number / failures.length) % 2 === 1
        const paths = ['log', 'control', 'base', 'dropped'].map((name) => join(directory, `case-${number}-${name}`))
        const one = new FailingCase(world, { library, failing, atStart, paths, number }, randomFrom(caseSeed(seed, number)))
        const faults = await one.run()
        const what = `${failing.call} ${failing.at} fails with ${errorNames.get(failing.error)}${failing.permanent ? ' from then on' : ''}${failing.half ? ', half done' : ''} ${atStart ? 'from the start' : 'under load'}`
        return { tries: one.failed > 0 ? 1 : 0, faults: faults.map((fault) => `${what}: ${fault}`) }
      },
      close: () => world.close(),
    }
  },
}

interface Plan {
  library: string
  failing: Failing
  /** Calls are counted from the start of the process, not from the begin of the load. */
  atStart: boolean
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
    const { failing, paths } = this.#plan
    const base = this.#world.home(`case-${this.#plan.number}-base`)
    const inodes = inodesBelow(this.#home)
    this.#world.peers.begin(() => this.#mark())
    let home = this.#home
    try {
      await this.#failingLife()
      // nothing was tried: what a box does without a failure is for other trials
      if (this.failed === 0) return this.#faults
      let until = Infinity
      if (failing.call === 'sync') {
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
      this.#control.close()
      for (const path of [this.#home, this.#base, ...paths]) rmSync(path, { recursive: true, force: true })
    }
  }

  /** How long the recording is by now. */
  #mark(): number {
    return statSync(this.#log, { throwIfNoEntry: false })?.size ?? 0
  }

  get #env(): Record<string, string> {
    return preloadEnv(this.#plan.library, this.#home, { recording: this.#log, control: this.#control.file })
  }

  async #failingLife(): Promise<void> {
    const { failing, atStart } = this.#plan
    this.#starts += 1
    if (atStart) this.#control.fail(failing)
    const process = this.#world.begin(this.#home, this.#env)
    try {
      let box: RunningBox
      try {
        box = await started(process)
      } catch {
        return await this.#refusedStart(process)
      }
      if (!atStart) this.#control.fail(failing)
      await this.#underLoad(box, 1500)
      await this.#reading(box)
      this.#control.recover()
      await this.#writing(box)
      this.#answers()
      await box.process.end(this.#random(2) === 0 ? 'SIGKILL' : 'SIGTERM')
    } finally {
      this.failed = this.#control.failed
      this.#control.recover()
      await process.end('SIGKILL')
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
    // a box under load removes and renames files for backups alone
    const backup =
      ['truncate', 'rename', 'unlink'].includes(this.#plan.failing.call) || this.#random(4) === 0
        ? this.#load.backup(box)
        : undefined
    const end = performance.now() + time
    while (performance.now() < end && this.#control.failed === 0) await sleep(10)
    await sleep(200)
    running.stop()
    await running.ended
    await backup
  }

  async #reading(box: RunningBox): Promise<void> {
    const answer = await box.ask('GET', `/v1/identities/${this.#world.furnished.inbox.id}/emails`)
    if (answer?.status === 200) return
    if (this.#plan.failing.call === 'read' && answer !== undefined && answer.status >= 500) return
    this.#faults.push(
      `reading is answered with ${answer?.status} ${JSON.stringify(answer?.body)}: ${answer === undefined ? lastLines(box.process) : ''}`,
    )
  }

  /** Once the disk works again, so does writing: after a failed sync with the next start. */
  async #writing(box: RunningBox): Promise<void> {
    let answer = await box.ask('POST', '/v1/identities', {})
    for (const end = Date.now() + 10_000; answer !== undefined && answer.status !== 201 && Date.now() < end;) {
      if (this.#plan.failing.call === 'sync' && codeOf(answer.body) === 'storage_failed') return
      await sleep(200)
      answer = await box.ask('POST', '/v1/identities', {})
    }
    if (answer?.status !== 201)
      this.#faults.push(`writing does not go on: ${answer?.status} ${JSON.stringify(answer?.body)}\n${lastLines(box.process)}`)
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
  return write.kind === 'mail' ? [421, 451, 452].includes(status) : status >= 500 && answer.includes('"internal_error"')
}

function codeOf(body: Record<string, unknown>): string | undefined {
  return (body['error'] as { code?: string } | undefined)?.code
}
