import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { Fault } from '../core/fault.ts'
import type { Log } from '../core/log.ts'
import { release } from '../core/memory.ts'
import type { Caller } from '../core/scopes.ts'
import { jsonAnswer, present, presentDocument, presentDownload, shownTo, textOf } from './answer.ts'
import type { Answer } from './response.ts'
import type { Body } from './body.ts'
import type { CallAbort } from './server/call-abort.ts'
import { answerGone, type Attempt, type Idempotency, readIdempotencyKey, releases } from './idempotency.ts'
import { parseInTurns } from './large-json.ts'
import { errorBody, type Problem, problemOf } from './problem.ts'
import { type AnyRoute, bodyLimit, isIdempotent, type Upload } from './route.ts'
import { checkIds, readQuery } from './target.ts'
import { validate } from './validation.ts'

/** An admitted call, as an endpoint sees it. */
export interface Call {
  requestId: string
  params: Record<string, string>
  search: string
  headers: IncomingHttpHeaders
  caller: Caller
  hand: CallAbort
  /** The octets of the body, read only now: never before the caller was admitted. */
  read(limit: number): Promise<Body>
  /** The body in place of that, as it comes. */
  receive(): Upload
  /** Undefined when it may be handled at once; else resolves when it is its account's turn. */
  turn(): Promise<void> | undefined
  /** Throws Fault 401 when the caller's key or session has ended since the call was admitted. */
  requireStill(): Promise<void>
}

const halfMinute = 30_000
const nothing = { bytes: Buffer.alloc(0), scan: undefined, headers: {}, search: '' }

/** Runs one declared route on one call: ids, query, body, idempotency, handler, reply schema, and what of it the caller may see. Throws what goes wrong. */
export async function answerCall(route: AnyRoute, call: Call, idempotency: Idempotency, log: Log): Promise<Answer> {
  return shownTo(route, call.caller, await wholeAnswer(route, call, idempotency, log))
}

async function wholeAnswer(route: AnyRoute, call: Call, idempotency: Idempotency, log: Log): Promise<Answer> {
  checkIds(call.params)
  const query = route.raw ? {} : validate(route.query, readQuery(call.search), 'parameter')
  const { bytes, scan } = route.upload === undefined ? await call.read(bodyLimit(route)) : nothing
  const turn = call.turn()
  if (turn) await turn
  // whoever is slow to send, or had to wait, may have lost the key meanwhile
  if (turn || bytes.length > 0) await call.requireStill()
  const body = validate(route.body, scan ? await parseInTurns(bytes, scan) : {}, 'field')
  const raw = route.raw ? { bytes, headers: call.headers, search: call.search } : nothing
  const upload = route.upload === undefined ? { octets: Readable.from([]), length: 0 } : uploadOf(call)
  const input = inputOf(call, query, body, { raw, upload })
  const header = call.headers['idempotency-key']
  if (typeof header !== 'string' || !isIdempotent(route)) {
    if (!route.raw) release(bytes)
    const result = await inTime(route.handle(input(nothingKept)), route, call.hand, log)
    if (route.method === 'DELETE') await idempotency.forgetResource(deletedBy(route, call.params))
    if (route.document) return presentDocument(route, result as object, call.headers['if-none-match'])
    if (route.download === undefined) return present(route, result)
    return presentDownload(result, call.headers.range, headerText(call.headers['if-range']))
  }
  const outcome = await idempotency.begin({
    key: readIdempotencyKey(header),
    caller: call.caller,
    method: route.method,
    path: spelt(route, call.params),
    search: call.search,
    body: bytes,
    identity_id: route.path.startsWith('/identities/:id') ? (call.params['id'] ?? null) : null,
    secret: route.secret ?? false,
  })
  if (!route.raw) release(bytes)
  if ('status' in outcome) return replayed(outcome, call.requestId)
  if ('memo' in outcome) {
    if (!route.again) throw new Error(`${route.path} left a memo, and does not know what to answer from it`)
    const again = route.again(input(nothingKept), outcome.memo).catch(asGone)
    const answer = present(route, await inTime(again, route, call.hand, log))
    return { ...answer, headers: { ...answer.headers, ...replayedHeader } }
  }
  const run = async (): Promise<unknown> => route.handle(input((tx, memo) => outcome.remember(tx, memo)))
  return await inTime(settle(outcome, route, run, log), route, call.hand, log)
}

/** The body as it comes; at its end the caller must still be admitted. */
function uploadOf(call: Call): Upload {
  const { octets, length } = call.receive()
  return { octets: followed(octets, () => call.requireStill()), length }
}

async function* followed(octets: AsyncIterable<Buffer>, end: () => Promise<void>): AsyncGenerator<Buffer> {
  yield* octets
  await end()
}

type Given = Parameters<AnyRoute['handle']>[0]

const nothingKept: Given['remember'] = async () => undefined

const replayedHeader = { 'Idempotency-Replayed': 'true' }

function inputOf(call: Call, query: unknown, body: unknown, { raw, upload }: Pick<Given, 'raw' | 'upload'>) {
  const { params, caller, headers, requestId, hand } = call
  return (remember: Given['remember']): Given => ({
    params,
    query: query as never,
    body: body as never,
    caller,
    raw,
    upload,
    host: hostOf(headers.host),
    request_id: requestId,
    turn: () => call.turn(),
    get signal() {
      return hand.signal
    },
    remember,
  })
}

const aboutNothing = { identity_id: null, resource_id: null, memo: null }

/** What the first call made or changed is not there any more: that is said of the answer, and not of the path. */
function asGone(error: unknown): never {
  throw error instanceof Fault && error.type === 'not_found' ? answerGone() : error
}

/** The id that a DELETE names last. */
function deletedBy({ path }: AnyRoute, params: Record<string, string>): string {
  return params[/:(\w+)$/.exec(path)?.[1] ?? ''] ?? ''
}

/** Lives as long as the handler does, not as long as the caller waits: only then is it known what the key stands for. */
async function settle(attempt: Attempt, route: AnyRoute, run: () => Promise<unknown>, log: Log): Promise<Answer> {
  const keep = async (write: () => Promise<void>): Promise<void> => {
    try {
      await write()
    } catch (error) {
      // What the handler did stands; only its replay is lost, and the key stays taken.
      log.error({ err: error }, 'an idempotent answer could not be kept')
    }
  }
  try {
    const result = await attempt.run(run)
    const answer = present(route, result)
    const { id = null, identity_id = null } = result as { id?: string; identity_id?: string | null }
    const body = route.again ? '' : textOf(answer)
    const about = { identity_id: route.path === '/identities' ? id : identity_id, resource_id: id, memo: route.again ? id : null }
    await keep(() => attempt.keep({ status: answer.status, location: answer.headers.Location ?? null, body, ...about }))
    return answer
  } catch (error) {
    const problem = problemOf(error)
    await keep(() =>
      releases(error)
        ? attempt.release()
        : attempt.keep({ status: problem.status, location: null, body: JSON.stringify(problem), ...aboutNothing }),
    )
    throw error
  }
}

function replayed(kept: { status: number; location: string | null; body: string }, requestId: string): Answer {
  const headers = { ...replayedHeader, ...(kept.location === null ? {} : { Location: kept.location }) }
  const body = kept.status < 400 ? kept.body : errorBody(JSON.parse(kept.body) as Problem, requestId)
  return jsonAnswer(kept.status, body, headers)
}

/** Gives up waiting when the time is up; the handler is told by its signal, and what it does later is only logged. */
function inTime<T>(work: Promise<T>, route: AnyRoute, hand: CallAbort, log: Log): Promise<T> {
  return new Promise((resolve, reject) => {
    let late = false
    const timer = setTimeout(() => {
      late = true
      hand.abort('late')
      reject(new Fault('internal_error', 'The request took too long and was given up.', { code: 'timeout', retryAfter: 1 }))
    }, route.timeout ?? halfMinute)
    work
      .finally(() => clearTimeout(timer))
      .then(resolve, (error: unknown) => {
        if (late) log.warn({ err: error, route: route.path }, 'a handler failed after its time was up')
        reject(error)
      })
  })
}

/** The same for every spelling of a call. */
function spelt(route: AnyRoute, params: Record<string, string>): string {
  return route.path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
}

/** RFC 9110 7.2: the name of the `Host` field. */
function hostOf(host = ''): string {
  return host.toLowerCase().replace(/:\d*$/, '')
}

function headerText(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
