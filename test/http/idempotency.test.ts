import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import * as z from 'zod'
import { conflict } from '../../src/core/fault.ts'
import { type AnyRoute, routeOf } from '../../src/http/route.ts'
import { type Database, sql } from '../../src/store/database.ts'
import { openDatabase } from './memory-database.ts'
import { errorOf, openToybox, type Toybox, toyId } from './toy-box.ts'

const route = routeOf('Steps')

const clock = { time: Date.parse('2026-11-20T10:00:00Z'), now: () => clock.time }
let database = openDatabase()
let box: Toybox

beforeEach(async () => {
  database = openDatabase()
  box = await openToybox({}, { clock, database })
})

afterEach(async () => {
  await box.server.stop()
})

const make = async (name: string, idempotency: string, key = 'free', path = '/v1/toys') =>
  await box.call('POST', path, { key, body: { name }, headers: { 'Idempotency-Key': idempotency } })

test('the same call gets the first answer again: status, body, Location', async () => {
  const first = await make('Bear', 'one')
  const again = await make('Bear', 'one')
  expect(again.status).toBe(201)
  expect(await again.text()).toBe(await first.text())
  expect(again.headers.get('location')).toBe(first.headers.get('location'))
  expect(again.headers.get('idempotency-replayed')).toBe('true')
  expect(first.headers.get('idempotency-replayed')).toBeNull()
  expect(box.played.made).toBe(1)
})

test('the other spelling of a call is the same call', async () => {
  const first = await make('Bear', 'one')
  expect(await (await make('Bear', 'one', 'free', '/v1/toys/make')).text()).toBe(await first.text())
})

test('another body is a conflict, another account or a narrower key is another call', async () => {
  await make('Bear', 'one')
  expect(await errorOf(await make('Fox', 'one'))).toMatchObject({ type: 'conflict', code: 'idempotency_key_reused' })
  expect((await make('Bear', 'one', 'other')).headers.get('idempotency-replayed')).toBeNull()
  expect((await make('Bear', 'one', 'bound')).headers.get('idempotency-replayed')).toBeNull()
  expect((await make('Bear', 'one', 'second')).headers.get('idempotency-replayed')).toBe('true')
})

test('a refusal is replayed with the request id of the new call', async () => {
  const first = await errorOf(await make('taken', 'one'))
  const again = await errorOf(await make('taken', 'one'))
  expect(again).toMatchObject({ type: 'conflict', param: 'name', message: first.message })
  expect(again.request_id).not.toBe(first.request_id)
  expect(box.played.made).toBe(1)
})

test('what went wrong on our side, or was never begun, does not use up the key', async () => {
  await make('broken', 'one')
  await make('full', 'two')
  expect((await make('', 'three')).status).toBe(400)
  for (const key of ['one', 'two', 'three']) expect((await make('Bear', key)).status).toBe(201)
})

test('while the first is in hand the second is a conflict, and the work is done once', async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  box.played.held = held
  const first = make('held', 'one')
  let second = await make('held', 'one')
  for (let tries = 0; second.status !== 409 && tries < 100; tries++) second = await make('held', 'one')
  expect(second.headers.get('retry-after')).toBe('1')
  expect(await errorOf(second)).toMatchObject({ type: 'conflict', code: 'idempotency_in_flight' })
  release()
  expect((await first).status).toBe(201)
  expect((await make('held', 'one')).headers.get('idempotency-replayed')).toBe('true')
  expect(box.played.made).toBe(1)
})

test('fifty at once are done once', async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, () => make('Bear', 'storm')))
  expect(box.played.made).toBe(1)
  for (const answer of answers) expect([201, 409]).toContain(answer.status)
})

test('a key is good for a day', async () => {
  await make('Bear', 'one')
  clock.time += 24 * 3_600_000 + 1
  expect((await make('Bear', 'one')).headers.get('idempotency-replayed')).toBeNull()
  await make('Bear', 'two')
  expect(await box.idempotency.sweep()).toBe(0)
  clock.time += 24 * 3_600_000 + 1
  expect(await box.idempotency.sweep()).toBe(2)
})

test('an answer that carries a secret lies sealed, and only the same API key gets it again', async () => {
  const path = `/v1/toys/${toyId}/key`
  const ask = async (key: string) => await box.call('POST', path, { key, headers: { 'Idempotency-Key': 'one' } })
  const first = await (await ask('all')).text()
  expect(first).toContain('canary-secret')
  expect(await (await ask('all')).text()).toBe(first)
  expect(await (await ask('second')).json()).toMatchObject({ run: 2 })
  const rows = await database.all(sql`SELECT * FROM idempotency_keys`)
  expect(rows).toHaveLength(2)
  expect(JSON.stringify(rows)).not.toContain('canary-secret')
})

const post = async (target: Toybox, name: string, { signal }: { signal?: AbortSignal } = {}) =>
  await target.call('POST', '/v1/toys', { body: { name }, headers: { 'Idempotency-Key': name }, ...(signal && { signal }) })

test('answers outlive the process; a call cut off by its end before it changed anything is done now', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'idempotency-'))
  const file = join(folder, 'box.sqlite')
  await box.server.stop()
  const before = await openToybox({}, { database: openDatabase(file) })
  const answered = await (await post(before, 'Bear')).text()
  let end: ((error: Error) => void) | undefined
  const started = new Promise<void>((resolve) => {
    before.played.held = {
      // oxlint-disable-next-line unicorn/no-thenable -- tells when the handler begins to wait, and lets it go on when all is over
      then: (_: unknown, reject: (error: Error) => void) => {
        end = reject
        resolve()
      },
    } as unknown as Promise<void>
  })
  const leaving = new AbortController()
  void post(before, 'held', leaving).catch(() => undefined)
  await started
  box = await openToybox({}, { database: openDatabase(file) })
  expect(await (await post(box, 'Bear')).text()).toBe(answered)
  expect((await post(box, 'held')).status).toBe(201)
  expect((await post(box, 'held')).headers.get('idempotency-replayed')).toBe('true')
  expect(box.played.made).toBe(1)
  leaving.abort()
  await before.server.stop()
  end!(new Error('the process has ended'))
  rmSync(folder, { recursive: true })
})

const step = async (target: Toybox, { signal }: { signal?: AbortSignal } = {}) =>
  await target.call('POST', '/v1/steps', { headers: { 'Idempotency-Key': 'one' }, ...(signal && { signal }) })

test('a call cut off after it changed something says so, and is not done again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'idempotency-'))
  const file = join(folder, 'box.sqlite')
  await box.server.stop()
  const { promise: changed, resolve: tell } = Promise.withResolvers<void>()
  let runs = 0
  const routesOver = (kept: Database): AnyRoute[] => [
    route('POST', '/steps', {
      scope: 'identities:write',
      summary: 'Change something, then think',
      reply: z.object({}),
      handle: async () => {
        runs += 1
        await kept.transaction((tx) => tx.run(sql`DELETE FROM idempotency_keys WHERE holder = 'nobody'`))
        tell()
        return await new Promise<never>(() => undefined)
      },
    }),
  ]
  const open = async (): Promise<Toybox> => {
    const kept = openDatabase(file)
    return await openToybox({}, { database: kept, routes: routesOver(kept) })
  }
  const before = await open()
  const leaving = new AbortController()
  void step(before, leaving).catch(() => undefined)
  await changed
  expect(await errorOf(await step(before))).toMatchObject({ code: 'idempotency_in_flight' })
  box = await open()
  for (let turn = 0; turn < 2; turn++) {
    expect(await errorOf(await step(box))).toMatchObject({ type: 'conflict', code: 'idempotency_interrupted' })
  }
  expect(runs).toBe(1)
  leaving.abort()
  await before.server.stop()
  rmSync(folder, { recursive: true })
})

const ask = async (target: Toybox, end: string, { signal }: { signal?: AbortSignal } = {}) =>
  await target.call('POST', `/v1/steps/${end}`, { headers: { 'Idempotency-Key': 'one' }, ...(signal && { signal }) })

test('a call that leaves a memo is answered from it, whatever became of its answer; the answer itself is not kept', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'idempotency-'))
  const file = join(folder, 'box.sqlite')
  await box.server.stop()
  const runs: string[] = []
  const routesOver = (kept: Database): AnyRoute[] => [
    route('POST', '/steps/:end', {
      scope: 'identities:write',
      summary: 'Change something, remember it, and end in some way',
      reply: z.object({ secret: z.string() }),
      secret: true,
      handle: async ({ params, remember }) => {
        if (params.end === 'refused') throw conflict('Not today.')
        await kept.transaction((tx) => remember(tx, `memo of ${params.end}`))
        runs.push(params.end)
        if (params.end === 'broken') throw new Error('broken after the change')
        if (params.end === 'hangs') return await new Promise<never>(() => undefined)
        return { secret: 'canary-first' }
      },
      again: async (_, memo) => ({ secret: `canary-again, ${memo}` }),
    }),
  ]
  const open = async (): Promise<Toybox> => {
    const kept = openDatabase(file)
    return await openToybox({}, { database: kept, routes: routesOver(kept) })
  }
  const before = await open()
  expect(await (await ask(before, 'answered')).json()).toEqual({ secret: 'canary-first' })
  expect((await ask(before, 'broken')).status).toBe(500)
  expect((await ask(before, 'refused')).status).toBe(409)
  const leaving = new AbortController()
  void ask(before, 'hangs', leaving).catch(() => undefined)
  let second = await ask(before, 'hangs')
  for (let tries = 0; second.status !== 409 && tries < 100; tries++) second = await ask(before, 'hangs')
  expect(await errorOf(second)).toMatchObject({ code: 'idempotency_in_flight' })
  for (const end of ['answered', 'broken']) {
    expect(await (await ask(before, end)).json()).toEqual({ secret: `canary-again, memo of ${end}` })
  }
  expect(await errorOf(await ask(before, 'refused'))).toMatchObject({ type: 'conflict', message: 'Not today.' })
  const rows = await openDatabase(file).all(sql`SELECT * FROM idempotency_keys`)
  expect(JSON.stringify(rows)).not.toContain('canary')
  box = await open()
  for (const end of ['answered', 'broken', 'hangs']) {
    const again = await ask(box, end)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(await again.json()).toEqual({ secret: `canary-again, memo of ${end}` })
  }
  expect(runs).toEqual(['answered', 'broken', 'hangs'])
  leaving.abort()
  await before.server.stop()
  rmSync(folder, { recursive: true })
})

test.each(['', 'x'.repeat(256), 'tab\there', 'ümlaut'])('the key %j is refused', async (key) => {
  const error = await errorOf(await make('Bear', key))
  expect(error).toMatchObject({ type: 'invalid_request', param: 'Idempotency-Key' })
})

test('on other calls the header means nothing', async () => {
  const headers = { 'Idempotency-Key': 'one' }
  expect((await box.call('GET', '/v1/toys', { headers })).status).toBe(200)
  expect((await box.call('POST', '/v1/open', { key: null, headers })).headers.get('idempotency-replayed')).toBeNull()
  expect(await database.all(sql`SELECT * FROM idempotency_keys`)).toHaveLength(0)
})
