import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type * as z from 'zod'
import type { Caller, Scope } from '../core/scopes.ts'
import type { Transaction } from '../store/database.ts'

/** `/identities/:id/emails/:email_id` → `{ id: string; email_id: string }` */
export type Params<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
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

/** The proof that a browser keeps of its session, for so many seconds; an empty one is forgotten. */
export interface SessionCookie {
  value: string
  seconds: number
}

/** A request as it came: for callers whose signatures cover its octets. */
export interface RawRequest {
  bytes: Buffer
  headers: IncomingHttpHeaders
  /** What follows the question mark, as it came; empty without one. */
  search: string
}

/** A body that is not read before the handler runs: it takes the octets as they come. */
export interface Upload {
  octets: AsyncIterable<Buffer>
  /** Octets that the client announced; undefined where it did not say. */
  length: number | undefined
}

export interface Input<P, Q, B> {
  params: P
  query: Q
  body: B
  caller: Caller
  /** The request as it came, on a route that is `raw`; empty on any other. */
  raw: RawRequest
  /** The body as it comes, on a route that takes an `upload`; empty on any other. */
  upload: Upload
  /** The name that the client asked, in lower case and without a port; empty when it named none. */
  host: string
  /** Also in `X-Request-Id` and in the log. */
  request_id: string
  /** Aborts when the client goes away, the handler's time is up, or the box stops. */
  signal: AbortSignal
  /**
   * For a handler that goes on after it waited for long, where many may go on at once: undefined when it may at once, else resolves when it is its
   * account's turn.
   */
  turn: () => Promise<void> | undefined
  /**
   * Leaves, in the transaction of a change, what `again` answers a repetition of this call from: they are on disk together, so that a
   * crash leaves no doubt. Does nothing for a call without an `Idempotency-Key`.
   */
  remember: (tx: Transaction, memo: string) => Promise<void>
}

/** What an endpoint is: this one declaration serves, guards, validates, documents and tests it. */
export interface Route<
  Path extends string = string,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Reply extends z.ZodType = z.ZodType,
> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below `/v1`, e.g. `/identities/:id`. */
  path: Path
  /** Other spellings of the same call. */
  aliases?: string[]
  /** The path is not below `/v1`: well-known documents, signed downloads. */
  root?: boolean
  /** Any one of these scopes admits; `public` needs no key. */
  scope: Scope | Scope[] | 'public'
  /** What the call reads besides, to show it or send it on: any one of these scopes is needed too. */
  reads?: Scope[]
  /**
   * What of the answer is shown to a caller who may write but not read: these fields beside `id`, `identity_id`, `status`, `deleted`, `created_at` and
   * `updated_at`, or all of it, as of what the call itself made (status 201) unless said. Reading scopes are those of `scope` with `read` for `write`.
   */
  receipt?: readonly string[] | 'all'
  /** Only for callers of the operator's own account, with keys that are bound to no identity. */
  operator?: boolean
  /** Only by the box's own socket, from the machine it is on. */
  local?: boolean
  /** Neither query nor body are read: the handler gets them as they came, whatever their type, and checks who speaks. */
  raw?: boolean
  /** The media type of a body that is handed on as it comes, however large: the handler bounds it, and takes part in `signal`. */
  upload?: string
  /**
   * What a public call counts as: `address` (few) unless it is a `document` (many), a `callback` of a provider (very many), or somebody who
   * signs in (fewest).
   */
  rate?: 'address' | 'document' | 'callback' | 'sign-in'
  /** What the browser is to keep of the handler's result, or to forget, as proof of its session. */
  cookie?: (result: never) => SessionCookie
  tag: string
  /** The title in the reference, and the operation's name in OpenAPI: unique. */
  summary: string
  description?: string
  query?: Query
  body?: Body
  /** The reply schema is the presenter: a field it does not name never leaves the server. Left out for downloads. */
  reply?: Reply
  /** JSON that anybody may read, from any page, and keep for five minutes: CORS `*`, an ETag and 304. Never of what only a key may see. */
  document?: boolean
  /** The media type of an answer that is not JSON; `handle` then answers a Download. */
  download?: string
  /** 200 unless said. */
  status?: 200 | 201
  /** The path of what was made, for the `Location` header: `/v1/…`. */
  location?: (answer: z.output<Reply>) => string
  /** The answer carries a secret: never cached, kept sealed for idempotent replays. */
  secret?: boolean
  /** To GET it does something (charges, is written down, uses up): HEAD, which the router takes for GET, is then no way to ask. */
  effect?: true
  /** Whether `Idempotency-Key` is honoured: on every POST that needs a key, unless said. */
  idempotent?: boolean
  /** Whether it adds to what is stored, so that a full disk refuses it: every POST and PATCH, unless said. */
  stores?: boolean
  /** Largest request body in bytes; unless said, 1 MiB with a key and 64 KiB without. */
  limit?: number
  /** Longest time in milliseconds the handler may take; 30 s unless said. */
  timeout?: number
  /** A request and its answer for the reference; a test sends it. */
  example?: { body?: unknown; query?: Record<string, string>; headers?: Record<string, string> }
  handle: (input: Input<Params<Path>, z.output<Query>, z.output<Body>>) => Promise<z.input<Reply> | Download>
  /**
   * Answers a repetition of a call from the memo that `remember` left, or else the id that was answered, anew: the answer itself is then not kept,
   * as it may hold what must not outlive its row.
   */
  again?: (input: Input<Params<Path>, z.output<Query>, z.output<Body>>, memo: string) => Promise<z.input<Reply>>
}

/** Any route, its types forgotten: what lists of routes hold. */
export type AnyRoute = Omit<Route, 'handle' | 'again' | 'location'> & {
  handle: (input: Input<Record<string, string>, never, never>) => Promise<unknown>
  again?: (input: Input<Record<string, string>, never, never>, memo: string) => Promise<unknown>
  location?: (answer: never) => string
}

/** Declares an endpoint: `params` is typed from the path, `query` and `body` from zod, the answer must fit `reply`. */
export function route<
  const Path extends string,
  Query extends z.ZodType = z.ZodType<Record<never, never>>,
  Body extends z.ZodType = z.ZodType<Record<never, never>>,
  Reply extends z.ZodType = z.ZodType,
>(declaration: Route<Path, Query, Body, Reply>): AnyRoute {
  return declaration as unknown as AnyRoute
}

/** One way to call a route. */
export interface Spelling {
  method: AnyRoute['method']
  /** The whole path, `/v1/identities/:id`. */
  path: string
  route: AnyRoute
  alias: boolean
}

/** Every spelling of every route, literal paths before those with a parameter in the same place. Tests range over it. */
export function spellings(routes: readonly AnyRoute[]): Spelling[] {
  return routes
    .flatMap((declared) =>
      [declared.path, ...(declared.aliases ?? [])].map((path, index) => ({
        method: declared.method,
        path: declared.root ? path : `/v1${path}`,
        route: declared,
        alias: index > 0,
      })),
    )
    .toSorted((one, other) => rank(one.path).localeCompare(rank(other.path), 'en'))
}

/** Whether `Idempotency-Key` means something on this route. */
export function isIdempotent({ idempotent, method, scope, download, upload }: AnyRoute): boolean {
  return idempotent ?? (method === 'POST' && scope !== 'public' && download === undefined && upload === undefined)
}

/** Octets that the body of a call may have: a stranger’s is read before anybody knows whose it is. */
export function bodyLimit({ limit, scope }: Pick<AnyRoute, 'limit' | 'scope'>): number {
  return limit ?? (scope === 'public' ? 64 * 1024 : 1024 * 1024)
}

const receipt = ['id', 'identity_id', 'status', 'deleted', 'created_at', 'updated_at']

type Answering = Pick<AnyRoute, 'method' | 'scope' | 'reads' | 'receipt' | 'status'>

/** The scopes any one of which shows the answer of a write whole, and the fields that are shown without; undefined where everybody is shown all. */
export function readersOf({
  method,
  scope,
  reads,
  receipt: said,
  status,
}: Answering): { scopes: Scope[]; fields: readonly string[] } | undefined {
  const shown = said ?? (status === 201 ? 'all' : [])
  if (method === 'GET' || shown === 'all' || reads) return undefined
  const writing = [scope].flat().filter((one) => one.endsWith(':write'))
  if (writing.length === 0) return undefined
  return { scopes: writing.map((one) => one.replace(/write$/, 'read') as Scope), fields: [...receipt, ...shown] }
}

/** Whether a full disk refuses it. DELETE makes room, and who signs in may be about to: they are let through for as long as the disk can take it, as is what takes back or stops something. */
export function stores({ method, rate, stores: said }: Pick<AnyRoute, 'method' | 'rate' | 'stores'>): boolean {
  return said ?? ((method === 'POST' && rate !== 'sign-in') || method === 'PATCH')
}

/** `0` for a literal segment, `1` for a parameter, so that a comparison puts literals first. */
function rank(path: string): string {
  return path
    .split('/')
    .map((segment) => (segment.startsWith(':') ? '1' : '0'))
    .join('')
}
