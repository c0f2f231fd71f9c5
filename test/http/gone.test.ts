import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import type { Caller } from '../../src/core/scopes.ts'
import { createLog } from '../../src/core/log.ts'
import { collect } from '../../src/core/memory.ts'
import { longWork } from '../../src/core/work/long-work.ts'
import { type Call, handleCall } from '../../src/http/endpoint.ts'
import type { Idempotency } from '../../src/http/idempotency.ts'
import { routeOf } from '../../src/http/route.ts'
import { CallAbort } from '../../src/http/server/call-abort.ts'
import { openDatabase } from './memory-database.ts'
import { openToybox, type Toybox } from './toy-box.ts'

const route = routeOf('Toys')

const mebibyte = 1024 * 1024

interface Held {
  box: Toybox
  /** The names of the calls that the handler was run for. */
  run: string[]
  /** The names of the calls whose handler was told of their end. */
  aborted: string[]
  /** Settles the handlers of all calls but those named `free`. */
  settle: (error?: Error) => void
}

/** A box with a call whose handler goes on, whatever becomes of its caller, until it is settled. */
async function open(timeout?: number): Promise<Held> {
  const run: string[] = []
  const aborted: string[] = []
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  promise.catch(() => undefined)
  const held = route('POST', '/held', {
    scope: 'identities:write',
    summary: 'Take a large body and wait',
    limit: 40 * mebibyte,
    ...(timeout !== undefined && { timeout }),
    body: z.strictObject({ name: z.string(), text: z.string() }),
    reply: z.object({ name: z.string() }),
    handle: async ({ body: { name }, signal }) => {
      run.push(name)
      if (name === 'free') return { name }
      signal.addEventListener('abort', () => aborted.push(name))
      await promise
      return { name }
    },
  })
  const box = await openToybox({}, { routes: [held] })
  onTestFinished(() => box.server.stop())
  return { box, run, aborted, settle: (error) => (error ? reject(error) : resolve()) }
}

/** A body of so many bytes. */
function bodyOf(name: string, size: number): string {
  const empty = JSON.stringify({ name, text: '' })
  return empty.replace('""', `"${'x'.repeat(size - empty.length)}"`)
}

/** The requests that the box gets from now on. */
function requests(): IncomingMessage[] {
  const got: IncomingMessage[] = []
  const add = (message: unknown): void => void got.push((message as { request: IncomingMessage }).request)
  subscribe('http.server.request.start', add)
  onTestFinished(() => void unsubscribe('http.server.request.start', add))
  return got
}

/** Sends a call, or as much of its body, on a connection that can be cut. */
async function begin(box: Toybox, body: string, sent = body.length, key = ''): Promise<Socket> {
  const socket = connect(box.port, '127.0.0.1').on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  const heads = ['Host: x', 'Authorization: Bearer free', 'Content-Type: application/json', `Content-Length: ${body.length}`]
  if (key !== '') heads.push(`Idempotency-Key: ${key}`)
  socket.write(`POST /v1/held HTTP/1.1\r\n${heads.join('\r\n')}\r\n\r\n${body.slice(0, sent)}`)
  return socket
}

/** The status of a call that is answered at once, and its code if it is refused. */
async function answerTo(box: Toybox, size: number): Promise<string> {
  const response = await box.call('POST', '/v1/held', { key: 'free', body: bodyOf('free', size) })
  const { error } = (await response.json()) as { error?: { code: string } }
  return `${response.status} ${error?.code ?? ''}`.trim()
}

test.each([
  ['answers', undefined],
  ['fails', new Error('It failed')],
])('a body whose caller has gone counts until its handler %s', async (_, error) => {
  const { box, run, aborted, settle } = await open()
  const socket = await begin(box, bodyOf('first', 30 * mebibyte))
  await expect.poll(() => run).toEqual(['first'])
  socket.destroy()
  await expect.poll(() => aborted).toEqual(['first'])
  expect(await answerTo(box, 20 * mebibyte)).toBe('429 too_much_at_once')
  expect(await answerTo(box, 1000)).toBe('200')
  settle(error)
  await expect.poll(() => answerTo(box, 20 * mebibyte)).toBe('200')
  expect(await answerTo(box, 40 * mebibyte)).toBe('200')
})

test('a body counts until its handler has settled, also when the call has timed out', async () => {
  const { box, aborted, settle } = await open(10)
  const late = await box.call('POST', '/v1/held', { key: 'free', body: bodyOf('first', 30 * mebibyte) })
  expect(await late.json()).toMatchObject({ error: { code: 'timeout' } })
  expect(aborted).toEqual(['first'])
  expect(await answerTo(box, 20 * mebibyte)).toBe('429 too_much_at_once')
  settle()
  await expect.poll(() => answerTo(box, 20 * mebibyte)).toBe('200')
})

test('a large body whose caller goes while it waits for its turn makes room, and is never handled', async () => {
  const { box, run, settle } = await open()
  await begin(box, bodyOf('first', 24 * mebibyte))
  await expect.poll(() => run).toEqual(['first'])
  const got = requests()
  const second = await begin(box, bodyOf('second', 24 * mebibyte))
  await expect.poll(() => got[0]?.complete).toBe(true)
  expect(await answerTo(box, 100)).toBe('429 too_much_at_once')
  second.destroy()
  await expect.poll(() => answerTo(box, 100)).toBe('200')
  settle()
  expect(await answerTo(box, 24 * mebibyte)).toBe('200')
  expect(run.filter((name) => name !== 'free')).toEqual(['first'])
})

test('a body that is cut before its end makes room', async () => {
  const { box, run } = await open()
  const got = requests()
  const socket = await begin(box, bodyOf('cut', 40 * mebibyte), 39 * mebibyte)
  await expect.poll(() => got[0]?.socket.bytesRead).toBeGreaterThan(39 * mebibyte)
  expect(await answerTo(box, 20 * mebibyte)).toBe('429 too_much_at_once')
  socket.destroy()
  await expect.poll(() => answerTo(box, 40 * mebibyte)).toBe('200')
  expect(run).not.toContain('cut')
})

test('a call with a key that has begun keeps its answer for a caller who has gone', async () => {
  const { box, run, aborted, settle } = await open()
  const body = bodyOf('first', 2 * mebibyte)
  const socket = await begin(box, body, body.length, 'one')
  await expect.poll(() => run).toEqual(['first'])
  socket.destroy()
  await expect.poll(() => aborted).toEqual(['first'])
  settle()
  const again = async (): Promise<Response> =>
    await box.call('POST', '/v1/held', { key: 'free', body, headers: { 'Idempotency-Key': 'one' } })
  await expect.poll(async () => (await again()).status).toBe(200)
  expect((await again()).headers.get('idempotency-replayed')).toBe('true')
  expect(run).toEqual(['first'])
})

test.each([undefined, 'one'])(
  'a call whose caller goes while its key is checked again is not handled (Idempotency-Key: %s)',
  async (key) => {
    const run: string[] = []
    const made = route('POST', '/made', {
      scope: 'identities:write',
      summary: 'Make a toy',
      reply: z.object({ count: z.int() }),
      handle: async () => ({ count: run.push('made') }),
    })
    const abort = new CallAbort()
    const call = {
      params: {},
      search: '',
      caller: { account_id: 'acct_1' } as Caller,
      headers: key === undefined ? {} : { 'idempotency-key': key },
      abort,
      read: async () => ({ bytes: Buffer.from('{}'), scan: undefined }),
      turn: () => undefined,
      keepOfBody: () => undefined,
      requireStillValid: async () => abort.abort('gone'),
    } as Partial<Call> as Call
    const idempotency = { begin: () => expect.unreachable() } as Partial<Idempotency> as Idempotency
    await expect(handleCall(made, call, { idempotency, log: createLog('error'), database: openDatabase() })).rejects.toThrow(
      'gone before the call began',
    )
    expect(run).toEqual([])
  },
)

test('long work is not begun for a caller who went while it waited for its turn', async () => {
  const begun: string[] = []
  let gone = 0
  const long = route('GET', '/long', {
    scope: 'identities:read',
    summary: 'Read something long',
    query: z.object({ name: z.string() }),
    reply: z.object({ name: z.string() }),
    handle: ({ caller, query: { name }, signal }) => {
      signal.addEventListener('abort', () => (gone += 1))
      return longWork('read', caller.account_id, async () => {
        begun.push(name)
        return { name }
      })
    },
  })
  const box = await openToybox({}, { routes: [long] })
  onTestFinished(() => box.server.stop())
  const { promise, resolve } = Promise.withResolvers<void>()
  const before = longWork('read', 'another', () => promise)
  const got = requests()
  const socket = connect(box.port, '127.0.0.1').on('error', () => undefined)
  socket.write('GET /v1/long?name=left HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer free\r\n\r\n')
  await expect.poll(() => got.length).toBe(1)
  const waiting = box.call('GET', '/v1/long?name=waits')
  await expect.poll(() => got.length).toBe(2)
  socket.destroy()
  await expect.poll(() => gone).toBe(1)
  resolve()
  await before
  expect(await (await waiting).json()).toEqual({ name: 'waits' })
  expect(begun).toEqual(['waits'])
})

test('a large body that is refused is not in memory while its client sends the rest', async () => {
  const { box } = await open()
  const held = (): number => {
    collect(true)
    return Math.round(process.memoryUsage().arrayBuffers / mebibyte)
  }
  const body = bodyOf('free', 20 * mebibyte)
  const before = held()
  const sockets = [
    await begin(box, body, 17 * mebibyte),
    await begin(box, body, 17 * mebibyte),
    await begin(box, body, 17 * mebibyte),
  ]
  const [answer] = (await Promise.race(sockets.map((socket) => once(socket, 'data')))) as [Buffer]
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 429[^]*too_much_at_once/)
  // of the other two
  await expect.poll(held).toBeLessThan(before + 42)
})
