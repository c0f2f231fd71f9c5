import { hash } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { deflateRawSync } from 'node:zlib'
import { collect } from '../../core/memory.ts'
import { oneLine } from '../../mailauth/authentication-results.ts'
import { Dns, type DnsSettings } from '../../net/dns.ts'
import { DnsTally } from '../../net/dns-tally.ts'
import { linksOf } from '../../message/links.ts'
import { type Attachment, type Envelope, isVouchedFor, type Verdict } from '../model.ts'
import type { Parsed, StoredBodies } from '../../message/parsed.ts'
import { unread } from '../../message/unread.ts'
import { undecided } from '../../mailauth/undecided.ts'
import { confirm, judge, type VerdictSettings } from '../../mailauth/verdict.ts'

export interface ExamineSettings extends VerdictSettings {
  dns: DnsSettings
  /** False: no message is judged; every result is `none`. */
  verify: boolean
}

/** What turns octets into a message. */
export interface Readers {
  parse(raw: Buffer): Promise<Parsed>
  attachment(raw: Buffer, index: number): Promise<{ attachment: Attachment; content: Buffer } | undefined>
}

/** What a worker is started with; `heartbeat` is the milliseconds between its signs of life. */
export interface Start {
  settings: ExamineSettings
  heartbeat: number
  /** Where queries of the DNS are counted, by all workers together. */
  queries: BigUint64Array
  /** The id of the task that was begun last, so that it is known of a worker that says nothing any more. */
  begun: Int32Array
}

/** One message in a batch: its octets lie in the batch's buffer from `start` to `end`. */
export interface Task {
  id: number
  start: number
  end: number
  /** Null when an attachment is wanted. */
  envelope: Envelope | null
  attachment: number
  /** A worker has died over it: it is judged before it is parsed, and not parsed when it is refused. */
  suspect: boolean
}

/** To the worker: many tasks at a time, their octets in one buffer, as every message between threads costs. */
export type ExamineOrder = { tasks: Task[]; octets: ArrayBuffer } | { settings: ExamineSettings }

/** From the worker: results likewise, a verdict that is there before its message is read, or only a sign of life. */
export type WorkerReport = { alive: true } | { id: number; verdict: Verdict } | { results: Result[]; octets: ArrayBuffer }

/** `spans` are where the octets that belong to the result lie in the report's buffer. */
export interface Result {
  id: number
  spans: [number, number][]
  message?: { parsed: Parsed; verdict: Verdict; sha256: string; body_size: number }
  attachment?: Attachment
  failure?: string
  /** The reader never settled, and was given up. */
  stalled?: true
}

/** A reader at work: the milliseconds for which its thread had nothing to do since, and how to give it up. */
interface Reading {
  idle: number
  giveUp(): void
}

class Stalled extends Error {
  constructor() {
    super('the parser did not finish (deadline)')
  }
}

interface Finished {
  result: Result
  octets: Uint8Array[]
}

/** Larger messages are kept as they came: they are base64 mostly, which shrinks by a fifth and takes milliseconds. */
const deflatable = 64 * 1024

const nothing = new Uint8Array()

/** Heartbeats of nothing to do after which a reader is given up; the first may have begun before it. */
const stalledAfter = 3

/** Octets of large messages after which garbage is collected once there is nothing to do: what was made of them is several times as large. */
const collected = 4 * 1024 * 1024
const large = 1024 * 1024

/** Octets of a message that is read at once, whatever it says. */
const short = 16 * 1024

/** Serves the thread that started this one, or the other end of a port until that is closed. */
export function serve(readers: Readers, port: MessagePort | null = parentPort, start: Start = workerData) {
  if (!port) throw new Error('this runs in a worker thread')
  let settings = start.settings
  const tally = new DnsTally(start.queries)
  let dns = new Dns(settings.dns, undefined, tally)
  let underway = 0
  /** Octets of large messages since garbage was last collected. */
  let since = 0
  let finished: Finished[] = []
  const waiting: { task: Task; raw: Buffer }[] = []
  const readings = new Set<Reading>()
  let { idle } = performance.eventLoopUtilization()

  port.on('message', (order: ExamineOrder) => {
    if ('settings' in order) {
      settings = order.settings
      dns = new Dns(settings.dns, undefined, tally)
      return
    }
    underway += order.tasks.length
    if (order.octets.byteLength >= large) since += order.octets.byteLength
    const isBeginning = waiting.length > 0
    for (const task of order.tasks) waiting.push({ task, raw: Buffer.from(order.octets, task.start, task.end - task.start) })
    if (!isBeginning) begin()
  })
  const say = (report: WorkerReport, transfer: ArrayBuffer[] = []) => port.postMessage(report, transfer)
  const heartbeat = setInterval(() => {
    if (underway > 0) say({ alive: true })
    giveUpStalled()
  }, start.heartbeat)
  port.once('close', () => clearInterval(heartbeat))
  say({ alive: true })

  /** Short ones together; each that may take long in a turn of its own, so that a task that ends the thread at once was begun last. */
  function begin() {
    do {
      const next = waiting.shift()
      if (!next) return
      Atomics.store(start.begun, 0, next.task.id)
      void run(next.task, next.raw)
      if (next.raw.length > short) break
    } while (waiting.length > 0 && waiting[0]!.raw.length <= short)
    if (waiting.length > 0) setImmediate(begin)
  }

  async function run(task: Task, raw: Buffer) {
    try {
      finish(task.envelope ? await examine(task, raw, task.envelope) : await extract(task.id, raw, task.attachment))
    } catch (error) {
      finish({ result: { id: task.id, spans: [], failure: reasonOf(error), ...markOf(error) }, octets: [] })
    }
  }

  /** A reader needs nothing but the processor: one that lets its thread be idle waits for what never comes. */
  function giveUpStalled() {
    const before = idle
    idle = performance.eventLoopUtilization().idle
    for (const reading of readings) {
      reading.idle += idle - before
      if (reading.idle > stalledAfter * start.heartbeat) reading.giveUp()
    }
  }

  async function watched<Found>(work: Promise<Found>): Promise<Found> {
    const { promise, reject } = Promise.withResolvers<never>()
    const reading: Reading = { idle: 0, giveUp: () => reject(new Stalled()) }
    readings.add(reading)
    try {
      return await Promise.race([work, promise])
    } finally {
      readings.delete(reading)
    }
  }

  async function examine({ id, suspect }: Task, raw: Buffer, envelope: Envelope): Promise<Finished> {
    const current = settings
    let isRead = false
    // The judge goes first: while it waits for the DNS, the parser works.
    const judged =
      current.verify && !envelope.own
        ? judge(raw, envelope, dns.lookup, current).then((verdict) => {
            // Said at once: the parser may be the end of this thread.
            if (!isRead) say({ id, verdict: confirm(verdict, unread(raw, '').from, envelope, current) })
            return verdict
          })
        : Promise.resolve(undecided(envelope, current.hostname, 'not checked', 'none'))
    const isRefused = suspect && (await judged).action === 'reject'
    const mark: { stalled?: true } = {}
    const read = isRefused
      ? Promise.resolve(unread(raw, 'refused unread'))
      : watched(readers.parse(raw)).catch((error: unknown) => {
          Object.assign(mark, markOf(error))
          return unread(raw, reasonOf(error))
        })
    const [found, judgement] = await Promise.all([read.finally(() => (isRead = true)), judged])
    const verdict = confirm(judgement, found.from, envelope, current)
    const parsed = vouchedLinks(found, verdict)
    const packed = raw.length <= deflatable ? deflated(raw) : raw
    const { body_text, body_html, text } = parsed
    const plain = Buffer.from(JSON.stringify({ body_text, body_html, text } satisfies StoredBodies))
    const bodies = deflated(plain)
    const message = {
      parsed,
      verdict,
      sha256: hash('sha256', raw),
      body_size: plain.length,
    }
    return { result: { id, spans: [], message, ...mark }, octets: [packed.length < raw.length ? packed : nothing, bodies] }
  }

  async function extract(id: number, raw: Buffer, index: number): Promise<Finished> {
    const found = await watched(readers.attachment(raw, index))
    return found
      ? { result: { id, spans: [], attachment: found.attachment }, octets: [found.content] }
      : { result: { id, spans: [] }, octets: [] }
  }

  function finish(one: Finished) {
    underway -= 1
    if (finished.push(one) === 1) setImmediate(flush)
  }

  function flush() {
    const batch = finished
    finished = []
    const pieces = batch.flatMap((one) => one.octets)
    const octets = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
    let position = 0
    for (const { result, octets: own } of batch) {
      for (const piece of own) {
        octets.set(piece, position)
        result.spans.push([position, (position += piece.length)])
      }
    }
    say({ results: batch.map(({ result }) => result), octets: octets.buffer }, [octets.buffer])
    if (underway === 0 && since >= collected) {
      since = 0
      collect()
    }
  }
}

/** Deflated by tables that are no larger than the octets need, since making them takes longer than packing a few KB; an inflater reads all sizes. */
function deflated(octets: Buffer): Buffer {
  const windowBits = Math.min(15, Math.max(9, 32 - Math.clz32(octets.length)))
  const chunkSize = Math.min(deflatable, Math.max(octets.length, 1024))
  return deflateRawSync(octets, { level: 1, windowBits, memLevel: Math.min(8, windowBits - 6), chunkSize })
}

/** A link that only an unsigned List-Unsubscribe has is not one of the domain that is shown as verified. */
function vouchedLinks(parsed: Parsed, { authentication, verified_domain }: Verdict): Parsed {
  if (verified_domain === null || isVouchedFor(authentication, 'list-unsubscribe')) return parsed
  if (!parsed.links.some(({ kind }) => kind === 'unsubscribe')) return parsed
  return { ...parsed, links: linksOf(parsed.body_html, parsed.body_text, undefined).links }
}

function markOf(error: unknown): { stalled?: true } {
  return error instanceof Stalled ? { stalled: true } : {}
}

function reasonOf(error: unknown): string {
  return oneLine(error instanceof Error ? error.message : String(error)) || 'unknown'
}
