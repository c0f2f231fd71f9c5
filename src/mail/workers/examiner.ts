import { hash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { deflateRawSync } from 'node:zlib'
import { FairQueue } from '../../core/work/fair-queue.ts'
import { Fault, stopping } from '../../core/fault.ts'
import type { Log } from '../../core/log.ts'
import { DnsTally } from '../../net/dns-tally.ts'
import type { ExamineSettings, Result, WorkerStart } from './examine.ts'
import type { DecodedAttachment, StoredBodies } from '../../message/parsed.ts'
import type { Envelope, Verdict } from '../model.ts'
import { type EndReason, type ExamineJob, startThread, WorkerSlot, type WorkerThread } from './worker-slot.ts'
import { headerOnly } from '../../message/header-only.ts'
import { uncheckedVerdict } from '../../mailauth/unchecked.ts'
import type { Examination } from '../types.ts'

export interface ExaminerOptions {
  /** Worker threads. Default: one less than the number of processors, 1 to 4. */
  workers?: number
  /** Messages of one account in one worker at a time; 1.5 times as many of all accounts together. */
  depth?: number
  /** Timeout of a worker without a report while it has work, in milliseconds. */
  parseTimeout?: number
  /** Megabytes of heap for one worker. */
  memory?: number
  /** How long `stop` waits for messages in progress, in milliseconds. */
  timeout?: number
  /** Starts a worker thread. Tests reuse one of another box, as loading the parsers is slow. */
  thread?: (start: WorkerStart, memory: number) => WorkerThread
}

const noBodies = JSON.stringify({ body_text: null, body_html: null, text: '' } satisfies StoredBodies)

/** Bytes of several messages in one worker; of one account half as many. Parsing can take thirty times as much memory. */
const maxOctets = 8 * 1024 * 1024

/** Size of a message that may be in a worker together with a large one, which may only be waiting for the DNS. In bytes. */
const smallOctets = 64 * 1024

/** The maximum number of workers for suspects: messages that were in a worker that died. */
const maxQuarantined = 3

/**
 * Parses and authenticates messages in worker threads. No message is lost or refused for an internal error: one that crashes a worker gets a
 * result from its header only. Other messages in that worker are retried: in quarantine if it had begun them or had begun one of the same account
 * or sender, else normally.
 */
export class Examiner {
  /** Monotonic counters for the metrics. */
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
  #slotsStarted = false
  #pumping = false
  #stopping = false
  #drained: (() => void) | null = null

  constructor(settings: ExamineSettings, log?: Log, options: ExaminerOptions = {}) {
    this.#settings = settings
    this.#log = log
    this.#options = {
      workers: Math.min(4, Math.max(1, availableParallelism() - 1)),
      depth: 32,
      parseTimeout: 10_000,
      memory: 512,
      timeout: 5000,
      thread: (start, megabytes) => startThread(new URL('./examine-worker.ts', import.meta.url), start, megabytes),
      ...options,
    }
    this.#watch = setInterval(() => this.#inspect(), Math.min(1000, this.#options.parseTimeout / 4))
  }

  /** Messages waiting for a worker. */
  get waiting(): number {
    return this.#queue.size + this.#suspects.size
  }

  /** Messages without a result so far. */
  get outstanding(): number {
    return this.#outstanding
  }

  /**
   * Parses and authenticates a message of an account ('' for none). Accounts take turns. Rejects only when the examiner is stopped. `body_text` is
   * that of a message composed here, which the raw message has with other line ends.
   */
  examine(raw: Buffer, envelope: Envelope, account = '', body_text?: string): Promise<Examination> {
    return this.#submit(
      { raw, envelope, attachments: [], account, body_text },
      {
        done: ({ message, failure }, octets, verdict) => {
          this.counters.examined += 1
          const [deflated, bodies] = octets
          if (message && deflated && bodies) return { ...message, deflated: deflated.length > 0 ? deflated : null, bodies }
          return this.#unparsed(raw, envelope, failure ?? 'unknown', verdict)
        },
        killed: (why, verdict) => this.#unparsed(raw, envelope, `the parser did not finish (${why})`, verdict),
      },
    )
  }

  /**
   * Attachments of a message by their indexes, decoded in one parse; those that do not exist are left out. Rejects when the signal aborts while
   * it waits for a worker; once a worker has it, when that is done.
   */
  attachments(raw: Buffer, indexes: readonly number[], account = '', signal?: AbortSignal): Promise<DecodedAttachment[]> {
    return this.#submit(
      { raw, envelope: null, attachments: indexes, account, signal },
      {
        done: ({ attachments = [], failure }, octets) => {
          if (failure !== undefined) throw unreadable(failure)
          return octets.map(({ buffer, byteOffset, length }, place) => ({
            ...attachments[place]!,
            content: Buffer.from(buffer, byteOffset, length),
          }))
        },
        killed: (why) => {
          throw unreadable(why)
        },
      },
    )
  }

  /** Applies new settings, except to messages already in a worker. */
  reload(settings: ExamineSettings) {
    this.#settings = settings
    for (const slot of [...this.#slots, ...this.#quarantine]) slot.reload(settings)
  }

  /** Waits for messages in progress up to `timeout`, rejects the others, and ends the workers. */
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
    const inSlots = [...this.#slots, ...this.#quarantine].flatMap(({ jobs }) => jobs)
    const left = [...this.#queue.clear(), ...this.#suspects.clear(), ...inSlots]
    if (left.length > 0) this.#log?.warn({ messages: left.length }, 'the workers stopped before all messages were examined')
    for (const job of left) job.abandoned()
    await Promise.all([...this.#slots, ...this.#quarantine].map((slot) => slot.dismiss()))
  }

  #submit<Answer>(
    task: Pick<ExamineJob, 'raw' | 'envelope' | 'attachments' | 'account' | 'signal' | 'body_text'>,
    answer: {
      done(result: Result, octets: Uint8Array[], verdict: Verdict | null): Answer
      killed(why: EndReason, verdict: Verdict | null): Answer
    },
  ): Promise<Answer> {
    const { signal } = task
    if (this.#stopping) return Promise.reject(stopping())
    if (signal?.aborted) return Promise.reject(signal.reason as Error)
    this.#outstanding += 1
    return new Promise<Answer>((resolve, reject) => {
      const settle = (produce: () => Answer) => {
        signal?.removeEventListener('abort', leave)
        try {
          resolve(produce())
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
      const leave = () => {
        const isQueued = this.#queue.remove(job.account, job) || this.#suspects.remove(suspectKey(job), job)
        if (!isQueued) return
        settle(() => {
          throw signal!.reason as Error
        })
      }
      signal?.addEventListener('abort', leave, { once: true })
      this.#queue.push(job.account, job)
      this.#startSlots()
      if (this.#pumping) return
      this.#pumping = true
      // Messages that arrive in one iteration of the event loop form one batch.
      setImmediate(() => this.#pump())
    })
  }

  #stalled({ envelope, raw }: ExamineJob) {
    this.counters.killed += 1
    this.#log?.warn({ session: envelope?.session, octets: raw.length }, 'message not parsed: the parser did not finish')
  }

  /** Starts the workers with the first message, to save memory and startup time. */
  #startSlots() {
    while (!this.#slotsStarted && this.#slots.size < this.#options.workers) this.#slots.add(this.#open())
    this.#slotsStarted = true
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
  get #maxPerWorker(): number {
    return this.#options.depth + Math.ceil(this.#options.depth / 2)
  }

  /** The next batch of a worker: accounts take turns, and each is limited so that capacity is left for others. */
  #take(slot: WorkerSlot): ExamineJob[] {
    const { depth } = this.#options
    const capacity = Math.min(Math.ceil(this.#queue.size / this.#slots.size), this.#maxPerWorker - slot.count)
    const jobs = slot.jobs
    const taken: ExamineJob[] = []
    let { octets } = slot
    const mayTake = (account: string, { raw: next }: ExamineJob): boolean => {
      if (octets > 0 && next.length > smallOctets && octets + next.length > maxOctets) return false
      const own = jobs.filter((job) => job.account === account)
      return own.length < depth && own.reduce((sum, { raw }) => sum + raw.length, 0) < maxOctets / 2
    }
    while (taken.length < capacity) {
      const next = this.#queue.shift(mayTake)
      if (!next) break
      jobs.push(next)
      taken.push(next)
      octets += next.raw.length
    }
    return taken
  }

  // Each suspect gets a worker of its own, in several workers, so that harmless messages do not wait behind one that crashes its worker.
  #pumpSuspects() {
    // the suspects of one account or sender must not block others
    const mayTake = (key: string, job: ExamineJob): boolean => this.#hasCapacity(key) && this.#fitsBeside(job)
    for (const slot of this.#quarantine) {
      if (!slot.started || slot.count > 0) continue
      const next = this.#suspects.shift(mayTake)
      if (next) slot.post([next])
      else {
        this.#quarantine.delete(slot)
        void slot.dismiss()
      }
    }
    // one at a time: after the first has its message there may be none left for another
    const isStarting = [...this.#quarantine].some((slot) => !slot.started)
    if (!isStarting && this.#quarantine.size < maxQuarantined && this.#suspects.peek(mayTake)) this.#quarantine.add(this.#open())
  }

  /** True if a suspect is small enough to be examined while other suspects are. */
  #fitsBeside({ raw }: ExamineJob): boolean {
    const octets = [...this.#quarantine].reduce((sum, slot) => sum + slot.octets, 0)
    return octets === 0 || octets + raw.length <= maxOctets
  }

  /** True if there is a worker left beside those that have a message of the same account, or of the same sender, to themselves. */
  #hasCapacity(key: string): boolean {
    const [account, sender] = key.split(' ')
    const quarantined = [...this.#quarantine].flatMap(({ jobs }) => jobs.map((job) => suspectKey(job).split(' ')))
    const max = maxQuarantined - 1
    return (
      quarantined.filter((own) => own[0] === account).length < max && quarantined.filter((own) => own[1] === sender).length < max
    )
  }

  #open(): WorkerSlot {
    const { thread, memory, parseTimeout } = this.#options
    const begun = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
    const heartbeat = Math.min(1000, parseTimeout / 4)
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

  #replace(slot: WorkerSlot, why: EndReason, started: boolean) {
    const wasQuarantined = this.#quarantine.delete(slot)
    this.#slots.delete(slot)
    const begun = slot.begun
    const suspects = slot.jobs.filter((job) => begun.some((other) => isRelated(job, other)))
    for (const job of slot.jobs.toReversed()) if (!suspects.includes(job)) this.#queue.unshift(job.account, job)
    // smallest first: the cause is seldom the smallest
    for (const job of suspects.toSorted((one, other) => one.raw.length - other.raw.length)) {
      this.#log?.warn(
        { why, session: job.envelope?.session, octets: job.raw.length, alone: job.suspect },
        'worker crashed on a message',
      )
      if (job.suspect || isSettled(job, why, begun.length) || this.#suspects.sizeOf(suspectKey(job)) >= this.#maxPerWorker) {
        this.counters.killed += 1
        job.killed(why)
      } else {
        this.counters.retried += 1
        job.suspect = true
        this.#suspects.push(suspectKey(job), job)
      }
    }
    if (!started) this.#failedStarts += 1
    if (this.#failedStarts >= 3) this.#failAll(why)
    // A worker that fails to start is retried with a backoff.
    const pause = started ? 0 : Math.min(5000, 100 * 2 ** this.#failedStarts)
    setTimeout(() => this.#refill(wasQuarantined), pause)
  }

  #refill(wasQuarantined: boolean) {
    if (this.#stopping && this.#outstanding === 0) return
    if (!wasQuarantined) this.#slots.add(this.#open())
    this.#pump()
  }

  /** Ends all waiting jobs when no worker starts: mail is still accepted, unparsed and marked as such. */
  #failAll(why: EndReason) {
    this.#log?.error({ why, messages: this.waiting }, 'no worker could be started; messages are stored unparsed')
    for (const job of [...this.#queue.clear(), ...this.#suspects.clear()]) job.killed(why)
  }

  #inspect() {
    const { parseTimeout } = this.#options
    const life = this.#settings.deadline + 2 * parseTimeout
    for (const slot of [...this.#slots, ...this.#quarantine]) slot.check(parseTimeout, life)
    if (this.#failedStarts >= 3) this.#failAll('crash')
  }

  #unparsed(raw: Buffer, envelope: Envelope, why: string, verdict: Verdict | null): Examination {
    return {
      parsed: headerOnly(raw, why),
      verdict: verdict ?? uncheckedVerdict(envelope, this.#settings.hostname, why),
      sha256: hash('sha256', raw),
      deflated: null,
      bodies: deflateRawSync(noBodies),
      body_size: noBodies.length,
    }
  }
}

// No retry for a caller who has gone, nor for a message that is rejected anyway, nor for one that alone made a worker exceed its deadline.
function isSettled({ verdict, signal }: ExamineJob, why: EndReason, count: number): boolean {
  if (signal?.aborted) return true
  return verdict !== null && (verdict.action === 'reject' || (why === 'deadline' && count === 1))
}

/** True if both are of one account, or of one sender outside: a sender of messages that crash a worker rarely sends only one. */
function isRelated(one: ExamineJob, other: ExamineJob): boolean {
  const sender = senderOf(one)
  return one.account === other.account || (sender !== null && sender === senderOf(other))
}

function senderOf({ envelope }: ExamineJob): string | null {
  return envelope === null || envelope.own ? null : envelope.remote_address
}

/** The queue of a suspect: it waits with those from the same sender to the same account. */
function suspectKey({ account, envelope }: ExamineJob): string {
  return `${account} ${envelope?.remote_address ?? ''}`
}

function unreadable(why: string): Fault {
  return new Fault('internal_error', 'The attachment could not be read.', { code: 'attachment_unreadable', cause: why })
}
