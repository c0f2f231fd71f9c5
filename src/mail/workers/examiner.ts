import { hash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { deflateRawSync } from 'node:zlib'
import { FairQueue } from '../../core/fair-queue.ts'
import { Fault } from '../../core/fault.ts'
import type { Log } from '../../core/log.ts'
import { DnsTally } from '../../net/dns-tally.ts'
import type { ExamineSettings, Result, Start } from './examine.ts'
import type { StoredBodies } from '../../message/parsed.ts'
import type { Attachment, Envelope, Verdict } from '../model.ts'
import { type End, type ExamineJob, startThread, WorkerSlot, type WorkerThread } from './worker-slot.ts'
import { unread } from '../../message/unread.ts'
import { undecided } from '../../mailauth/undecided.ts'
import type { Examination } from '../types.ts'

export interface ExaminerOptions {
  /** Worker threads; one less than there are processors, 1 to 4, unless said. */
  workers?: number
  /** Messages of one account in one worker at a time; half as many again of all accounts together. */
  depth?: number
  /** Longest a worker may be silent over its work, in milliseconds. */
  parseDeadline?: number
  /** Megabytes of heap for one worker. */
  memory?: number
  /** Longest that messages under way are waited for when the examiner stops, in milliseconds. */
  timeout?: number
  /** Starts a worker thread; tests give one that served another box before, as most of its cost is in loading the parsers. */
  thread?: (start: Start, memory: number) => WorkerThread
}

const noBodies = JSON.stringify({ body_text: null, body_html: null, text: '' } satisfies StoredBodies)

/** Octets of the messages in one worker, where they are several; of one account half as many. What is made of a message can take thirty times as many. */
const maxOctets = 8 * 1024 * 1024

/** Octets of a message that may be in a worker beside however large a one: it may only be waiting for the DNS. */
const small = 64 * 1024

/** Workers for messages that were in one that died. */
const mostQuarantined = 3

/**
 * Reads and judges messages in worker threads. No message is lost or refused for trouble of ours: one that a worker
 * does not survive is answered with what its header says, and those that were beside it are read again: alone, where it had begun them or has
 * begun one of the same account or sender, else as if they had not been there.
 */
export class Examiner {
  /** For the metrics; they only grow. */
  readonly counters = { examined: 0, retried: 0, killed: 0 }
  readonly queries = new DnsTally()
  readonly #options: Required<ExaminerOptions>
  readonly #log: Log | undefined
  readonly #slots = new Set<WorkerSlot>()
  readonly #watch: NodeJS.Timeout
  #settings: ExamineSettings
  readonly #queue = new FairQueue<ExamineJob>()
  readonly #suspects = new FairQueue<ExamineJob>()
  readonly #quarantine = new Set<WorkerSlot>()
  #failedStarts = 0
  #outstanding = 0
  #staffed = false
  #pumping = false
  #stopping = false
  #drained: (() => void) | null = null

  constructor(settings: ExamineSettings, log?: Log, options: ExaminerOptions = {}) {
    this.#settings = settings
    this.#log = log
    this.#options = {
      workers: Math.min(4, Math.max(1, availableParallelism() - 1)),
      depth: 32,
      parseDeadline: 10_000,
      memory: 512,
      timeout: 5000,
      thread: (start, megabytes) => startThread(new URL('./examine-worker.ts', import.meta.url), start, megabytes),
      ...options,
    }
    this.#watch = setInterval(() => this.#inspect(), Math.min(1000, this.#options.parseDeadline / 4))
  }

  /** Messages that wait for a worker. */
  get waiting(): number {
    return this.#queue.size + this.#suspects.size
  }

  /** Messages accepted and not yet answered. */
  get outstanding(): number {
    return this.#outstanding
  }

  /** Reads and judges a message of an account, or for it ('' for nobody's): accounts take turns. Rejects only when the examiner is stopped. */
  examine(raw: Buffer, envelope: Envelope, account = ''): Promise<Examination> {
    return this.#submit(
      { raw, envelope, attachment: 0, account },
      {
        done: ({ message, failure }, octets, verdict) => {
          this.counters.examined += 1
          const [deflated, bodies] = octets
          if (message && deflated && bodies) return { ...message, deflated: deflated.length > 0 ? deflated : null, bodies }
          return this.#unfinished(raw, envelope, failure ?? 'unknown', verdict)
        },
        killed: (why, verdict) => this.#unfinished(raw, envelope, `the parser did not finish (${why})`, verdict),
      },
    )
  }

  /** One attachment of a message, decoded; undefined when there is none of this index. */
  attachment(raw: Buffer, index: number, account = ''): Promise<{ attachment: Attachment; content: Buffer } | undefined> {
    return this.#submit(
      { raw, envelope: null, attachment: index, account },
      {
        done: ({ attachment, failure }, octets) => {
          if (failure !== undefined) throw unreadable(failure)
          const [content] = octets
          return attachment && content
            ? { attachment, content: Buffer.from(content.buffer, content.byteOffset, content.length) }
            : undefined
        },
        killed: (why) => {
          throw unreadable(why)
        },
      },
    )
  }

  /** Takes over new settings; messages already in a worker are judged by the old ones. */
  reload(settings: ExamineSettings) {
    this.#settings = settings
    for (const slot of [...this.#slots, ...this.#quarantine]) slot.reload(settings)
  }

  /** Answers what is under way, as far as `patience` allows: what is not answered then is rejected. Then ends the workers. */
  async stop() {
    this.#stopping = true
    if (this.#outstanding > 0) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#drained = resolve
      const timer = setTimeout(resolve, this.#options.timeout)
      await promise
      clearTimeout(timer)
    }
    clearInterval(this.#watch)
    const seated = [...this.#slots, ...this.#quarantine].flatMap(({ jobs }) => jobs)
    const left = [...this.#queue.clear(), ...this.#suspects.clear(), ...seated]
    if (left.length > 0) this.#log?.warn({ messages: left.length }, 'The workers stop before all messages were read')
    for (const job of left) job.abandoned()
    await Promise.all([...this.#slots, ...this.#quarantine].map((slot) => slot.dismiss()))
  }

  #submit<Answer>(
    task: Pick<ExamineJob, 'raw' | 'envelope' | 'attachment' | 'account'>,
    answer: {
      done(result: Result, octets: Uint8Array[], verdict: Verdict | null): Answer
      killed(why: End, verdict: Verdict | null): Answer
    },
  ): Promise<Answer> {
    if (this.#stopping) return Promise.reject(stopping())
    this.#outstanding += 1
    return new Promise<Answer>((resolve, reject) => {
      const settle = (give: () => Answer) => {
        try {
          resolve(give())
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)))
        }
        if (--this.#outstanding === 0) this.#drained?.()
      }
      const job: ExamineJob = {
        ...task,
        suspect: false,
        verdict: null,
        done: (result, octets) => {
          if (result.stalled) this.#stalled(job)
          settle(() => answer.done(result, octets, job.verdict))
        },
        killed: (why) => settle(() => answer.killed(why, job.verdict)),
        abandoned: () =>
          settle(() => {
            throw stopping()
          }),
      }
      this.#queue.push(job.account, job)
      this.#staff()
      if (this.#pumping) return
      this.#pumping = true
      // What arrives in one turn of the event loop travels together.
      setImmediate(() => this.#pump())
    })
  }

  #stalled({ envelope, raw }: ExamineJob) {
    this.counters.killed += 1
    this.#log?.warn({ session: envelope?.session, octets: raw.length }, 'A message was given up: reading it never ended')
  }

  /** Workers come with the first message: a box without mail needs neither their memory nor the time that they take to start. */
  #staff() {
    while (!this.#staffed && this.#slots.size < this.#options.workers) this.#slots.add(this.#open())
    this.#staffed = true
  }

  #pump() {
    this.#pumping = false
    for (const slot of [...this.#slots].toSorted((one, other) => one.count - other.count)) {
      const batch = slot.started ? this.#take(slot) : []
      if (batch.length > 0) slot.post(batch)
    }
    this.#pumpSuspects()
  }

  /** Messages in one worker; suspects of one sender to one account likewise. */
  get #most(): number {
    return this.#options.depth + Math.ceil(this.#options.depth / 2)
  }

  /** What a worker may take now: the accounts by turn, and of one account so much that others find room beside it. */
  #take(slot: WorkerSlot): ExamineJob[] {
    const { depth } = this.#options
    const room = Math.min(Math.ceil(this.#queue.size / this.#slots.size), this.#most - slot.count)
    const jobs = slot.jobs
    const taken: ExamineJob[] = []
    let { octets } = slot
    const may = (account: string, { raw: next }: ExamineJob): boolean => {
      if (octets > 0 && next.length > small && octets + next.length > maxOctets) return false
      const own = jobs.filter((job) => job.account === account)
      return own.length < depth && own.reduce((sum, { raw }) => sum + raw.length, 0) < maxOctets / 2
    }
    while (taken.length < room) {
      const next = this.#queue.shift(may)
      if (!next) break
      jobs.push(next)
      taken.push(next)
      octets += next.raw.length
    }
    return taken
  }

  // One to a worker, and more than one worker: the innocent do not wait behind the guilty.
  #pumpSuspects() {
    // nor behind all that one account or one sender brings
    const may = (line: string, job: ExamineJob): boolean => this.#hasRoom(line) && this.#fitsBeside(job)
    for (const slot of this.#quarantine) {
      if (!slot.started || slot.count > 0) continue
      const next = this.#suspects.shift(may)
      if (next) slot.post([next])
      else {
        this.#quarantine.delete(slot)
        void slot.dismiss()
      }
    }
    // one after the other: once it has its message there may be none for another
    const isStarting = [...this.#quarantine].some((slot) => !slot.started)
    if (!isStarting && this.#quarantine.size < mostQuarantined && this.#suspects.peek(may)) this.#quarantine.add(this.#open())
  }

  /** Whether a suspect is small enough to be read while others are, each alone. */
  #fitsBeside({ raw }: ExamineJob): boolean {
    const octets = [...this.#quarantine].reduce((sum, slot) => sum + slot.octets, 0)
    return octets === 0 || octets + raw.length <= maxOctets
  }

  /** Whether there is a worker left beside those that have a message of the same account, or of the same sender, to themselves. */
  #hasRoom(line: string): boolean {
    const [account, sender] = line.split(' ')
    const alone = [...this.#quarantine].flatMap(({ jobs }) => jobs.map((job) => lineOf(job).split(' ')))
    const most = mostQuarantined - 1
    return alone.filter((own) => own[0] === account).length < most && alone.filter((own) => own[1] === sender).length < most
  }

  #open(): WorkerSlot {
    const { thread, memory, parseDeadline } = this.#options
    const begun = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    const heartbeat = Math.min(1000, parseDeadline / 4)
    const start = { settings: this.#settings, heartbeat, queries: this.queries.cells, begun }
    return new WorkerSlot({
      begun,
      thread: thread(start, memory),
      onFree: () => {
        this.#failedStarts = 0
        this.#pump()
      },
      onEnd: (slot, why, started) => this.#replace(slot, why, started),
    })
  }

  #replace(slot: WorkerSlot, why: End, started: boolean) {
    const wasQuarantined = this.#quarantine.delete(slot)
    this.#slots.delete(slot)
    const begun = slot.begun
    const suspects = slot.jobs.filter((job) => begun.some((other) => isAkin(job, other)))
    for (const job of slot.jobs.toReversed()) if (!suspects.includes(job)) this.#queue.unshift(job.account, job)
    // what kills is seldom the smallest
    for (const job of suspects.toSorted((one, other) => one.raw.length - other.raw.length)) {
      this.#log?.warn(
        { why, session: job.envelope?.session, octets: job.raw.length, alone: job.suspect },
        'A worker ended over a message',
      )
      if (job.suspect || isSettled(job, why, begun.length) || this.#suspects.sizeOf(lineOf(job)) >= this.#most) {
        this.counters.killed += 1
        job.killed(why)
      } else {
        this.counters.retried += 1
        job.suspect = true
        this.#suspects.push(lineOf(job), job)
      }
    }
    if (!started) this.#failedStarts += 1
    if (this.#failedStarts >= 3) this.#giveUp(why)
    // A worker that cannot even start is not tried again in a tight loop.
    const pause = started ? 0 : Math.min(5000, 100 * 2 ** this.#failedStarts)
    setTimeout(() => this.#refill(wasQuarantined), pause)
  }

  #refill(wasQuarantined: boolean) {
    if (this.#stopping && this.#outstanding === 0) return
    if (!wasQuarantined) this.#slots.add(this.#open())
    this.#pump()
  }

  /** With no worker to be had, mail is still taken: unread, and marked so. */
  #giveUp(why: End) {
    this.#log?.error({ why, messages: this.waiting }, 'No worker starts; messages are kept unread')
    for (const job of [...this.#queue.clear(), ...this.#suspects.clear()]) job.killed(why)
  }

  #inspect() {
    const { parseDeadline } = this.#options
    const life = this.#settings.deadline + 2 * parseDeadline
    for (const slot of [...this.#slots, ...this.#quarantine]) slot.check(parseDeadline, life)
    if (this.#failedStarts >= 3) this.#giveUp('crash')
  }

  #unfinished(raw: Buffer, envelope: Envelope, why: string, verdict: Verdict | null): Examination {
    return {
      parsed: unread(raw, why),
      verdict: verdict ?? undecided(envelope, this.#settings.hostname, why),
      sha256: hash('sha256', raw),
      deflated: null,
      bodies: deflateRawSync(noBodies),
      body_size: noBodies.length,
    }
  }
}

// Another try would only make the client wait: nobody reads what is refused, and who kept a worker busy alone did it himself.
function isSettled({ verdict }: ExamineJob, why: End, count: number): boolean {
  return verdict !== null && (verdict.action === 'reject' || (why === 'deadline' && count === 1))
}

/** Whether both are of one account, or of one sender outside: who sends what kills seldom sends one. */
function isAkin(one: ExamineJob, other: ExamineJob): boolean {
  const sender = senderOf(one)
  return one.account === other.account || (sender !== null && sender === senderOf(other))
}

function senderOf({ envelope }: ExamineJob): string | null {
  return envelope === null || envelope.own ? null : envelope.remote_address
}

/** Where a suspect waits: with those from the same sender to the same account. */
function lineOf({ account, envelope }: ExamineJob): string {
  return `${account} ${envelope?.remote_address ?? ''}`
}

function stopping(): Fault {
  return new Fault('internal_error', 'The box is stopping. Try again later.', { retryAfter: 10 })
}

function unreadable(why: string): Fault {
  return new Fault('internal_error', 'The attachment could not be read.', { code: 'attachment_unreadable', cause: why })
}
