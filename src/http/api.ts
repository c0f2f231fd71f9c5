import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { performance } from 'node:perf_hooks'
import { Readable } from 'node:stream'
import Koa, { type Context } from 'koa'
import { Fault, storageFull } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import { networkOf, networksOf, Networks } from '../net/networks.ts'
import { Admission, type AdmissionRequest, type AdmissionResult, type Admitting } from './admission.ts'
import { jsonAnswer, UnreadAnswers } from './answer.ts'
import type { Answer } from './response.ts'
import { addressOf, arrivalOf } from './server/client-address.ts'
import { BodyMemory } from './body-memory.ts'
import { bodyOf, hangUpUnread } from './body.ts'
import { CallTurns } from './server/call-turns.ts'
import { writeCookie } from './cookie.ts'
import { corsHeaders, preflight, share } from './server/cors.ts'
import { docsPaths, serveDocs } from './openapi/docs-page.ts'
import { dispatcher, type Handler, type RouterContext } from './server/dispatch.ts'
import { answerCall } from './endpoint.ts'
import { CallMetrics } from './server/metrics.ts'
import { checkRequest } from './request-checks.ts'
import { CallAbort, toClientError } from './server/call-abort.ts'
import { inspect } from './server/health.ts'
import { AccessLog } from './server/access-log.ts'
import { openapiRoute } from './openapi/openapi-route.ts'
import { errorBody, problemHeaders, problemOf } from './problem.ts'
import { rateHeaders, type RateLimitState } from './rate.ts'
import { type Spelling, spellings, stores } from './route.ts'
import type { ApiDeps, ApiSettings } from './types.ts'
import { readTarget } from './target.ts'
import { Upgrades } from './server/upgrades.ts'

/** What is known of a request while it is answered. */
interface State {
  requestId: string
  /** As of `performance.now()`. */
  began: number
  hand: CallAbort
  arrival: AdmissionRequest
  route: string
  search: string
  keyId: string | null
  sessionId: string | null
  standing: RateLimitState | undefined
  counted: boolean
}

type Conversation = Context & { state: State }
type Matched = RouterContext<State>

/** Every call from its first header to its last: the one file that knows Koa. */
export class Api {
  readonly handler: RequestListener
  /** The same for those who come by the box's own socket. */
  readonly inPerson: RequestListener
  readonly upgrades: Upgrades
  readonly #parts: ApiDeps
  readonly #admission: Admission
  readonly #journal: AccessLog
  readonly #figures: CallMetrics
  readonly #hands = new Set<CallAbort>()
  readonly #bodies = new BodyMemory()
  readonly #turns = new CallTurns()
  readonly #unread = new UnreadAnswers()
  readonly #operators = new WeakSet<IncomingMessage>()
  #settings: ApiSettings
  #trusted: Networks
  #closing = false

  constructor(parts: ApiDeps, settings: ApiSettings) {
    this.#parts = parts
    this.#settings = settings
    this.#trusted = new Networks(settings.trusted_proxies)
    this.#admission = new Admission({ ...parts, origins: () => this.#origins() }, settings, parts.clock)
    this.#journal = new AccessLog(parts.log, parts.metrics)
    this.#figures = new CallMetrics({ ...parts, underWay: () => this.#hands.size, waiting: () => this.#turns.size })
    const handler = this.#handler()
    this.handler = handler
    this.inPerson = (request, response) => {
      this.#operators.add(request)
      handler(request, response)
    }
    this.upgrades = new Upgrades(parts.upgrades ?? [], {
      journal: this.#journal,
      log: parts.log,
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

  /** From now on every answer closes its connection, waits end at once and sockets hear goodbye. */
  close(): void {
    this.#closing = true
    this.upgrades.close()
    for (const hand of this.#hands) hand.abort('stopping')
  }

  /** Counts what never became a call against the address it came from. */
  count(address: string): RateLimitState | undefined {
    return this.#admission.count(address)
  }

  /** Forgets idempotent answers older than 24 h; answers how many. */
  sweep(): Promise<number> {
    return this.#parts.idempotency.sweep()
  }

  #handler(): RequestListener {
    const koa = new Koa<State>()
    koa.silent = true
    koa.on('error', (error: unknown) => this.#parts.log.debug({ err: error }, 'an answer could not be sent'))
    koa.use((context, next) => this.#converse(context, next))
    const find = dispatcher(this.#destinations())
    koa.use((context, next) => find(context.path)?.(context as Matched, next) ?? next())
    koa.use((context) => this.#page(context))
    const callback = koa.callback()
    return (request, response) => void callback(request, response)
  }

  #destinations(): Handler<State>[] {
    const { routes, version, public_url: publicUrl } = this.#parts
    const described = openapiRoute(routes, { version, publicUrl })
    const calls = spellings([...routes, described]).map((spelling) => ({
      ...spelling,
      answer: (context: Matched) => this.#call(context, spelling),
    }))
    const documents = docsPaths.map((path) => ({
      method: 'GET',
      path,
      answer: async (context: Matched) => {
        context.state.route = '/docs'
        await this.#admit(context.state, { scope: 'public', rate: 'document' })
        await serveDocs(context)
      },
    }))
    return [...calls, ...documents]
  }

  async #call(context: Matched, { path, route }: Spelling): Promise<void> {
    const { state, params, req: request } = context
    if (request.method === 'HEAD' && route.effect) throw await this.#unknown(state)
    state.route = path
    if (route.document) share(context.res)
    const { caller } = await this.#admit(state, route)
    if (stores(route) && !this.#parts.roomy()) throw storageFull()
    const { requestId, search, hand } = state
    const holder = caller.account_id || networkOf(caller.ip)
    const turn = (): Promise<void> | undefined => {
      const waiting = this.#turns.take(caller.account_id || networksOf(caller.ip).at(-1)!, hand)
      if (waiting) return waiting.then(() => this.#unread.require(holder))
      this.#unread.require(holder)
      return undefined
    }
    const room = this.#bodies.share(holder)
    const body = bodyOf(context, room, route.raw)
    const requireStill = (): Promise<void> => this.#admission.requireStill(state.arrival, caller)
    const call = { requestId, search, hand, caller, params, headers: request.headers, turn, requireStill, ...body }
    const answer = await answerCall(route, call, this.#parts.idempotency, this.#parts.log).finally(() => room.end())
    if (answer.cookie)
      context.set('Set-Cookie', writeCookie(answer.cookie, this.#parts.origin(), this.#settings.session_same_site))
    // a document is in memory once for everybody
    if (Buffer.isBuffer(answer.body) && !route.document && hand.cut !== 'gone') {
      context.res.once(
        'close',
        this.#unread.hold(holder, answer.body.length, () => context.res.destroy()),
      )
    }
    send(context, answer)
  }

  async #page(context: Conversation): Promise<void> {
    const { path, req: request, state } = context
    const page =
      request.method === 'GET' || request.method === 'HEAD' ? this.#parts.site?.answer(path, request.headers) : undefined
    if (!page) return
    state.route = 'page'
    await this.#admit(state, { scope: 'public', rate: 'document' })
    send(context, await page)
  }

  /** Whose pages may act with a session, and open sockets. */
  #origins(): string[] {
    return [this.#parts.origin(), ...this.#settings.cors_origins]
  }

  /** Around everything: what every request gets, whatever becomes of it. */
  async #converse(context: Conversation, next: () => Promise<void>): Promise<void> {
    const { req: request, res: response } = context
    const hand = new CallAbort()
    const state = this.#stateOf(context, hand)
    context.state = state
    this.#hands.add(hand)
    response.once('close', () => {
      this.#hands.delete(hand)
      if (!response.writableFinished) hand.abort('gone')
    })
    if (this.#closing) hand.abort('stopping')
    setHeaders(response, this.#settings.headers)
    response.setHeader('X-Request-Id', state.requestId)
    try {
      setHeaders(response, corsHeaders(request, this.#settings.cors_origins))
      const answer = this.#aside(context)
      if (answer) send(context, await answer)
      else await next()
      if (context.status === 404 && context.body === undefined) throw await this.#unknown(state)
    } catch (error) {
      this.#fail(context, error)
    }
    if (state.standing) setHeaders(response, rateHeaders(state.standing))
    if (this.#closing) response.setHeader('Connection', 'close')
    this.#journal.note({
      request_id: state.requestId,
      method: request.method ?? '',
      route: state.route,
      status: hand.cut === 'gone' ? 499 : context.status,
      began: state.began,
      key_id: state.keyId,
      session_id: state.sessionId,
      address: state.arrival.address,
      cut: hand.cut,
    })
  }

  #stateOf({ req: request }: Context, hand: CallAbort): State {
    return {
      requestId: newId('req'),
      began: performance.now(),
      hand,
      arrival: arrivalOf(request, this.#trusted, this.#operators.has(request)),
      route: 'unknown',
      search: '',
      keyId: null,
      sessionId: null,
      standing: undefined,
      counted: false,
    }
  }

  /** What is answered without a route: the watchers' questions and preflights. Refuses what could mean two things. */
  #aside({ req: request, state }: Conversation): Promise<Answer> | Answer | undefined {
    checkRequest(request)
    const { path, search } = readTarget(request.url ?? '')
    state.search = search
    const answer = inspect(path, request, { ...this.#parts, token: this.#settings.metrics_token })
    const permission = answer ? undefined : preflight(request, this.#settings.cors_origins)
    if (!answer && !permission) return undefined
    state.route = answer ? path : 'preflight'
    state.counted = true
    return answer ?? jsonAnswer(204, '', permission)
  }

  async #admit(state: State, route: Admitting | undefined): Promise<AdmissionResult> {
    const verdict = await this.#admission.admit(state.arrival, route)
    state.counted = true
    state.standing = verdict.standing
    state.keyId = verdict.caller.key_id
    state.sessionId = verdict.caller.session_id
    if (verdict.fault) throw verdict.fault
    return verdict
  }

  async #unknown(state: State): Promise<Fault> {
    await this.#admit(state, undefined)
    return new Fault('not_found', 'There is no such call: the path or the method is unknown.', { code: 'unknown_path' })
  }

  #fail(context: Conversation, thrown: unknown): void {
    const { state } = context
    if (!state.counted) state.standing = this.#admission.count(state.arrival.address)
    if (!context.req.complete) hangUpUnread(context.req, context.res)
    const error = toClientError(thrown, state.hand)
    const problem = problemOf(error)
    this.#figures.failed(problem.code, state.standing)
    if (problem.status >= 500 && state.hand.cut !== 'gone') {
      this.#parts.log.error({ request_id: state.requestId, route: state.route, err: error }, 'a request failed on our side')
    }
    send(context, jsonAnswer(problem.status, errorBody(problem, state.requestId), problemHeaders(error, problem.status)))
  }
}

function setHeaders(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
}

function send(context: Context, answer: Answer): void {
  const { res: response } = context
  context.status = answer.status
  setHeaders(response, answer.headers)
  if (answer.status === 204 || answer.status === 304) return
  response.setHeader('Content-Type', answer.type)
  const { body } = answer
  // A source that fails half-way must break the connection: an answer cut short must not look whole.
  if (body instanceof Readable) body.once('error', () => response.destroy())
  context.body = body
}
