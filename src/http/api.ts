import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { performance } from 'node:perf_hooks'
import { Readable } from 'node:stream'
import Koa, { type Context } from 'koa'
import { Fault, storageFull } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import { WorkLimiter, type WorkShare } from '../net/work-limiter.ts'
import { networkOf, networksOf, Networks } from '../net/networks.ts'
import { admitNetwork } from '../net/reading-turns.ts'
import { Admission, type AdmissionRequest, type AdmissionResult, type Admitting } from './admission.ts'
import { jsonAnswer, UnreadAnswers } from './answer/answer.ts'
import { recordRefusal } from './audit.ts'
import { addressOf, admissionRequestOf } from './server/client-address.ts'
import { bodyMemory, bodyOf } from './body.ts'
import { CallTurns } from './server/call-turns.ts'
import { writeCookie } from './cookie.ts'
import { foreignPage } from './csrf.ts'
import { corsHeaders, preflight, allowAnyOrigin } from './server/cors.ts'
import { Manual, noSuchPage } from './manual/manual.ts'
import { docsPage, docsPaths } from './openapi/docs-page.ts'
import { dispatcher, type Handler } from './server/dispatch.ts'
import { endOfIteration } from './server/iteration.ts'
import { type Call, handleCall } from './endpoint.ts'
import { CallMetrics } from './server/metrics.ts'
import { checkRequest } from './request-checks.ts'
import { CallAbort, toClientError } from './server/call-abort.ts'
import { answerProbe } from './server/health.ts'
import { AccessLog } from './server/access-log.ts'
import { openapiRoute } from './openapi/openapi.ts'
import { errorBody, problemHeaders, problemOf } from './problem.ts'
import { handleExchange, type ProtocolEndpoint } from './protocol.ts'
import { RateExchange } from './rate-exchange.ts'
import { rateLimitHeaders, type RateLimitState, tooMany } from './rate.ts'
import { type Answer, type RoutePath, routePaths, stores } from './route.ts'
import type { ApiDeps, ApiSettings } from './types.ts'
import { readTarget } from './target.ts'
import { Upgrades } from './server/upgrades.ts'

interface State {
  requestId: string
  /** The start, by `performance.now()`. */
  began: number
  abort: CallAbort
  connection: IncomingMessage['socket']
  arrival: AdmissionRequest
  route: string
  search: string
  keyId: string | null
  sessionId: string | null
  rateLimit: RateLimitState | undefined
  counted: boolean
  /** The challenge of a 401; the usual one by default. */
  challenge: (() => string) | undefined
  /** Of the log line. */
  more: Readonly<Record<string, unknown>> | undefined
}

type ApiContext = Context & { state: State }
type Params = Record<string, string>

/** Handles all requests of the API. Only this file uses Koa. */
export class Api {
  readonly handler: RequestListener
  /** The handler of the control socket. */
  readonly operatorHandler: RequestListener
  readonly upgrades: Upgrades
  /** Where several boxes have the same rate limits. */
  readonly rates: RateExchange | undefined
  readonly #deps: ApiDeps
  readonly #admission: Admission
  readonly #accessLog: AccessLog
  readonly #metrics: CallMetrics
  readonly #calls = new Set<CallAbort>()
  readonly #bodies = new WorkLimiter(bodyMemory)
  readonly #turns = new CallTurns()
  readonly #unread = new UnreadAnswers()
  readonly #operators = new WeakSet<IncomingMessage>()
  #settings: ApiSettings
  #trusted: Networks
  #closing = false

  constructor(deps: ApiDeps, settings: ApiSettings) {
    this.#deps = deps
    this.#settings = settings
    this.#trusted = new Networks(settings.trusted_proxies)
    this.#admission = new Admission({ ...deps, origins: () => this.#origins() }, settings, deps.clock)
    if (deps.database.several) this.rates = new RateExchange({ ...deps, policies: this.#admission.policies })
    this.#accessLog = new AccessLog(deps.log, deps.metrics)
    this.#metrics = new CallMetrics({ ...deps, underWay: () => this.#calls.size, waiting: () => this.#turns.size })
    const handler = this.#handler()
    this.handler = handler
    this.operatorHandler = (request, response) => {
      this.#operators.add(request)
      handler(request, response)
    }
    this.upgrades = new Upgrades(deps.upgrades ?? [], {
      accessLog: this.#accessLog,
      log: deps.log,
      headers: () => this.#settings.headers,
      origins: () => this.#origins(),
      address: (request) => addressOf(request, this.#trusted),
      count: (address) => this.#admission.count(address),
    })
  }

  reload(settings: ApiSettings): void {
    this.#trusted = new Networks(settings.trusted_proxies)
    this.#settings = settings
    this.#admission.reload(settings)
  }

  /** From now on every response closes its connection, waits end at once, and WebSockets are closed. */
  close(): void {
    this.#closing = true
    this.upgrades.close()
    for (const abort of this.#calls) abort.abort('stopping')
  }

  /** Counts a malformed request against its address. */
  count(address: string): RateLimitState | undefined {
    return this.#admission.count(address)
  }

  #handler(): RequestListener {
    const koa = new Koa<State>()
    koa.silent = true
    koa.on('error', (error: unknown) => this.#deps.log.debug({ err: error }, 'response could not be sent'))
    const find = dispatcher(this.#handlers())
    const answer = (context: ApiContext): Promise<void> => {
      const found = find(context.req.method ?? '', context.path)
      return found ? found.handler.answer(context, found.params) : this.#page(context)
    }
    koa.use((context) => this.#handle(context, answer))
    const callback = koa.callback()
    return (request, response) => void callback(request, response)
  }

  #handlers(): Handler<ApiContext>[] {
    const { routes, version, public_url: publicUrl } = this.#deps
    const openapi = openapiRoute(routes, { version, publicUrl })
    const calls = routePaths([...routes, openapi]).map((spelling) => ({
      ...spelling,
      answer: (context: ApiContext, params: Params) => this.#call(context, params, spelling),
    }))
    const manual = new Manual()
    const document = (path: string, answerOf: (path: string) => Promise<Answer>): Handler<ApiContext> => ({
      method: 'GET',
      path,
      answer: async (context) => {
        context.state.route = '/docs'
        await this.#admit(context.state, { scope: 'public', rate: 'document' })
        send(context, await answerOf(path))
      },
    })
    const exchanges = (this.#deps.endpoints ?? []).map((endpoint) => ({
      ...endpoint,
      answer: (context: ApiContext, params: Params) => this.#exchange(context, params, endpoint),
    }))
    return [
      ...calls,
      ...docsPaths.map((path) => document(path, docsPage)),
      ...manual.paths.map((path) => document(path, (one) => manual.answer(one))),
      ...exchanges,
    ]
  }

  async #call(context: ApiContext, params: Params, { path, route }: RoutePath): Promise<void> {
    const { state, req: request } = context
    if (request.method === 'HEAD' && route.effect) throw await this.#unknown(state, context.path)
    state.route = path
    if (route.document) allowAnyOrigin(context.res)
    const { caller } = await this.#admit(state, route, (refused, fault) =>
      recordRefusal(route, { caller: refused, params }, fault, this.#deps),
    )
    if (stores(route) && !this.#deps.hasSpace()) throw storageFull()
    const { call, done, holder } = this.#prepared(context, params, caller, route)
    const answer = await handleCall(route, call, this.#deps).finally(done)
    if (answer.cookie)
      context.set('Set-Cookie', writeCookie(answer.cookie, this.#deps.origin(), this.#settings.session_same_site))
    // a document is in memory once for all callers
    if (!route.document) this.#countUnread(context, holder, answer)
    send(context, answer)
  }

  async #exchange(context: ApiContext, params: Params, endpoint: ProtocolEndpoint): Promise<void> {
    const { state } = context
    state.route = endpoint.path
    state.challenge = endpoint.challenge
    const { caller } = await this.#admit(state, endpoint)
    const foreign = endpoint.ownPages ? foreignPage(context.req.headers, this.#origins()) : undefined
    if (foreign) throw foreign
    const signedIn = (): Promise<Caller | undefined> => this.#admission.signedIn(state.arrival)
    const countFurther = (): void => {
      state.rateLimit = this.#admission.countFurther(state.arrival, caller)
      if (state.rateLimit && state.rateLimit.retryAfter > 0) throw tooMany(state.rateLimit)
    }
    const { call, done, holder } = this.#prepared(context, params, caller, endpoint)
    const answer = await handleExchange(endpoint, call, { ...this.#deps, signedIn, countFurther }).finally(done)
    this.#countUnread(context, holder, answer)
    send(context, answer)
  }

  /** The call of an admitted request, and what releases the memory of its body once it was handled. */
  #prepared(
    context: ApiContext,
    params: Params,
    caller: Caller,
    route: Admitting & { raw?: boolean },
  ): { call: Call; done: () => void; holder: string } {
    const { state, req: request } = context
    const { requestId, search, abort } = state
    const holder = caller.account_id || networkOf(caller.ip)
    const account = caller.account_id || networksOf(caller.ip).at(-1)!
    const requireRead = (): void => this.#unread.require(holder)
    const turn = (): Promise<void> | undefined => {
      const waiting = this.#turns.take(account, abort)
      if (waiting) return waiting.then(requireRead)
      requireRead()
      return undefined
    }
    const turnAgain = (): Promise<void> => this.#turns.again(account, abort).then(requireRead)
    let share: WorkShare | undefined
    // what the body stays in memory for
    const uses: Promise<unknown>[] = []
    const shareOf = (): WorkShare => {
      if (!context.res.closed) uses.push(new Promise((resolve) => void context.res.once('close', resolve)))
      return (share = this.#bodies.share(holder))
    }
    const body = bodyOf(context, { shareOf, abort, raw: route.raw })
    const working = (work: Promise<unknown>): void => void uses.push(work)
    const requireStillValid = (): Promise<void> => this.#admission.requireStillValid(state.arrival, caller, route)
    const checks = { turn, turnAgain, requireRead, requireStillValid }
    const keepOfBody = (bytes: number): void => share?.keep(bytes)
    const addToLog = (fields: State['more']): void => void (state.more = fields)
    const given = { params, headers: request.headers, working, keepOfBody, addToLog }
    const call = { requestId, search, abort, caller, ...given, ...checks, ...body }
    const done = (): void => {
      share?.end()
      if (share) void Promise.allSettled(uses).then(share.release)
    }
    return { call, done, holder }
  }

  #countUnread(context: Context, holder: string, { body }: Answer): void {
    if (!Buffer.isBuffer(body) || context.res.closed) return
    context.res.once(
      'close',
      this.#unread.add(holder, body.length, () => context.res.destroy()),
    )
  }

  async #page(context: ApiContext): Promise<void> {
    const { path, req: request, state } = context
    const page =
      request.method === 'GET' || request.method === 'HEAD' ? this.#deps.site?.answer(path, request.headers) : undefined
    if (!page) return
    state.route = 'page'
    await this.#admit(state, { scope: 'public', rate: 'document' })
    send(context, await page)
  }

  /** Origins whose pages may use a session and open sockets. */
  #origins(): string[] {
    return [this.#deps.origin(), ...this.#settings.cors_origins]
  }

  /** The outermost middleware: headers, errors, rate limits and the access log of every request. */
  async #handle(context: ApiContext, route: (context: ApiContext) => Promise<void>): Promise<void> {
    const { req: request, res: response } = context
    const abort = new CallAbort()
    const state = this.#stateOf(context, abort)
    context.state = state
    this.#calls.add(abort)
    let streams = false
    response.once('close', () => {
      this.#calls.delete(abort)
      if (!response.writableFinished) abort.abort('gone')
      if (streams) this.#note(context)
    })
    if (this.#closing) abort.abort('stopping')
    setHeaders(response, this.#settings.headers)
    response.setHeader('X-Request-Id', state.requestId)
    try {
      setHeaders(response, corsHeaders(request, this.#settings.cors_origins))
      const answer = this.#withoutRoute(context)
      if (answer) send(context, await answer)
      else await route(context)
      if (context.status === 404 && context.body === undefined) throw await this.#unknown(state, context.path)
    } catch (error) {
      this.#fail(context, error)
    }
    if (state.rateLimit) setHeaders(response, rateLimitHeaders(state.rateLimit))
    if (this.#closing) response.setHeader('Connection', 'close')
    // what is streamed is still being made
    streams = context.body instanceof Readable && !response.closed
    if (streams) return
    this.#note(context)
    await endOfIteration()
  }

  #note({ req: request, status, state }: ApiContext): void {
    const { abort } = state
    this.#accessLog.note({
      request_id: state.requestId,
      method: request.method ?? '',
      route: state.route,
      status: abort.cut === 'gone' ? 499 : status,
      began: state.began,
      key_id: state.keyId,
      session_id: state.sessionId,
      address: state.arrival.address,
      cut: abort.cut,
      more: state.more,
    })
  }

  #stateOf({ req: request }: Context, abort: CallAbort): State {
    return {
      requestId: newId('req'),
      began: performance.now(),
      abort,
      connection: request.socket,
      arrival: admissionRequestOf(request, this.#trusted, this.#operators.has(request)),
      route: 'unknown',
      search: '',
      keyId: null,
      sessionId: null,
      rateLimit: undefined,
      counted: false,
      challenge: undefined,
      more: undefined,
    }
  }

  /** Answers requests without a route: health checks, metrics and preflights. Refuses ambiguous requests. */
  #withoutRoute({ req: request, res: response, state }: ApiContext): Promise<Answer> | Answer | undefined {
    try {
      checkRequest(request)
    } catch (error) {
      // what follows chunks of HTTP/1.0 is not a request to all (RFC 9112 6.1)
      if (request.httpVersion === '1.0') response.shouldKeepAlive = false
      throw error
    }
    const { path, search } = readTarget(request.url ?? '')
    state.search = search
    const answer = answerProbe(path, request, { ...this.#deps, token: this.#settings.metrics_token })
    const permission = answer ? undefined : preflight(request, this.#settings.cors_origins)
    if (!answer && !permission) return undefined
    state.route = answer ? path : 'preflight'
    state.counted = true
    return answer ?? jsonAnswer(204, '', permission)
  }

  async #admit(
    state: State,
    route: Admitting | undefined,
    refused?: (caller: Caller, fault: Fault) => void,
  ): Promise<AdmissionResult> {
    const verdict = await this.#admission.admit(state.arrival, route)
    state.counted = true
    state.rateLimit = verdict.rateLimit
    state.keyId = verdict.caller.key_id
    state.sessionId = verdict.caller.session_id
    if (verdict.fault) {
      refused?.(verdict.caller, verdict.fault)
      throw verdict.fault
    }
    const { account_id } = verdict.caller
    if (account_id !== '') admitNetwork(networkOf(state.connection.remoteAddress ?? ''), account_id)
    return verdict
  }

  async #unknown(state: State, path: string): Promise<Fault> {
    await this.#admit(state, undefined)
    const message = path.startsWith('/docs/')
      ? noSuchPage
      : 'Unknown path or method. All calls are listed at /docs/api.md, the commonest at /llms.txt.'
    return new Fault('not_found', message, { code: 'unknown_path' })
  }

  #fail(context: ApiContext, thrown: unknown): void {
    const { state } = context
    if (!state.counted) state.rateLimit = this.#admission.count(state.arrival.address)
    const error = toClientError(thrown, state.abort)
    const problem = problemOf(error)
    this.#metrics.failed(problem.code, state.rateLimit)
    if (problem.status >= 500 && state.abort.cut !== 'gone') {
      const line = { request_id: state.requestId, route: state.route, err: error }
      if (state.abort.cut === 'stopping') this.#deps.log.info(line, 'request was ended by the stop of the box')
      else this.#deps.log.error(line, 'request failed with an internal error')
    }
    send(
      context,
      jsonAnswer(problem.status, errorBody(problem, state.requestId), problemHeaders(error, problem.status, state.challenge)),
    )
  }
}

function setHeaders(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  for (const name in headers) response.setHeader(name, headers[name]!)
}

function send(context: Context, answer: Answer): void {
  const { res: response } = context
  context.status = answer.status
  setHeaders(response, answer.headers)
  if (answer.status === 204 || answer.status === 304) return
  response.setHeader('Content-Type', answer.type)
  const { body } = answer
  // a stream that fails must break the connection, so that a truncated response does not look complete
  if (body instanceof Readable) body.once('error', () => response.destroy())
  // TLS encrypts what it is given at once, for each connection: a long answer is given in pieces
  if (Buffer.isBuffer(body) && body.length > piece && context.secure) {
    context.body = Readable.from(piecesOf(body), { objectMode: false })
    context.length = body.length
  } else context.body = body
}

/** Bytes of an answer that are given to TLS at once. */
const piece = 64 * 1024

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += piece) yield body.subarray(at, at + piece)
}
