import { Worker } from 'node:worker_threads'
import { FairQueue } from '../../core/fair-queue.ts'
import { Fault } from '../../core/fault.ts'
import type { Log } from '../../core/log.ts'
import { compose, type Composed, type Draft, type Origin } from './compose.ts'
import type { ComposeResult, ComposeJob } from './compose-worker.ts'

/** Characters of the texts, and octets of enclosed messages, from which a message is composed in a thread: some milliseconds of work. */
const large = 256 * 1024

/** What a composer needs of its worker thread. */
export interface ComposeThread {
  on(event: 'message', listener: (answer: ComposeResult) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'exit', listener: () => void): unknown
  postMessage(order: ComposeJob, transfer: ArrayBuffer[]): void
  terminate(): Promise<unknown>
}

export interface ComposerOptions {
  /** Longest one message may take, in milliseconds. */
  deadline?: number
  /** Starts a thread. */
  thread?: () => ComposeThread
}

interface Job {
  draft: Draft
  origin: Origin
  settle(this: void, answer: ComposeResult): void
}

/**
 * Composes messages: small ones here, large ones in a worker thread, one at a time, the accounts by turn. A message that the thread does not
 * survive is refused, and the next has a new one.
 */
export class Composer {
  readonly #log: Log
  readonly #options: Required<ComposerOptions>
  readonly #queue = new FairQueue<Job>()
  #thread: ComposeThread | undefined
  #underway: Job | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(log: Log, options: ComposerOptions = {}) {
    this.#log = log
    this.#options = { deadline: 30_000, thread: startThread, ...options }
  }

  /** The octets of a message of an account. Those of the draft's attachments are given back. */
  compose(account: string, draft: Draft, origin: Origin): Promise<Composed> {
    if (sizeOf(draft) < large) return compose(draft, origin)
    if (this.#stopped) return Promise.reject(stopping())
    return new Promise<Composed>((resolve, reject) => {
      const settle = (answer: ComposeResult): void => {
        if (!('whole' in answer)) return reject(answer.failure)
        const { head } = answer
        const whole = Buffer.from(answer.whole.buffer)
        resolve({ raw: whole.subarray(head.length), head, whole })
      }
      this.#queue.push(account, { draft, origin, settle })
      this.#next()
    })
  }

  /** Ends the thread; what was not composed is refused. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    const left = [...(this.#underway ? [this.#underway] : []), ...this.#queue.clear()]
    this.#underway = undefined
    const thread = this.#thread
    this.#thread = undefined
    for (const { settle } of left) settle({ failure: stopping() })
    await thread?.terminate()
  }

  #next(): void {
    if (this.#underway) return
    clearTimeout(this.#timer)
    const job = this.#queue.shift()
    if (!job) {
      // an idle one would keep its memory
      this.#end()
      return
    }
    this.#underway = job
    this.#thread ??= this.#open()
    this.#timer = setTimeout(() => this.#fail('deadline'), this.#options.deadline)
    const { order, transfer } = orderOf(job)
    this.#thread.postMessage(order, transfer)
  }

  #open(): ComposeThread {
    const thread = this.#options.thread()
    const ended = (why: string): void => {
      if (this.#thread === thread) this.#fail(why)
    }
    thread.on('message', (answer: ComposeResult) => {
      if (this.#thread === thread) this.#finish(answer)
    })
    thread.on('error', (error: Error) => ended(error.message))
    thread.on('exit', () => ended('it ended'))
    return thread
  }

  #finish(answer: ComposeResult): void {
    const job = this.#underway
    this.#underway = undefined
    job?.settle(answer)
    this.#next()
  }

  /** The thread is no more, or must be: what was in it is refused. */
  #fail(why: string): void {
    this.#end()
    if (this.#underway) this.#log.warn({ why, octets: sizeOf(this.#underway.draft) }, 'The composer ended over a message')
    this.#finish({ failure: uncomposed() })
  }

  #end(): void {
    const thread = this.#thread
    this.#thread = undefined
    void thread?.terminate()
  }
}

function startThread(): Worker {
  // a small young generation: much is made and little is kept
  return new Worker(new URL('./compose-worker.ts', import.meta.url), {
    name: 'composer',
    resourceLimits: { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 8 },
  })
}

/** What is encoded in one step; other attachments take many. */
function sizeOf({ text, html, attachments }: Draft): number {
  const messages = attachments.filter(({ content_type }) => content_type !== null && /^message\//i.test(content_type))
  return messages.reduce((sum, { content }) => sum + content.length, (text?.length ?? 0) + (html?.length ?? 0))
}

/** The attachments' octets move to the thread; those that share their memory with others are copied. */
function orderOf({ draft, origin }: Job): { order: ComposeJob; transfer: ArrayBuffer[] } {
  const attachments = draft.attachments.map((one) => ({ ...one, content: alone(one.content) }))
  const transfer = new Set(attachments.map(({ content }) => content.buffer))
  return { order: { draft: { ...draft, attachments }, origin }, transfer: [...transfer] }
}

function alone(octets: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer } = octets
  return buffer instanceof ArrayBuffer && buffer.byteLength === octets.length ? new Uint8Array(buffer) : new Uint8Array(octets)
}

function uncomposed(): Fault {
  return new Fault('internal_error', 'The message could not be composed. Send its text in a simpler form, or as an attachment.', {
    code: 'not_composed',
  })
}

function stopping(): Fault {
  return new Fault('internal_error', 'The box is stopping. Try again later.', { retryAfter: 10 })
}
