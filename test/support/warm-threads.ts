import { EventEmitter } from 'node:events'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { ExamineOrder, WorkerReport, WorkerStart } from '../../src/mail/workers/examine.ts'
import type { WorkerThread } from '../../src/mail/workers/worker-slot.ts'

const idle: Worker[] = []

/** More are ended: each holds a heap, and a process that holds much takes long to start another. */
const maxIdle = 2

/**
 * A thread of the examiner with the parsers loaded already, which is most of what a box with mail costs to start: it serves one box after
 * the other, each by a port and with a resolver of its own. One that is still at work when it is ended is not used again.
 */
export function warmThread(start: WorkerStart, memory: number): WorkerThread {
  return new Lease(idle.pop() ?? open(memory), start)
}

function open(memory: number): Worker {
  const worker = new Worker(new URL('./warm-thread.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: memory, maxYoungGenerationSizeMb: 64 },
  })
  worker.unref()
  worker.once('exit', () => {
    if (idle.includes(worker)) idle.splice(idle.indexOf(worker), 1)
  })
  return worker
}

class Lease extends EventEmitter implements WorkerThread {
  readonly #worker: Worker
  readonly #port: MessagePort
  #underway = 0
  #ended = false

  constructor(worker: Worker, start: WorkerStart) {
    super()
    const { port1, port2 } = new MessageChannel()
    this.#worker = worker
    this.#port = port1
    port1.on('message', (report: WorkerReport) => {
      if ('results' in report) this.#underway -= report.results.length
      this.emit('message', report)
    })
    worker.on('error', this.#failed)
    worker.on('exit', this.#exited)
    worker.postMessage({ start, port: port2 }, [port2])
  }

  postMessage(order: ExamineOrder, transfer: ArrayBuffer[]): void {
    if ('tasks' in order) this.#underway += order.tasks.length
    this.#port.postMessage(order, transfer)
  }

  async terminate(): Promise<void> {
    if (this.#ended) return
    this.#ended = true
    this.#port.close()
    this.#worker.off('error', this.#failed).off('exit', this.#exited)
    if (this.#underway === 0 && idle.length < maxIdle) idle.push(this.#worker)
    else await this.#worker.terminate()
  }

  readonly #failed = (error: Error): void => {
    this.#underway += 1
    this.emit('error', error)
  }

  readonly #exited = (): void => {
    this.#underway += 1
    this.emit('exit')
  }
}
