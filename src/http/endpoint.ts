import type { IncomingHttpHeaders } from 'node:http'
import { Fault } from '../core/fault.ts'
import type { Log } from '../core/log.ts'
import { release } from '../core/memory.ts'
import type { Caller } from '../core/scopes.ts'
import { askedBy } from '../core/work/long-work.ts'
import { type AuditDeps, CallAudit } from './audit.ts'
import { jsonAnswer, present, presentDocument, presentDownload, presentUnwritten, visibleTo, textOf } from './answer/answer.ts'
import type { Body } from './body.ts'
import type { CallAbort } from './server/call-abort.ts'
import { answerGone, type Attempt, type Idempotency, isUnsure, readIdempotencyKey, releases } from './idempotency.ts'
import { parseInTurns } from './large-json.ts'
import { errorBody, type Problem, problemOf } from './problem.ts'
import { type Answer, type AnyRoute, maxBodyBytes, isIdempotent, type Upload } from './route.ts'
import { checkIds, readQuery } from './target.ts'
import { validate } from './validation.ts'

/** An admitted call. */
export interface Call {
  requestId: string
  params: Record<string, string>
  search: string
  headers: IncomingHttpHeaders
  caller: Caller
  abort: CallAbort
  /** Reads the body; it is not read before the caller is admitted. */
  read(limit: number): Body | Promise<Body>
  /** The body as a stream instead. */
  receive(): Upload
  /** Undefined when the call may be handled at once; else resolves when it is the turn of its account. */
  turn(): Promise<void> | undefined
  /** Resolves when the call may go on after it waited for something else. */
  turnAgain(): Promise<void>
  /** Throws Fault rate_limited, code `too_much_unread`, when too much of what the account was answered is unread. */
  requireRead(): void
  /** The handler needs no more than so many bytes of the body from now on. */
  keepOfBody(this: void, bytes: number): void
  /** Takes the work of the handler: the body counts as in memory until it settles, also when that is after the timeout. */
  working(this: void, work: Promise<unknown>): void
  /** Throws Fault 401 when the caller's key or session has ended since the call was admitted. */
  requireStillValid(): Promise<void>
  /** Adds fields to the log line of the request. */
  addToLog(this: void, fields: Readonly<Record<string, unknown>>): void
  /** The reply is taken as it is, without its JSON: it does not leave the box. */
  unwritten?: true
}

/** What calls are handled with. */
export interface CallDeps extends AuditDeps {
  idempotency: Idempotency
  log: Log
}

const defaultTimeout = 30_000
const nothing = { bytes: Buffer.alloc(0), scan: undefined, parsed: undefined, headers: {}, search: '' }
const noUpload: Upload = { octets: (async function* () {})(), length: 0 }

/** Handles a call by its declared route: ids, query, body, idempotency, handler, reply schema, and the fields that the caller may see. */
export async function handleCall(route: AnyRoute, call: Call, deps: CallDeps): Promise<Answer> {
  const answer = (): Promise<Answer> => fullAnswer(route, call, deps)
  const isReading = route.method === 'GET' && !route.effect
  return visibleTo(route, call.caller, await (isReading ? askedBy(call.abort, answer) : answer()))
}

async function fullAnswer(route: AnyRoute, call: Call, deps: CallDeps): Promise<Answer> {
  const { idempotency, log } = deps
  checkIds(call.params)
  const query = route.raw ? {} : validate(route.query, readQuery(call.search), 'parameter')
  const { bytes, scan, parsed } = route.upload === undefined ? await call.read(maxBodyBytes(route)) : nothing
  const turn = call.turn()
  if (turn) await turn
  // the key may have been revoked while the body arrived or the call waited
  if (turn || bytes.length > 0) await call.requireStillValid()
  const body = validate(route.body, parsed ?? (scan ? await parseInTurns(bytes, scan) : {}), 'field')
  if (route.body === undefined && !route.raw) call.keepOfBody(0)
  // nothing has happened yet; from here on the call is finished whether its caller waits or not
  if (call.abort.cut === 'gone') throw new Error('The caller has gone before the call began')
  const raw = route.raw ? { bytes, headers: call.headers, search: call.search } : nothing
  const upload = route.upload === undefined ? noUpload : uploadOf(call)
  const recipient = { account: call.caller.account_id, requireRead: () => call.requireRead() }
  const input = (remember: HandlerInput['remember']) => new CallInput(call, { query, body, raw, upload }, remember)
  const audit = new CallAudit(route, call, body, deps)
  const header = call.headers['idempotency-key']
  if (typeof header !== 'string' || !isIdempotent(route)) {
    if (!route.raw) release(bytes)
    const result = await withTimeout(
      audit.run(() => route.handle(input(noMemo))),
      route,
      call,
      log,
    )
    if (route.method === 'DELETE') await idempotency.forgetResource(deletedBy(route, call.params))
    if (route.document) return presentDocument(route, result as object, call.headers['if-none-match'])
    if (route.download === undefined) return call.unwritten ? presentUnwritten(route, result) : present(route, result, recipient)
    return presentDownload(result, call.headers.range, headerText(call.headers['if-range']))
  }
  const outcome = await idempotency.begin({
    key: readIdempotencyKey(header),
    caller: call.caller,
    method: route.method,
    path: canonicalPath(route, call.params),
    search: call.search,
    body: comparedBody(route, bytes, body),
    identity_id: route.path.startsWith('/identities/:id') ? (call.params['id'] ?? null) : null,
    secret: route.secret ?? false,
  })
  if (!route.raw) release(bytes)
  if ('status' in outcome) return replayed(outcome, call.requestId)
  if ('memo' in outcome) {
    if (!route.again) throw new Error(`${route.path} stored a memo, but declares no way to answer from it`)
    const repeat = route.again
    const again = audit.repeat(() => repeat(input(noMemo), outcome.memo)).catch(toAnswerGone)
    const answer = await present(route, await withTimeout(again, route, call, log), recipient)
    return { ...answer, headers: { ...answer.headers, ...replayedHeader } }
  }
  const run = (): Promise<unknown> => audit.run(() => route.handle(input((tx, memo) => outcome.remember(tx, memo))))
  return await withTimeout(settle(outcome, recipient, route, run, log), route, call, log)
}

/** The bytes of a body that tell a repetition from another call. */
function comparedBody({ uncompared }: AnyRoute, bytes: Buffer, body: unknown): Buffer {
  if (uncompared === undefined) return bytes
  return Buffer.from(JSON.stringify({ ...(body as object), [uncompared]: undefined }))
}

/** The body as a stream, at whose end the caller is checked again. */
function uploadOf(call: Call): Upload {
  const { octets, length } = call.receive()
  return { octets: followed(octets, () => call.requireStillValid()), length }
}

async function* followed(octets: AsyncIterable<Buffer>, end: () => Promise<void>): AsyncGenerator<Buffer> {
  yield* octets
  await end()
}

type HandlerInput = Parameters<AnyRoute['handle']>[0]

const noMemo: HandlerInput['remember'] = async () => undefined

const replayedHeader = { 'Idempotency-Replayed': 'true' }

/** The input of a handler: what few handlers need is made when they ask for it. */
class CallInput implements HandlerInput {
  readonly params: HandlerInput['params']
  readonly query: never
  readonly body: never
  readonly caller: Caller
  readonly raw: HandlerInput['raw']
  readonly upload: Upload
  readonly request_id: string
  readonly turn: HandlerInput['turn']
  readonly remember: HandlerInput['remember']
  readonly #call: Call

  constructor(
    call: Call,
    given: { query: unknown; body: unknown } & Pick<HandlerInput, 'raw' | 'upload'>,
    remember: HandlerInput['remember'],
  ) {
    this.params = call.params
    this.query = given.query as never
    this.body = given.body as never
    this.caller = call.caller
    this.raw = given.raw
    this.upload = given.upload
    this.request_id = call.requestId
    this.turn = () => call.turnAgain()
    this.remember = remember
    this.#call = call
  }

  get host(): string {
    return hostOf(this.#call.headers.host)
  }

  get signal(): AbortSignal {
    return this.#call.abort.signal
  }
}

const noSubject = { identity_id: null, resource_id: null, memo: null }

/** Converts not_found to the fault that the result of the first call no longer exists. */
function toAnswerGone(error: unknown): never {
  throw error instanceof Fault && error.type === 'not_found' ? answerGone() : error
}

/** The last id in the path of a DELETE. */
function deletedBy({ path }: AnyRoute, params: Record<string, string>): string {
  return params[/:(\w+)$/.exec(path)?.[1] ?? ''] ?? ''
}

/** Runs until the handler settles, even when the caller has gone: only then the result for the key is known. */
async function settle(
  attempt: Attempt,
  recipient: Parameters<typeof present>[2],
  route: AnyRoute,
  run: () => Promise<unknown>,
  log: Log,
): Promise<Answer> {
  const keep = async (write: () => Promise<void>): Promise<void> => {
    try {
      await write()
    } catch (error) {
      // the change of the handler stays; only the stored response is lost, and a repetition is told that the call was interrupted
      log.error({ err: error }, 'idempotent response could not be stored')
    }
  }
  try {
    const result = await attempt.run(run)
    const answer = await present(route, result, recipient)
    const { id = null, identity_id = null } = result as { id?: string; identity_id?: string | null }
    const body = route.again ? '' : textOf(answer)
    const about = { identity_id: route.path === '/identities' ? id : identity_id, resource_id: id, memo: route.again ? id : null }
    await keep(() => attempt.keep({ status: answer.status, location: answer.headers.Location ?? null, body, ...about }))
    return answer
  } catch (error) {
    const problem = problemOf(error)
    await keep(() =>
      isUnsure(error)
        ? attempt.interrupt()
        : releases(error)
          ? attempt.release()
          : attempt.keep({ status: problem.status, location: null, body: JSON.stringify(problem), ...noSubject }),
    )
    throw error
  }
}

function replayed(kept: { status: number; location: string | null; body: string }, requestId: string): Answer {
  const headers = { ...replayedHeader, ...(kept.location === null ? {} : { Location: kept.location }) }
  const body = kept.status < 400 ? kept.body : errorBody(JSON.parse(kept.body) as Problem, requestId)
  return jsonAnswer(kept.status, body, headers)
}

/** Rejects after the timeout and aborts the signal of the handler; a later error of the handler is only logged. */
function withTimeout<T>(work: Promise<T>, route: AnyRoute, { abort, working }: Call, log: Log): Promise<T> {
  working(work)
  return new Promise((resolve, reject) => {
    let late = false
    const timer = setTimeout(() => {
      late = true
      abort.abort('late')
      reject(new Fault('internal_error', 'The request timed out.', { code: 'timeout', retryAfter: 1 }))
    }, route.timeout ?? defaultTimeout)
    const finish = (result: T): void => {
      clearTimeout(timer)
      resolve(result)
    }
    work.then(finish, (error: unknown) => {
      clearTimeout(timer)
      if (late) log.warn({ err: error, route: route.path }, 'handler failed after its timeout')
      reject(error)
    })
  })
}

/** The path for idempotency, the same for all aliases of a route. */
function canonicalPath(route: AnyRoute, params: Record<string, string>): string {
  return route.path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
}

/** RFC 9110 7.2: the name of the `Host` field. */
function hostOf(host = ''): string {
  return host.toLowerCase().replace(/:\d*$/, '')
}

function headerText(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
