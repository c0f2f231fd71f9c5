import type { Basis } from '../../basis.ts'
import { conflict, notFound } from '../../core/fault.ts'
import type { Page } from '../../core/shapes.ts'
import { backlogByLane, type BacklogDelivery, findInBacklog, type LaneBacklog, listBacklog } from '../../queue/backlog.ts'
import type { ServerAnswer } from '../../queue/courier.ts'
import type { Queue } from '../../queue/queue.ts'
import type { Reader } from '../../store/database.ts'
import type { QueueEntry, QueueEntryWithHistory, QueueFilter, QueueSummary } from './model.ts'

interface Deps extends Pick<Basis, 'database' | 'clock' | 'cursors'> {
  queue: Queue
}

const deadline = 10_000

const maxDestinations = 100

/** Of an attempt that reached no mail server. */
const nobody: ServerAnswer = { smtp_code: null, enhanced_code: null, response: null, mx: null, ip: null, tls: null }

const why = 'cancelled by the operator'

/** The queue of all accounts, for the operator. */
export class Backlog {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async list(filter: QueueFilter): Promise<Page<QueueEntry>> {
    const { database, cursors } = this.#deps
    const { state, kind, destination: lane } = filter
    const listed = await listBacklog(database, cursors, { state, kind, lane }, filter)
    const data = await Promise.all(listed.data.map((one) => this.#toEntry(database, one)))
    return { ...listed, data }
  }

  async get(id: string, reader: Reader = this.#deps.database): Promise<QueueEntryWithHistory> {
    const found = await findInBacklog(reader, id)
    const history = found.history.map(({ outcome, answer, ...attempt }) => ({
      ...attempt,
      outcome: outcome ?? ('pending' as const),
      answer: this.#words(found.kind, answer),
      ...this.#server(found.kind, answer),
    }))
    return { ...(await this.#toEntry(reader, found)), history }
  }

  /** Retries a waiting delivery now, or a failed one from the beginning. Throws Fault conflict for any other. */
  async retry(id: string): Promise<QueueEntryWithHistory> {
    const { database, queue } = this.#deps
    return database.transaction(async (tx) => {
      const { kind, state, load } = await findInBacklog(tx, id)
      if (state === 'running') throw underWay()
      if (state === 'done') throw conflict('It is done; a retry would deliver it twice.', { code: 'delivery_done' })
      if (state === 'waiting') await queue.retryNow(tx, id)
      else {
        const courier = queue.courier(kind)
        if (!courier?.retry) throw conflict(`A failed delivery of kind ${kind} cannot be retried.`, { code: 'not_repeatable' })
        await courier.retry(tx, load)
        await queue.retry(tx, id)
      }
      return this.get(id, tx)
    })
  }

  /**
   * Cancels a waiting delivery: its sender gets a failure with the reason. Throws Fault conflict for a running one, not_found for a
   * finished one.
   */
  async drop(id: string): Promise<{ id: string; deleted: true }> {
    const { database, queue } = this.#deps
    return database.transaction(async (tx) => {
      const { kind, state, load } = await findInBacklog(tx, id)
      if (state === 'running') throw underWay()
      if (!(await queue.cancelByOperator(tx, { id, kind, load }, why))) throw notFound('waiting delivery; it has ended')
      return { id, deleted: true }
    })
  }

  async summary(): Promise<QueueSummary> {
    const all = await backlogByLane(this.#slowReader)
    const kinds = [...Map.groupBy(all, ({ kind }) => kind)].map(([kind, some]) => ({ kind, ...this.#depth(some) }))
    const destinations = all
      .slice(0, maxDestinations)
      .map((heap) => ({ kind: heap.kind, destination: heap.lane, ...this.#depth([heap]) }))
    return { kinds: kinds.toSorted((one, other) => one.kind.localeCompare(other.kind, 'en')), destinations }
  }

  /** A long queue is read off the event loop. */
  get #slowReader(): Pick<Reader, 'all'> {
    return { all: (query) => this.#deps.database.slow(query, deadline) }
  }

  #depth(some: readonly LaneBacklog[]): Omit<QueueSummary['kinds'][number], 'kind'> {
    const sum = (of: 'waiting' | 'running'): number => some.reduce((total, heap) => total + heap[of], 0)
    const oldest = some.map((heap) => heap.oldest).toSorted()[0]!
    const dues = some.flatMap(({ next }) => next ?? []).toSorted()
    return { waiting: sum('waiting'), running: sum('running'), age: this.#age(oldest, null), due_at: dues[0] ?? null }
  }

  async #toEntry(reader: Reader, one: BacklogDelivery): Promise<QueueEntry> {
    const { id, kind, lane, state, attempts, reason, due_at, created_at, ended_at, load, answer } = one
    const about = (await this.#deps.queue.courier(kind)?.describe?.(reader, load)) ?? wordsOf(load)
    return {
      id,
      kind,
      destination: lane,
      about,
      state,
      attempts,
      last_answer: this.#words(kind, answer),
      ...this.#server(kind, answer),
      reason,
      due_at: state === 'waiting' ? due_at : null,
      created_at,
      ended_at,
      age: this.#age(created_at, ended_at),
    }
  }

  #words(kind: string, answer: string | null): string | null {
    return answer === null ? null : this.#deps.queue.answerText(kind, answer)
  }

  #server(kind: string, answer: string | null): ServerAnswer {
    return (answer === null ? undefined : this.#deps.queue.courier(kind)?.serverAnswer?.(answer)) ?? nobody
  }

  #age(from: string, to: string | null): number {
    const end = to === null ? this.#deps.clock.now() : Date.parse(to)
    return Math.max(0, Math.round((end - Date.parse(from)) / 1000))
  }
}

function underWay(): ReturnType<typeof conflict> {
  return conflict('An attempt is running; try again when it has ended.', { code: 'delivery_under_way' })
}

/** The text fields of a payload. */
function wordsOf(load: unknown): Record<string, string> {
  const entries = Object.entries(load as object).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return Object.fromEntries(entries)
}
