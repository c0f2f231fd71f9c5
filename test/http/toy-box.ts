import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { Readable, Writable } from 'node:stream'
import * as z from 'zod'
import { newId } from '../../src/core/ids.ts'
import { systemClock } from '../../src/core/clock.ts'
import { createLog } from '../../src/core/log.ts'
import { Metrics } from '../../src/core/metrics.ts'
import { type Scope, scopes } from '../../src/core/scopes.ts'
import type { Seal } from '../../src/core/seal/seal.ts'
import { Deleted, Flag, Page, Paging, Timestamp } from '../../src/core/shapes.ts'
import { conflict, Fault, notFound } from '../../src/core/fault.ts'
import { type HttpDeps, HttpServer, type HttpSettings } from '../../src/http/server/server.ts'
import { type AnyRoute, routeOf } from '../../src/http/route.ts'
import { Idempotency } from '../../src/http/idempotency.ts'
import { openDatabase } from './memory-database.ts'

const route = routeOf('Toys')

export const toyId = 'ident_01jd3v8m2ef1pbx9mz5k7q4w6a'

const Toy = z
  .object({
    id: z.string(),
    name: z.string(),
    colour: z.enum(['red', 'blue']).nullable(),
    metadata: z.record(z.string(), z.json()),
    created_at: Timestamp,
  })
  .meta({ id: 'Toy', description: 'A thing to play with' })

const NewToy = z
  .strictObject({
    name: z.string().min(1).max(20),
    colour: z.enum(['red', 'blue']).optional(),
    to: z.union([z.string(), z.array(z.string())]).optional(),
    budget_cents: z.int().min(0).optional(),
    metadata: z.record(z.string(), z.json()).optional(),
    owner: z.strictObject({ email: z.email() }).optional(),
  })
  .meta({ id: 'NewToy' })

/** What the handlers did, so that a test can tell a replay from a second run. */
export interface Played {
  made: number
  aborted: string[]
  release: (() => void) | undefined
  held: Promise<void>
}

/** No account is ever full. */
const roomy = { available: async () => Infinity, add: async () => undefined }

const toy = (name: string) => ({
  id: newId('ident'),
  name,
  colour: null,
  metadata: {},
  created_at: '2026-11-20T10:05:00.123Z',
  encrypted_data: 'never shown',
})

export function toyRoutes(played: Played): AnyRoute[] {
  return [
    route('GET', '/toys', {
      scope: 'identities:read',
      summary: 'List the toys',
      query: Paging.extend({ unread: Flag.optional() }),
      reply: Page(Toy),
      handle: async ({ query }) => ({
        data: Array.from({ length: query.limit }, (_, n) => toy(`toy ${n}`)),
        has_more: true,
        next_cursor: 'abc',
      }),
    }),
    route('POST', '/toys', {
      aliases: ['/toys/make'],
      scope: 'identities:write',
      summary: 'Make a toy',
      body: NewToy,
      reply: Toy,
      status: 201,
      location: (answer) => `/v1/toys/${answer.id}`,
      example: { body: { name: 'Bear' } },
      handle: async ({ body }) => {
        played.made++
        if (body.name === 'taken') throw conflict('There is a toy of that name.', { param: 'name' })
        if (body.name === 'broken') throw new Error('SELECT secret FROM /var/lib')
        if (body.name === 'full')
          throw new Fault('internal_error', 'The box has no room left.', { code: 'storage_full', retryAfter: 60 })
        if (body.name === 'held') await played.held
        return { ...toy(body.name), metadata: body.metadata ?? {} }
      },
    }),
    route('GET', '/toys/search', {
      scope: ['messages:read', 'emails:read'],
      summary: 'Search the toys',
      query: z.strictObject({ query: z.string().min(1) }),
      reply: z.object({ found: z.string() }),
      handle: async ({ query }) => ({ found: query.query }),
    }),
    route('GET', '/toys/:id', {
      scope: 'identities:read',
      summary: 'Get a toy',
      reply: Toy,
      handle: async ({ params }) => {
        if (params.id !== toyId) throw notFound('toy')
        return { ...toy('Bear'), id: toyId }
      },
    }),
    route('DELETE', '/toys/:id', {
      scope: 'identities:write',
      summary: 'Delete a toy',
      reply: Deleted,
      handle: async ({ params }) => ({ id: params.id, deleted: true as const }),
    }),
    route('POST', '/toys/:id/key', {
      scope: 'account:write',
      summary: 'Make a key for a toy',
      reply: z.object({ secret: z.string(), run: z.int() }),
      secret: true,
      handle: async () => ({ secret: 'canary-secret', run: ++played.made }),
    }),
    route('GET', '/toys/:id/wait', {
      scope: 'identities:read',
      summary: 'Wait for a toy',
      timeout: 60_000,
      reply: z.object({ timed_out: z.boolean() }),
      handle: ({ signal }) =>
        new Promise((_, reject) => {
          played.release?.()
          signal.addEventListener('abort', () => {
            played.aborted.push(String(signal.reason))
            reject(signal.reason as Error)
          })
        }),
    }),
    route('GET', '/toys/:id/slow', {
      scope: 'identities:read',
      summary: 'Be too slow',
      timeout: 50,
      reply: z.object({}),
      handle: async ({ signal }) => await new Promise((resolve) => signal.addEventListener('abort', () => resolve({}))),
    }),
    route('GET', '/toys/:id/wrong', {
      scope: 'identities:read',
      summary: 'Answer what does not fit',
      reply: z.object({ count: z.int() }),
      handle: async () => ({ count: 'many' as unknown as number }),
    }),
    route('GET', '/files/:token', {
      root: true,
      scope: 'public',
      rate: 'document',
      summary: 'Download a toy',
      query: z.strictObject({ signature: z.string().optional() }),
      download: 'application/octet-stream',
      handle: async () => ({ type: 'text/html', bytes: Buffer.from('0123456789'), headers: { ETag: '"a"' } }),
    }),
    route('GET', '/stream/:kind', {
      root: true,
      scope: 'public',
      rate: 'document',
      summary: 'Stream a toy',
      download: 'application/octet-stream',
      handle: async ({ params }) => ({
        type: 'application/octet-stream',
        bytes: Readable.from(chunks(params.kind === 'broken')),
      }),
    }),
    route('POST', '/open', {
      scope: 'public',
      summary: 'Say where the call comes from',
      reply: z.object({ ip: z.string() }),
      handle: async ({ caller }) => ({ ip: caller.ip }),
    }),
  ]
}

async function* chunks(broken: boolean): AsyncGenerator<Buffer> {
  yield Buffer.from('one ')
  if (broken) throw new Error('the disk is gone')
  yield Buffer.from('two')
}

const keys: Record<string, { scopes: readonly Scope[]; account_id: string; identity_id?: string; rate_limit?: number }> = {
  all: { scopes, account_id: 'acct_1' },
  second: { scopes, account_id: 'acct_1' },
  other: { scopes, account_id: 'acct_2' },
  bound: { scopes, account_id: 'acct_1', identity_id: toyId },
  none: { scopes: [], account_id: 'acct_1' },
  few: { scopes, account_id: 'acct_1', rate_limit: 3 },
  free: { scopes, account_id: 'acct_1', rate_limit: 0 },
}

export interface Toybox {
  base: string
  port: number
  server: HttpServer
  idempotency: Idempotency
  played: Played
  lines: string[]
  call(
    method: string,
    path: string,
    options?: { key?: string | null; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal },
  ): Promise<Response>
  raw(text: string): Promise<string>
}

/** A server with toy routes on a loopback port, and what is needed to talk to it. */
export async function openToybox(settings: Partial<HttpSettings> = {}, parts: Partial<HttpDeps> = {}): Promise<Toybox> {
  const played: Played = { made: 0, aborted: [], release: undefined, held: Promise.resolve() }
  const lines: string[] = []
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString())
      done()
    },
  })
  const database = parts.database ?? openDatabase()
  const idempotency = new Idempotency({ database, seal: toySeal(), clock: parts.clock ?? systemClock, storage: roomy })
  const server = new HttpServer({
    settings: {
      listen: { host: '127.0.0.1', port: 0 },
      public_url: 'http://box.test',
      trusted_proxies: [],
      proxy_protocol: [],
      cors_origins: [],
      public_rate_limit: 60,
      document_rate_limit: 600,
      account_rate_limit: 0,
      sign_in_rate_limit: 5,
      session_same_site: 'strict',
      max_connections: 1000,
      max_connections_per_address: 1000,
      uncounted: [],
      ...settings,
    },
    routes: toyRoutes(played),
    operator: 'acct_1',
    exists: () => true,
    authenticate: (token) => {
      const key = keys[token]
      if (!key) return undefined
      return {
        account_id: key.account_id,
        key_id: `key_${token}`,
        session_id: null,
        secret: 0,
        scopes: new Set(key.scopes),
        identity_id: key.identity_id ?? null,
        rate_limit: key.rate_limit ?? 600,
        until: Infinity,
      }
    },
    session: () => undefined,
    database,
    idempotency,
    log: createLog('debug', sink),
    metrics: new Metrics(),
    ready: async () => [],
    version: '0.1.0',
    ...parts,
  })
  await server.start()
  const port = server.addresses.plain?.port ?? 0
  const base = `http://127.0.0.1:${port}`
  return {
    base,
    port,
    server,
    idempotency,
    played,
    lines,
    call: async (method, path, { key = 'all', body, headers = {}, signal } = {}) =>
      await fetch(base + path, {
        method,
        ...(signal && { signal }),
        headers: {
          ...(key === null ? {} : { Authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined
          ? {}
          : { body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body) }),
      }),
    raw: (text) => exchange(port, text),
  }
}

/** Sends octets as they are and answers all that comes back until the server closes. */
export function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(answer))
  })
}

export function toySeal(): Pick<Seal, 'seal' | 'open'> {
  const key = randomBytes(32)
  return {
    seal: (bytes, context) => {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context))
      return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
    },
    open: (bytes, context) => {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12)).setAAD(Buffer.from(context))
      decipher.setAuthTag(bytes.subarray(-16))
      return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()])
    },
  }
}

interface ErrorShape {
  error: { type: string; message: string; param?: string; status: number; code: string; request_id: string }
}

/** The error a response carries, its status checked against its body. */
export async function errorOf(response: Response): Promise<ErrorShape['error']> {
  const { error } = (await response.json()) as ErrorShape
  if (error.status !== response.status) throw new Error(`The body says ${error.status}, the answer ${response.status}`)
  if (error.request_id !== response.headers.get('x-request-id')) throw new Error('The request id differs')
  return error
}
