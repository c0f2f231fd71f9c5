import { Worker } from 'node:worker_threads'
import { Fault, stopping } from '../../core/fault.ts'
import type { Log } from '../../core/log.ts'
import { tooLargeForText, unreadable } from '../../message/documents/collected-text.ts'
import type { DocumentText, FileHints } from '../../message/documents/document.ts'
import type { DocumentAnswer, DocumentStart } from './document-worker.ts'

const mebibyte = 1024 * 1024

/**
 * What one document may use: milliseconds of CPU, and of time for a thread that waits; bytes of heap and of buffers beside the file itself, which no
 * limit of V8 covers: a compressed stream of a few KB may be gigabytes.
 */
const limits = { cpu: 7000, time: 30_000, heap: 96 * mebibyte, buffers: 48 * mebibyte }

/** Milliseconds between two looks at what a thread uses. */
const interval = 25

/** Megabytes of heap at which V8 ends a thread, should it grow faster than it is looked at. */
const maxHeap = 192

/**
 * Reads the text of documents, each in a thread of its own: it is killed with whatever the document made of it. The caller limits how many are read at
 * once.
 */
export class DocumentReader {
  readonly #log: Log
  readonly #running = new Map<Worker, (error: Error) => void>()
  #stopped = false

  constructor(log: Log) {
    this.#log = log
  }

  /**
   * Reads a file, whose bytes are transferred if they share no memory. Throws Fault invalid_request, code `attachment_not_text`, `attachment_unreadable` or
   * `attachment_too_large_for_text`. Rejects when the signal aborts.
   */
  async read(content: Buffer, hints: FileHints, signal: AbortSignal): Promise<DocumentText> {
    signal.throwIfAborted()
    if (this.#stopped) throw stopping()
    const { buffer } = content
    const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength === content.length
    const bytes = isOwn ? new Uint8Array(buffer) : new Uint8Array(content)
    const size = bytes.length
    const worker = startThread({ bytes, hints })
    const { promise, resolve, reject } = Promise.withResolvers<DocumentText>()
    this.#running.set(worker, reject)
    let isOver = false
    const kill = (why: string): void => {
      if (isOver) return
      isOver = true
      this.#log.warn({ why, octets: size }, 'a thread that read an attachment was ended')
      reject(tooLargeForText(`it takes too much ${why}`))
    }
    const leave = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', leave, { once: true })
    worker.on('message', (answer: DocumentAnswer) => {
      if ('document' in answer) resolve(answer.document)
      else reject(new Fault('invalid_request', answer.refusal.message, { code: answer.refusal.code }))
    })
    worker.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') kill('memory')
      else reject(unreadable('its reader failed', error))
    })
    worker.on('exit', () => reject(unreadable('it is damaged')))
    const begun = performance.now()
    const watch = setInterval(() => {
      if (performance.now() - begun > limits.time) kill('time')
      void excessOf(worker, size).then((why) => why !== undefined && kill(why))
    }, interval)
    try {
      return await promise
    } finally {
      isOver = true
      clearInterval(watch)
      signal.removeEventListener('abort', leave)
      this.#running.delete(worker)
      await worker.terminate()
    }
  }

  /** Ends the threads; their documents are refused. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const reject of this.#running.values()) reject(stopping())
    await Promise.all([...this.#running.keys()].map((worker) => worker.terminate()))
  }
}

function startThread(start: DocumentStart): Worker {
  return new Worker(new URL('./document-worker.ts', import.meta.url), {
    name: 'document',
    workerData: start,
    transferList: [start.bytes.buffer],
    resourceLimits: { maxOldGenerationSizeMb: maxHeap, maxYoungGenerationSizeMb: 16 },
  })
}

/** What a thread uses too much of, also one that is in an endless loop; undefined for nothing, and for one that has ended. */
async function excessOf(worker: Worker, size: number): Promise<string | undefined> {
  try {
    const [cpu, heap] = await Promise.all([worker.cpuUsage(), worker.getHeapStatistics()])
    if ((cpu.user + cpu.system) / 1000 > limits.cpu) return 'time'
    return heap.used_heap_size > limits.heap || heap.external_memory > limits.buffers + size ? 'memory' : undefined
  } catch {
    return undefined
  }
}
