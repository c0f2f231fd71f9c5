import type { IncomingHttpHeaders } from 'node:http'
import { storageFull } from '../core/fault.ts'
import { isLong, writeLongJson } from '../core/long-json.ts'
import { longWork } from '../core/work/long-work.ts'
import type { Caller } from '../core/scopes.ts'
import { type Admitting, refusalOf } from './admission.ts'
import { recordRefusal } from './audit.ts'
import type { Body } from './body.ts'
import { type Call, type CallDeps, handleCall } from './endpoint.ts'
import { parseInTurns } from './large-json.ts'
import { type Answer, type AnyRoute, maxBodyBytes, stores } from './route.ts'

/** A path that speaks a protocol of its own. Its requests are admitted, limited and logged as calls are; its answers are its own. */
export interface ProtocolEndpoint extends Admitting {
  method: 'GET' | 'POST' | 'DELETE'
  /** The whole path. */
  path: string
  /** Largest request body in bytes; that of a call by default. */
  limit?: number
  /** The body is not JSON. */
  raw?: boolean
  /** How the audit log names the client of calls that are made through it. */
  client?: string
  /** Pages of other origins are refused. */
  ownPages?: boolean
  /** The challenge of a 401 (RFC 9110 11.6.1); the realm alone by default. */
  challenge?: () => string
  answer(exchange: Exchange): Promise<Answer>
}

/** An admitted request of a protocol. */
export interface Exchange {
  caller: Caller
  requestId: string
  search: string
  headers: IncomingHttpHeaders
  /** The person who is signed in, where a session is not required. */
  signedIn(): Promise<Caller | undefined>
  /** Aborts when the client disconnects, or the box stops. */
  readonly signal: AbortSignal
  /** Reads the body, then waits for the turn of its account. Returns its JSON, or its bytes if the endpoint is `raw`. */
  body(): Promise<unknown>
  /** No more than so many bytes of the body are needed from now on. */
  keepOfBody(bytes: number): void
  /** Adds fields to the log line of the request; nothing that was said. */
  addToLog(fields: Readonly<Record<string, unknown>>): void
  /** Throws Fault unless the caller may make this call. */
  requireAllowed(route: AnyRoute): void
  /** Makes a call of the API for the same caller, as part of this request: the rate limits count the request as the first call, and each further one. */
  call(route: AnyRoute, given: GivenCall): Promise<Answer>
}

/** A call of the API that is made within the box. */
export interface GivenCall {
  params?: Record<string, string>
  query?: Record<string, string>
  /** JSON. */
  body?: unknown
  idempotencyKey?: string | undefined
}

interface InnerDeps extends CallDeps {
  hasSpace: () => boolean
  /** The account of the operator. */
  operator: string
  signedIn: () => Promise<Caller | undefined>
  /** Counts a further call of the caller. Throws Fault rate_limited when no more is left. */
  countFurther: () => void
}

export function handleExchange(endpoint: ProtocolEndpoint, call: Call, deps: InnerDeps): Promise<Answer> {
  const { caller, requestId, search, headers, abort } = call
  const refusal = (route: AnyRoute) => refusalOf(caller, route, deps.operator)
  let made = 0
  return endpoint.answer({
    caller,
    requestId,
    search,
    headers,
    signedIn: deps.signedIn,
    get signal() {
      return abort.signal
    },
    body: async () => {
      const { bytes, scan } = await call.read(maxBodyBytes(endpoint))
      const turn = call.turn()
      if (turn) await turn
      await call.requireStillValid()
      if (endpoint.raw) return bytes
      return scan ? parseInTurns(bytes, scan) : {}
    },
    keepOfBody: (bytes) => call.keepOfBody(bytes),
    addToLog: (fields) => call.addToLog(fields),
    requireAllowed: (route) => {
      const fault = refusal(route)
      if (fault) throw fault
    },
    call: async (route, given) => {
      const inner = await innerCall(call, given, endpoint.client)
      const fault = refusal(route)
      if (fault) {
        recordRefusal(route, inner, fault, deps)
        throw fault
      }
      made += 1
      if (made > 1) {
        deps.countFurther()
        // the key may have been revoked since the call before
        await call.requireStillValid()
      }
      if (stores(route) && !deps.hasSpace()) throw storageFull()
      return handleCall(route, inner, deps)
    },
  })
}

/** The call as part of another, whose turn, memory and connection it shares. */
async function innerCall(
  outer: Call,
  { params = {}, query, body, idempotencyKey }: GivenCall,
  client: string | undefined,
): Promise<Call> {
  const headers: IncomingHttpHeaders = { host: outer.headers.host }
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  // only a repetition is compared by its bytes
  const bytes = idempotencyKey === undefined || body === undefined ? Buffer.alloc(0) : await written(outer, body)
  const read = async (): Promise<Body> => ({ bytes, scan: undefined, parsed: body })
  return {
    ...outer,
    caller: client === undefined ? outer.caller : { client, ...outer.caller },
    params,
    search: query ? new URLSearchParams(query).toString() : '',
    headers,
    turn: () => undefined,
    working: () => undefined,
    keepOfBody: () => undefined,
    read,
    unwritten: true,
  }
}

async function written({ caller }: Call, body: unknown): Promise<Buffer> {
  return isLong(body) ? longWork('write', caller.account_id, () => writeLongJson(body)) : Buffer.from(JSON.stringify(body))
}
