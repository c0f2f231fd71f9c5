import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type * as z from 'zod'
import type { Caller, Scope } from '../core/scopes.ts'
import type { Transaction } from '../store/database.ts'

/** `/identities/:id/emails/:email_id` → `{ id: string; email_id: string }` */
type Params<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { [K in Name]: string } & Params<Rest>
  : Path extends `${string}:${infer Name}`
    ? { [K in Name]: string }
    : Record<never, never>

/** An answer that is not JSON. */
export interface Download {
  type: string
  bytes: Buffer | Readable
  headers?: Record<string, string>
}

/** The session cookie of a browser, kept for so many seconds; an empty value removes it. */
export interface SessionCookie {
  value: string
  seconds: number
}

/** A response: status, body and headers. */
export interface Answer {
  status: number
  type: string
  body: string | Buffer | Readable
  /** The value that the body has as JSON, if it was just made. */
  reply?: unknown
  headers: Record<string, string>
  cookie?: SessionCookie
}

/** A request as received, for signatures that cover its bytes. */
export interface RawRequest {
  bytes: Buffer
  headers: IncomingHttpHeaders
  /** The query as received; empty without one. */
  search: string
}

/** A body that the handler reads as a stream. */
export interface Upload {
  octets: AsyncIterable<Buffer>
  /** Content-Length; undefined without one. */
  length: number | undefined
}

interface Input<P, Q, B> {
  params: P
  query: Q
  body: B
  caller: Caller
  /** The request as received, on a `raw` route; empty on any other. */
  raw: RawRequest
  /** The body as a stream, on an `upload` route; empty on any other. */
  upload: Upload
  /** The host of the Host header, in lower case and without a port; empty without one. */
  host: string
  /** Also in `X-Request-Id` and in the log. */
  request_id: string
  /** Aborts when the client disconnects, the handler times out, or the box stops. */
  signal: AbortSignal
  /** For a handler that continues after a long wait, when many may continue at the same time: resolves at the turn of its account. */
  turn: () => Promise<void>
  /**
   * Stores, in the transaction of a change, the memo from which `again` answers a repetition of this call; both are on disk or neither is. Does
   * nothing for a call without an `Idempotency-Key`.
   */
  remember: (tx: Transaction, memo: string) => Promise<void>
}

/** What the audit log says of a call. */
export interface Audited {
  /** Subject and past participle: `key.created`. */
  action: string
  /** Beside the names of the fields of the body: nothing that a caller or stranger wrote, but the purpose of a reveal. */
  detail?: (body: never, answer: never) => Record<string, unknown>
  /** The id of what it was done to, from the answer; by default the last id of the path, and that of a new resource. */
  target?: (answer: never) => string | null | undefined
  /** It changes nothing, and is recorded as reads are. */
  read?: true
  /** False for the result of a transaction that did not do it. */
  when?: (result: never) => boolean
}

/** The declaration of an endpoint, from which it is served, authorized, validated, documented and tested. */
interface Declaration<Path extends string, Query extends z.ZodType, Body extends z.ZodType, Reply extends z.ZodType> {
  /** Other paths of the same call. */
  aliases?: string[]
  /** The path is not below `/v1`: well-known documents, signed downloads. */
  root?: boolean
  /** Any one of these scopes admits; `public` needs no key. */
  scope: Scope | Scope[] | 'public'
  /** Scopes of which one is needed besides `scope`, for what the call reads or decides. */
  alsoScope?: Scope[]
  /**
   * The fields that a caller who may write but not read sees: these beside `id`, `identity_id`, `status`, `deleted`, `created_at` and
   * `updated_at`, or all; all by default for status 201. Reading scopes are those of `scope` with `read` for `write`.
   */
  receipt?: readonly string[] | 'all'
  /** Only for the account of the operator, with keys that are not bound to an identity. */
  operator?: boolean
  /** Of how the person of a session signs in themselves: allowed to people with any role. */
  own?: boolean
  /** Allowed to the keys of an account that is stopped. */
  whileStopped?: true
  /** Only by the control socket. */
  local?: boolean
  /** Neither query nor body are parsed: the handler gets them as received and authenticates the caller. */
  raw?: boolean
  /** The media type of a body that the handler reads as a stream of any size: the handler limits it and obeys `signal`. */
  upload?: string
  /**
   * The rate limit of a public call: `address` (low) by default, `document` (high), `callback` of a provider (very high), or `sign-in` (lowest).
   */
  rate?: 'address' | 'document' | 'callback' | 'sign-in'
  /** The session cookie to set or remove, from the result of the handler. */
  cookie?: (result: never) => SessionCookie
  /** What the audit log says of this call: the action, or what it says and when. */
  audit?: string | Audited
  /** The method of the client libraries that makes this call: `emails.send`, unique. The libraries are printed from it (`npm run docs`). */
  sdk?: string
  /**
   * The codes of errors that this call has besides those of every call (`openapi/errors.ts`), by status: `{409: ['domain_in_use']}`. A code that
   * is the name of its type is meant with a `param`.
   */
  errors?: Partial<Record<400 | 401 | 403 | 404 | 409 | 429 | 500, readonly string[]>>
  /** The title in the reference, and the operation's name in OpenAPI: unique. */
  summary: string
  description?: string
  query?: Query
  body?: Body
  /** The reply schema: fields it does not name are dropped. Left out for downloads. */
  reply?: Reply
  /** The handler may return the same object to many calls: it is written once, and must not be changed. */
  shared?: true
  /** Public JSON, cacheable for five minutes: CORS `*`, an ETag and 304. Never for data that needs a key. */
  document?: boolean
  /** The media type of a response that is not JSON, a range if what is stored has its own; `handle` then returns a Download. */
  download?: string
  /** 200 by default. */
  status?: 200 | 201
  /** The path of the new resource, for the `Location` header: `/v1/…`. */
  location?: (answer: z.output<Reply>) => string
  /** The response holds a secret: it is never cached, and stored encrypted for idempotency. */
  secret?: boolean
  /** GET has side effects (charges, records, uses up), so HEAD, which the router treats as GET, is refused. */
  effect?: true
  /** True if `Idempotency-Key` is supported; by default on every POST that needs a key. */
  idempotent?: boolean
  /** The field of the body that is not part of what a repetition is compared by: a fast hash of a password would make guessing possible. */
  uncompared?: string
  /** True if a full disk refuses it; by default every POST and PATCH. */
  stores?: boolean
  /** Largest request body in bytes; 1 MiB with a key and 64 KiB without by default. */
  limit?: number
  /** Timeout of the handler in milliseconds; 30 s by default. */
  timeout?: number
  /** An example request for the reference, which a test sends. */
  example?: { body?: unknown; query?: Record<string, string>; headers?: Record<string, string> }
  handle: (input: Input<Params<Path>, z.output<Query>, z.output<Body>>) => Promise<z.input<Reply> | Download>
  /**
   * Answers a repetition from the memo that `remember` stored, else from the id in the first response. The response itself is then not stored, as
   * it may hold data that must not outlive its row.
   */
  again?: (input: Input<Params<Path>, z.output<Query>, z.output<Body>>, memo: string) => Promise<z.input<Reply>>
}

/** An endpoint: a method, a path and what is declared of them. */
interface Route extends Declaration<string, z.ZodType, z.ZodType, z.ZodType> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below `/v1`, e.g. `/identities/:id`. */
  path: string
  /** The section of the reference. */
  tag: string
}

/** A route without its type parameters, for lists. */
export type AnyRoute = Omit<Route, 'handle' | 'again' | 'location'> & {
  handle: (input: Input<Record<string, string>, never, never>) => Promise<unknown>
  again?: (input: Input<Record<string, string>, never, never>, memo: string) => Promise<unknown>
  location?: (answer: never) => string
}

/**
 * Declares the endpoints of a section of the reference: `params` is typed from the path, `query` and `body` from zod, the
 * answer must fit `reply`.
 */
export function routeOf(tag: string) {
  return <
    const Path extends string,
    Query extends z.ZodType = z.ZodType<Record<never, never>>,
    Body extends z.ZodType = z.ZodType<Record<never, never>>,
    Reply extends z.ZodType = z.ZodType,
  >(
    method: Route['method'],
    path: Path,
    declaration: Declaration<Path, Query, Body, Reply>,
  ): AnyRoute => ({ ...declaration, method, path, tag }) as unknown as AnyRoute
}

export interface RoutePath {
  method: AnyRoute['method']
  /** The whole path, `/v1/identities/:id`. */
  path: string
  route: AnyRoute
  alias: boolean
}

/** All paths of all routes; literal segments come before parameters in the same position. */
export function routePaths(routes: readonly AnyRoute[]): RoutePath[] {
  const paths = routes.flatMap((declared) =>
    [declared.path, ...(declared.aliases ?? [])].map((path, index) => ({
      method: declared.method,
      path: declared.root ? path : `/v1${path}`,
      route: declared,
      alias: index > 0,
    })),
  )
  const ranks = new Map(paths.map(({ path }) => [path, rank(path)]))
  return paths.toSorted((one, other) => compare(ranks.get(one.path)!, ranks.get(other.path)!))
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}

/** True if `Idempotency-Key` is supported on this route. */
export function isIdempotent({ idempotent, method, scope, download, upload }: AnyRoute): boolean {
  return idempotent ?? (method === 'POST' && scope !== 'public' && download === undefined && upload === undefined)
}

/** Maximum bytes of the body of a call; lower where it says nothing, and for public routes, whose callers are not authenticated. */
export function maxBodyBytes({ limit, scope, method }: Pick<AnyRoute, 'limit' | 'scope' | 'method'>): number {
  return limit ?? (scope === 'public' || method === 'GET' || method === 'DELETE' ? 64 * 1024 : 1024 * 1024)
}

const receipt = ['id', 'identity_id', 'status', 'deleted', 'created_at', 'updated_at']

type ReceiptOptions = Pick<AnyRoute, 'method' | 'scope' | 'alsoScope' | 'receipt' | 'status'>

/** The scopes of which one shows the full response of a write, and the fields that others see; undefined when all callers see everything. */
export function readersOf({
  method,
  scope,
  alsoScope,
  receipt: declared,
  status,
}: ReceiptOptions): { scopes: Scope[]; fields: readonly string[] } | undefined {
  const shown = declared ?? (status === 201 ? 'all' : [])
  if (method === 'GET' || shown === 'all' || alsoScope) return undefined
  const writing = [scope].flat().filter((one) => one.endsWith(':write'))
  if (writing.length === 0) return undefined
  return { scopes: writing.map((one) => one.replace(/write$/, 'read') as Scope), fields: [...receipt, ...shown] }
}

/**
 * True if a full disk refuses it. DELETE frees space, and a sign-in may precede one: both are allowed as long as the disk can take them, as are
 * calls that cancel or stop something.
 */
export function stores({ method, rate, stores: declared }: Pick<AnyRoute, 'method' | 'rate' | 'stores'>): boolean {
  return declared ?? ((method === 'POST' && rate !== 'sign-in') || method === 'PATCH')
}

/** `0` for a literal segment, `1` for a parameter, so that a comparison puts literals first. */
function rank(path: string): string {
  return path
    .split('/')
    .map((segment) => (segment.startsWith(':') ? '1' : '0'))
    .join('')
}
