import { hash } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { getHeapStatistics } from 'node:v8'
import { deflateRawSync } from 'node:zlib'
import { collect } from '../../core/memory.ts'
import { withoutControls } from '../../core/text.ts'
import { oneLine } from '../../mailauth/authentication-results.ts'
import { Dns, type DnsSettings } from '../../net/dns.ts'
import { DnsTally } from '../../net/dns-tally.ts'
import { linksOf } from '../../message/links.ts'
import { type Envelope, isVouchedFor, type Verdict } from '../model.ts'
import { lookedAt } from './outgoing-scan.ts'
import { type DecodedAttachment, listsOf, type Parsed, storedFieldsOf } from '../../message/parsed.ts'
import { headerOnly } from '../../message/header-only.ts'
import { uncheckedVerdict } from '../../mailauth/unchecked.ts'
import { confirmAuthor, checkMessage, type VerdictSettings } from '../../mailauth/verdict.ts'

export interface ExamineSettings extends VerdictSettings {
  dns: DnsSettings
  /** True if messages are authenticated; if false, every result is `none`. */
  verify: boolean
}

/** The parser functions of a worker. */
interface Readers {
  parse(raw: Buffer): Promise<Parsed>
  attachmentsOf(raw: Buffer, indexes: readonly number[]): Promise<DecodedAttachment[]>
}

/** The start parameters of a worker. `heartbeat` is the interval of its heartbeats in milliseconds. */
export interface WorkerStart {
  settings: ExamineSettings
  heartbeat: number
  /** Shared counters of DNS queries. */
  queries: BigUint64Array
  /** Shared memory with the id of the last task begun, which stays readable when the worker hangs. */
  begun: Int32Array
}

/** One message in a batch. Its bytes are at `start` to `end` of the batch's buffer. */
export interface Task {
  id: number
  start: number
  end: number
  /** Null to extract attachments. */
  envelope: Envelope | null
  /** Indexes of the attachments to extract. */
  attachments: readonly number[]
  /** A worker died while processing it: it is authenticated before it is parsed, and not parsed when it is rejected. */
  suspect: boolean
  /** The text of a message composed here, stored as it was given. */
  body_text?: string
}

/** Messages to the worker. Tasks are batched with their bytes in one buffer, as each message between threads has a cost. */
export type ExamineOrder = { tasks: Task[]; octets: ArrayBuffer } | { settings: ExamineSettings }

/** Messages from the worker: batched results, a verdict available before its message is parsed, or a heartbeat. */
export type WorkerReport = { alive: true } | { id: number; verdict: Verdict } | { results: Result[]; octets: ArrayBuffer }

/** `spans` are the positions of the result's bytes in the report's buffer. */
export interface Result {
  id: number
  spans: [number, number][]
  message?: { parsed: Parsed; verdict: Verdict; sha256: string; body_size: number; long_lists: boolean; all_fields: boolean }
  attachments?: Omit<DecodedAttachment, 'content'>[]
  failure?: string
  /** The parser never finished and was aborted. */
  stalled?: true
}

/** A run of the parser: the milliseconds for which its thread has been idle, and how to abort it. */
interface ParserRun {
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

/** Larger messages are stored uncompressed: they are mostly base64, which shrinks by a fifth only and takes milliseconds. */
const deflatable = 64 * 1024

/** Bytes of the bodies of a message and of what its row has besides, in JSON, that are stored together: to read them for a list takes no time. */
const maxWithFields = 64 * 1024

/** Characters in JSON of the lists of a message that each of several copies has in its own row. */
const maxCopiedLists = 32 * 1024

const nothing = new Uint8Array()

/** Idle heartbeats after which a parser is aborted; the first may have begun before it. */
const maxIdleHeartbeats = 3

/**
 * Bytes of large messages, or of the heap, after which garbage is collected when the worker is idle: parsing takes several times as much memory, and
 * compressed content is small before it is decompressed. A worker at rest has a heap of about 60 MB.
 */
const collectAfter = { large: 4 * 1024 * 1024, heap: 96 * 1024 * 1024 }
const large = 1024 * 1024

/** Size of a message that is always parsed immediately, in bytes. */
const smallOctets = 16 * 1024

/** Processes tasks of the parent thread, or of the other end of a port until it is closed. */
export function serve(readers: Readers, port: MessagePort | null = parentPort, start: WorkerStart = workerData) {
  if (!port) throw new Error('this runs in a worker thread')
  let settings = start.settings
  const tally = new DnsTally(start.queries)
  let dns = new Dns(settings.dns, undefined, tally)
  let pending = 0
  /** Bytes of large messages since garbage was last collected. */
  let largeOctets = 0
  let finished: Finished[] = []
  const waiting: { task: Task; raw: Buffer }[] = []
  const parserRuns = new Set<ParserRun>()
  let { idle } = performance.eventLoopUtilization()

  port.on('message', (order: ExamineOrder) => {
    if ('settings' in order) {
      settings = order.settings
      dns = new Dns(settings.dns, undefined, tally)
      return
    }
    pending += order.tasks.length
    if (order.octets.byteLength >= large) largeOctets += order.octets.byteLength
    const isScheduled = waiting.length > 0
    for (const task of order.tasks) waiting.push({ task, raw: Buffer.from(order.octets, task.start, task.end - task.start) })
    if (!isScheduled) begin()
  })
  const post = (report: WorkerReport, transfer: ArrayBuffer[] = []) => port.postMessage(report, transfer)
  const heartbeat = setInterval(() => {
    if (pending > 0) post({ alive: true })
    abortStalled()
  }, start.heartbeat)
  port.once('close', () => clearInterval(heartbeat))
  post({ alive: true })

  /** Starts small tasks together, and each larger one in an iteration of its own, so that the last task begun is the one that crashes the thread. */
  function begin() {
    do {
      const next = waiting.shift()
      if (!next) return
      Atomics.store(start.begun, 0, next.task.id)
      void run(next.task, next.raw)
      if (next.raw.length > smallOctets) break
    } while (waiting.length > 0 && waiting[0]!.raw.length <= smallOctets)
    if (waiting.length > 0) setImmediate(begin)
  }

  async function run(task: Task, raw: Buffer) {
    try {
      finish(task.envelope ? await examine(task, raw, task.envelope) : await extract(task, raw))
    } catch (error) {
      finish({ result: { id: task.id, spans: [], failure: reasonOf(error), ...stalledFlag(error) }, octets: [] })
    }
  }

  /** A parser needs nothing but the processor: one that lets its thread be idle waits for what never comes. */
  function abortStalled() {
    const before = idle
    idle = performance.eventLoopUtilization().idle
    for (const parserRun of parserRuns) {
      parserRun.idle += idle - before
      if (parserRun.idle > maxIdleHeartbeats * start.heartbeat) parserRun.giveUp()
    }
  }

  async function withStallCheck<Read>(work: Promise<Read>): Promise<Read> {
    const { promise, reject } = Promise.withResolvers<never>()
    const parserRun: ParserRun = { idle: 0, giveUp: () => reject(new Stalled()) }
    parserRuns.add(parserRun)
    try {
      return await Promise.race([work, promise])
    } finally {
      parserRuns.delete(parserRun)
    }
  }

  async function examine({ id, suspect, body_text: given }: Task, raw: Buffer, envelope: Envelope): Promise<Finished> {
    const current = settings
    let isRead = false
    // Authentication starts first: the parser works while it waits for the DNS.
    const judged =
      current.verify && !envelope.own
        ? checkMessage(raw, envelope, dns.lookup, current).then((verdict) => {
            // Posted immediately, as the parser may crash this thread.
            if (!isRead) post({ id, verdict: confirmAuthor(verdict, headerOnly(raw, '').from, envelope, current) })
            return verdict
          })
        : Promise.resolve(uncheckedVerdict(envelope, current.hostname, 'not checked', 'none'))
    const isRefused = suspect && (await judged).action === 'reject'
    const mark: { stalled?: true } = {}
    const read = isRefused
      ? Promise.resolve(headerOnly(raw, 'rejected without reading'))
      : withStallCheck(readers.parse(raw)).catch((error: unknown) => {
          Object.assign(mark, stalledFlag(error))
          return headerOnly(raw, reasonOf(error))
        })
    const [found, judgement] = await Promise.all([read.finally(() => (isRead = true)), judged])
    const verdict = confirmAuthor(judgement, found.from, envelope, current)
    const parsed = vouchedLinks(found, verdict)
    if (given !== undefined) parsed.body_text = withoutControls(given)
    const compressed = raw.length <= deflatable ? deflated(raw) : raw
    const { body_text, body_html, text } = parsed
    const lists = listsOf(parsed)
    const long_lists = (envelope?.recipients.length ?? 0) > 1 && JSON.stringify(lists).length > maxCopiedLists
    // deflated here, what a row and an event have of a message takes a quarter of what it would take in each
    const jsonWith = (fields: object): Buffer => Buffer.from(JSON.stringify({ body_text, body_html, text, ...fields }))
    const whole = !envelope.own && raw.length <= deflatable ? jsonWith(storedFieldsOf(parsed, verdict)) : undefined
    // who needs only a list must not read long bodies: a short message can make them
    const all_fields = whole !== undefined && whole.length <= maxWithFields
    const json = all_fields ? whole : jsonWith(long_lists ? lists : {})
    const bodies = deflated(json)
    const message = {
      parsed,
      verdict,
      sha256: hash('sha256', raw),
      body_size: json.length,
      long_lists,
      all_fields,
      ...(envelope.scan ? await lookedAt(parsed, raw, (indexes) => withStallCheck(readers.attachmentsOf(raw, indexes))) : {}),
    }
    return {
      result: { id, spans: [], message, ...mark },
      octets: [compressed.length < raw.length ? compressed : nothing, bodies],
    }
  }

  async function extract({ id, attachments }: Task, raw: Buffer): Promise<Finished> {
    const found = await withStallCheck(readers.attachmentsOf(raw, attachments))
    return {
      result: { id, spans: [], attachments: found.map(({ attachment, charset }) => ({ attachment, charset })) },
      octets: found.map(({ content }) => content),
    }
  }

  function finish(one: Finished) {
    pending -= 1
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
    post({ results: batch.map(({ result }) => result), octets: octets.buffer }, [octets.buffer])
    if (pending === 0 && (largeOctets >= collectAfter.large || getHeapStatistics().total_heap_size >= collectAfter.heap)) {
      largeOctets = 0
      collect()
    }
  }
}

/** Deflated with tables no larger than the input needs, as building them takes longer than packing a few KB; an inflater reads all sizes. */
function deflated(octets: Buffer): Buffer {
  const windowBits = Math.min(15, Math.max(9, 32 - Math.clz32(octets.length)))
  const chunkSize = Math.min(deflatable, Math.max(octets.length, 1024))
  return deflateRawSync(octets, { level: 1, windowBits, memLevel: Math.min(8, windowBits - 6), chunkSize })
}

/** Removes links from an unsigned List-Unsubscribe of a verified message, as the verified domain does not cover them. */
function vouchedLinks(parsed: Parsed, { authentication, verified_domain }: Verdict): Parsed {
  if (verified_domain === null || isVouchedFor(authentication, 'list-unsubscribe')) return parsed
  if (!parsed.links.some(({ kind }) => kind === 'unsubscribe')) return parsed
  return { ...parsed, links: linksOf(parsed.body_html, parsed.body_text, undefined).links }
}

function stalledFlag(error: unknown): { stalled?: true } {
  return error instanceof Stalled ? { stalled: true } : {}
}

function reasonOf(error: unknown): string {
  return oneLine(error instanceof Error ? error.message : String(error)) || 'unknown'
}
