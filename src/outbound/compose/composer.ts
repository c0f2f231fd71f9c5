import { Worker } from 'node:worker_threads'
import { FairQueue } from '../../core/work/fair-queue.ts'
import { Fault, stopping } from '../../core/fault.ts'
import type { Log } from '../../core/log.ts'
import { compose, type Composed, type Draft, type Origin } from './compose.ts'
import type { ComposeResult, ComposeJob } from './compose-worker.ts'

/** Characters of texts and bytes of enclosed messages from which a message is composed in a thread: some milliseconds of work. */
const large = 64 * 1024

/** The worker thread of a composer. */
interface ComposeThread {
  on(event: 'message', listener: (answer: ComposeResult) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  on(event: 'exit', listener: () => void): unknown
  postMessage(order: ComposeJob, transfer: ArrayBuffer[]): void
  terminate(): Promise<unknown>
}

export interface ComposerOptions {
  /** Timeout for one message, in milliseconds. */
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
 * Composes messages: small ones in this thread, large ones in a worker thread, one at a time, with accounts taking turns. A message that crashes the
 * worker is refused, and the next one gets a new worker.
 */
export class Composer {
  readonly #log: Log
  readonly #options: Required<ComposerOptions>
  readonly #queue = new FairQueue<Job>()
  #thread: ComposeThread | undefined
  #current: Job | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(log: Log, options: ComposerOptions = {}) {
    this.#log = log
    this.#options = { deadline: 30_000, thread: startThread, ...options }
  }

  /** Composes a message of an account. Releases the buffers of the attachments. */
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

  /** Ends the thread; unfinished messages are refused. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    const left = [...(this.#current ? [this.#current] : []), ...this.#queue.clear()]
    this.#current = undefined
    const thread = this.#thread
    this.#thread = undefined
    for (const { settle } of left) settle({ failure: stopping() })
    await thread?.terminate()
  }

  #next(): void {
    if (this.#current) return
    clearTimeout(this.#timer)
    const job = this.#queue.shift()
    if (!job) {
      // an idle thread would keep its memory
      this.#end()
      return
    }
    this.#current = job
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
    const job = this.#current
    this.#current = undefined
    job?.settle(answer)
    this.#next()
  }

  /** The thread has ended or must end: its message is refused. */
  #fail(why: string): void {
    this.#end()
    if (this.#current) this.#log.warn({ why, octets: sizeOf(this.#current.draft) }, 'composer crashed on a message')
    this.#finish({ failure: composeFailed() })
  }

  #end(): void {
    const thread = this.#thread
    this.#thread = undefined
    void thread?.terminate()
  }
}

function startThread(): Worker {
  // a small young generation: most objects are short-lived
  return new Worker(new URL('./compose-worker.ts', import.meta.url), {
    name: 'composer',
    resourceLimits: { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 8 },
  })
}

/** The size of what is encoded in one step; other attachments take many. */
function sizeOf({ text, html, attachments }: Draft): number {
  const messages = attachments.filter(({ content_type }) => content_type !== null && /^message\//i.test(content_type))
  return messages.reduce((sum, { content }) => sum + content.length, (text?.length ?? 0) + (html?.length ?? 0))
}

/** Transfers the buffers of attachments to the thread; those that share memory are copied. */
function orderOf({ draft, origin }: Job): { order: ComposeJob; transfer: ArrayBuffer[] } {
  const attachments = draft.attachments.map((one) => ({ ...one, content: transferable(one.content) }))
  const transfer = new Set(attachments.map(({ content }) => content.buffer))
  return { order: { draft: { ...draft, attachments }, origin }, transfer: [...transfer] }
}

function transferable(octets: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer } = octets
  return buffer instanceof ArrayBuffer && buffer.byteLength === octets.length ? new Uint8Array(buffer) : new Uint8Array(octets)
}

function composeFailed(): Fault {
  return new Fault('internal_error', 'The message could not be composed. Simplify its text, or send it as an attachment.', {
    code: 'not_composed',
  })
}
