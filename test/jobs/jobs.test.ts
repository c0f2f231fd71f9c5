import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { iso } from '../../src/core/clock.ts'
import { createLog } from '../../src/core/log.ts'
import { Cursors } from '../../src/store/page.ts'
import { conflict } from '../../src/core/fault.ts'
import { newId } from '../../src/core/ids.ts'
import type { Caller, Scope } from '../../src/core/scopes.ts'
import { Jobs, type ReportProgress } from '../../src/jobs/jobs.ts'
import type { Job } from '../../src/jobs/model.ts'
import { type Database, sql } from '../../src/store/database.ts'
import { opened } from '../store/opened.ts'
import { callerOf } from '../support/caller.ts'
import { folder } from '../support/folder.ts'
import { HeldClock } from '../support/held-clock.ts'

const account = newId('acct')
const paging = { limit: 50, offset: 0, cursor: undefined }

async function made() {
  const { database } = await opened(folder())
  onTestFinished(() => database.close())
  const clock = new HeldClock()
  const log = createLog('silent')
  const again = (): Jobs => new Jobs({ database, clock, cursors: new Cursors(Buffer.alloc(32)), log })
  return { database, clock, jobs: again(), again }
}

function caller(input: Partial<Caller> = {}): Caller {
  return callerOf(account, input)
}

/** Work that goes on until it is told to end, and reports what it is told. */
function patient() {
  const end = Promise.withResolvers<Record<string, unknown>>()
  let report: ReportProgress | undefined
  const work = (tell: ReportProgress, signal: AbortSignal): Promise<Record<string, unknown>> => {
    report = tell
    signal.addEventListener('abort', () => end.reject(new Error('aborted')))
    return end.promise
  }
  return { work, end, report: (progress: Parameters<ReportProgress>[0]) => report?.(progress) }
}

async function over(jobs: Jobs, id: string): Promise<Job> {
  for (;;) {
    const job = await jobs.get(caller(), id)
    if (job.status !== 'running') return job
    await sleep(5)
  }
}

test('work goes on after the call, tells how far it is, and keeps what came of it', async () => {
  const { jobs } = await made()
  const { work, end, report } = patient()
  const begun = await jobs.start(caller(), 'backup', work)
  expect(begun).toMatchObject({ kind: 'backup', status: 'running', result: null, error: null, finished_at: null })
  report({ done: 3, total: 10, unit: 'files' })
  expect(await jobs.get(caller(), begun.id)).toMatchObject({ status: 'running', progress: { done: 3, total: 10, unit: 'files' } })
  end.resolve({ file: 'there' })
  expect(await over(jobs, begun.id)).toMatchObject({ status: 'done', result: { file: 'there' }, progress: { done: 3 } })
})

test('progress is written once a second at most', async () => {
  const { jobs, clock, database } = await made()
  const { work, end, report } = patient()
  const { id } = await jobs.start(caller(), 'backup', work)
  const written = async (): Promise<number> => {
    await database.probe()
    return (await database.get<{ done: number }>(sql`SELECT done FROM jobs WHERE id = ${id}`))!.done
  }
  report({ done: 1 })
  expect(await written()).toBe(0)
  clock.advance(1000)
  report({ done: 2 })
  report({ done: 3 })
  expect(await written()).toBe(3)
  report({ done: 4 })
  expect(await written()).toBe(3)
  end.resolve({})
  await over(jobs, id)
  expect(await written()).toBe(4)
})

test('one of a kind at a time, in the box or in each account', async () => {
  const { jobs } = await made()
  const other = caller({ account_id: newId('acct') })
  const first = patient()
  const begun = await jobs.start(caller(), 'backup', first.work)
  const running = { type: 'conflict', code: 'job_running' }
  await expect(jobs.start(caller(), 'backup', first.work)).rejects.toMatchObject({
    ...running,
    message: expect.stringContaining(begun.id),
  })
  await expect(jobs.start(other, 'backup', first.work)).rejects.toMatchObject({
    ...running,
    message: expect.not.stringContaining(begun.id),
  })
  const second = patient()
  const third = patient()
  await jobs.start(caller(), 'export', second.work, { each: 'account' })
  await jobs.start(other, 'export', third.work, { each: 'account' })
  await expect(jobs.start(other, 'export', third.work, { each: 'account' })).rejects.toMatchObject(running)
  first.end.resolve({})
  await over(jobs, begun.id)
  const again = patient()
  expect(await jobs.start(caller(), 'backup', again.work)).toMatchObject({ status: 'running' })
  await jobs.stop()
})

test('two that begin at once are not both begun', async () => {
  const { jobs } = await made()
  const { work } = patient()
  const both = await Promise.allSettled([jobs.start(caller(), 'backup', work), jobs.start(caller(), 'backup', work)])
  expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  await jobs.stop()
})

test('a job that fails says why: in its own words, or that the log knows', async () => {
  const { jobs } = await made()
  const told = await jobs.start(caller(), 'one', async () => {
    throw conflict('The mailbox is full.')
  })
  expect(await over(jobs, told.id)).toMatchObject({ status: 'failed', error: { message: 'The mailbox is full.' } })
  const bug = await jobs.start(caller(), 'two', async () => {
    throw new Error('secret path /var/x')
  })
  const { error } = await over(jobs, bug.id)
  expect(error!.message).toContain(bug.id)
  expect(error!.message).not.toContain('/var/x')
})

test('a job whose end the disk does not take is shown as ended, makes way for the next, and is written later', async () => {
  const { database, jobs } = await made()
  const { work, end } = patient()
  const { id } = await jobs.start(caller(), 'backup', work)
  const full = vi.spyOn(database, 'transaction').mockRejectedValue(new Error('the disk is full'))
  end.resolve({ bytes: 7 })
  const ended = await over(jobs, id)
  expect(ended).toMatchObject({ status: 'done', result: { bytes: 7 }, finished_at: expect.any(String) })
  expect((await jobs.list(caller(), paging)).data).toEqual([ended])
  expect(() => jobs.requireFree(caller(), 'backup')).not.toThrow()
  const rows = () => database.all(sql`SELECT status, finished_at FROM jobs WHERE id = ${id}`)
  expect(await rows()).toEqual([{ status: 'running', finished_at: null }])
  full.mockRestore()
  await vi.waitFor(async () => expect(await rows()).toEqual([{ status: 'done', finished_at: ended.finished_at }]), 10_000)
})

test('a job is cancelled by its id, and is as it was when it is over already', async () => {
  const { jobs } = await made()
  const { work } = patient()
  const { id } = await jobs.start(caller(), 'backup', work)
  expect(await jobs.cancel(caller(), id)).toMatchObject({ status: 'cancelled', error: null })
  expect(await jobs.cancel(caller(), id)).toMatchObject({ status: 'cancelled' })
  const forgotten: string[] = []
  jobs.keepsFiles('backup', async (gone) => void forgotten.push(gone))
  expect(await jobs.remove(caller(), id)).toEqual({ id, deleted: true })
  await expect(jobs.get(caller(), id)).rejects.toMatchObject({ type: 'not_found' })
  expect(forgotten).toEqual([id])
})

test('a job of a key that expires ends at the next thing it does after that', async () => {
  const { jobs, clock } = await made()
  const [brief, lasting] = [patient(), patient()]
  const { id } = await jobs.start(caller({ until: clock.now() + 60_000 }), 'import', brief.work)
  const other = await jobs.start(caller(), 'export', lasting.work)
  brief.report({ done: 1 })
  clock.advance(60_000)
  for (const one of [brief, lasting]) one.report({ done: 2 })
  expect(await over(jobs, id)).toMatchObject({ status: 'failed', error: { code: 'key_expired' }, progress: { done: 2 } })
  expect(await jobs.get(caller(), other.id)).toMatchObject({ status: 'running' })
  await jobs.stop()
})

test('who may only read a job does not end it, nor who may write something else', async () => {
  const { jobs } = await made()
  jobs.endedBy('export', ['messages:write', 'emails:write'])
  const reads: Scope[] = ['identities:read', 'messages:read', 'emails:read', 'sms:read', 'cards:read', 'account:read']
  const holding = (...more: Scope[]): Caller => caller({ scopes: new Set([...reads, ...more]) })
  const exporting = await jobs.start(caller(), 'export', patient().work, { scopes: ['messages:read'] })
  const backup = await jobs.start(caller(), 'backup', patient().work, { scopes: ['account:read'] })
  const refused = { type: 'forbidden', code: 'insufficient_scope' }
  for (const [id, who] of [
    [exporting.id, holding()],
    [exporting.id, holding('account:write', 'cards:write')],
    [backup.id, holding()],
    [backup.id, holding('messages:write', 'identities:write')],
  ] as const) {
    await expect(jobs.cancel(who, id)).rejects.toMatchObject(refused)
    await expect(jobs.remove(who, id)).rejects.toMatchObject(refused)
    expect(await jobs.get(who, id)).toMatchObject({ status: 'running' })
  }
  expect(await jobs.cancel(holding('emails:write'), exporting.id)).toMatchObject({ status: 'cancelled' })
  expect(await jobs.cancel(holding('account:write'), backup.id)).toMatchObject({ status: 'cancelled' })
})

test('what a stop or a crash cut off is failed, and says so', async () => {
  const { jobs, again } = await made()
  const stopped = await jobs.start(caller(), 'backup', patient().work)
  await jobs.stop()
  expect(await jobs.get(caller(), stopped.id)).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('stopped') },
  })
  const killed = await jobs.start(caller(), 'backup', patient().work)
  // another process over the same data, as after a kill: it knows nothing of what ran
  const next = again()
  expect(await next.get(caller(), killed.id)).toMatchObject({ status: 'running' })
  await next.beginAgain()
  expect(await next.get(caller(), killed.id)).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('restart') },
  })
  await jobs.stop()
})

test('jobs are seen by their account, by keys of their identity, and by whoever may read what they hold', async () => {
  const { jobs } = await made()
  const [one, two] = [newId('ident'), newId('ident')]
  const holds: Scope[] = ['messages:read', 'cards:read']
  const { id } = await jobs.start(caller(), 'export', async () => ({}), { identity_id: one, scopes: holds })
  await over(jobs, id)
  const seen = async (input: Partial<Caller>): Promise<number> =>
    (await jobs.list(caller(input), { ...paging, kind: undefined })).data.length
  expect(await seen({})).toBe(1)
  expect(await seen({ identity_id: one })).toBe(1)
  expect(await seen({ identity_id: two })).toBe(0)
  expect(await seen({ account_id: newId('acct') })).toBe(0)
  expect(await seen({ scopes: new Set(holds) })).toBe(1)
  expect(await seen({ scopes: new Set<Scope>(['messages:read', 'emails:read']) })).toBe(0)
  await expect(jobs.get(caller({ scopes: new Set(['cards:read']) }), id)).rejects.toMatchObject({ type: 'not_found' })
})

test('what is over is forgotten after a week', async () => {
  const { jobs, clock } = await made()
  const { id } = await jobs.start(caller(), 'export', async () => ({}))
  await over(jobs, id)
  clock.advance(7 * 86_400_000 - 1)
  await jobs.sweep()
  expect(await jobs.knows(id)).toBe(true)
  clock.advance(2)
  await jobs.sweep()
  expect(await jobs.knows(id)).toBe(false)
})

/** So many finished jobs of an identity, and the id of the oldest. */
async function finished(database: Database, number: number, { kind = 'import', identity = newId('ident'), at = 0 } = {}) {
  const ids = Array.from({ length: number }, () => newId('job'))
  await database.transaction(async (tx) => {
    for (const id of ids) {
      await tx.run(
        sql`INSERT INTO jobs (id, account_id, identity_id, kind, status, scopes, created_at, finished_at)
          VALUES (${id}, ${account}, ${identity}, ${kind}, 'done', '  ', ${iso(at)}, ${iso(at)})`,
      )
    }
  })
  return { identity, oldest: ids[0]! }
}

async function count(database: Database): Promise<number> {
  return (await database.get<{ n: number }>(sql`SELECT count(*) AS n FROM jobs`))!.n
}

test('an account keeps its last thousand jobs, and the file of none before', async () => {
  const { jobs, database } = await made()
  const removed: string[] = []
  jobs.keepsFiles('export', async (id) => void removed.push(id))
  const running = await jobs.start(caller(), 'backup', patient().work)
  const { oldest } = await finished(database, 1, { kind: 'export' })
  await finished(database, 999)
  const { id } = await jobs.start(caller(), 'import', async () => ({}))
  await over(jobs, id)
  await vi.waitFor(() => expect(removed).toEqual([oldest]), 100_000)
  expect(await jobs.knows(oldest)).toBe(false)
  expect(await jobs.knows(running.id)).toBe(true)
  expect(await count(database)).toBe(1001)
  await jobs.stop()
})

test('the jobs of a deleted identity go a thousand at a time, and only files that there can be are removed', async () => {
  const { jobs, database } = await made()
  const removed: string[] = []
  jobs.keepsFiles('export', async (id) => void removed.push(id))
  const { identity } = await finished(database, 2500)
  const { oldest } = await finished(database, 1, { kind: 'export', identity })
  const running = await jobs.start(caller(), 'import', patient().work, { identity_id: identity })
  await database.transaction((tx) => jobs.leave(tx, identity))
  expect(await count(database)).toBe(1502)
  await expect(jobs.get(caller(), running.id)).rejects.toMatchObject({ type: 'not_found' })
  await vi.waitFor(() => expect(jobs.runs(running.id)).toBe(false), 100_000)
  while ((await database.transaction((tx) => jobs.leaveSome(tx, identity))) !== undefined);
  expect(await count(database)).toBe(0)
  expect(removed).toEqual([oldest])
})

test('old jobs are deleted a thousand at a time', async () => {
  const { jobs, database } = await made()
  await finished(database, 1500, { at: -86_400_000 * 30 })
  const deleted: number[] = []
  const transaction = database.transaction.bind(database)
  vi.spyOn(database, 'transaction').mockImplementation(async (work) => {
    const before = await count(database)
    const result = await transaction(work)
    deleted.push(before - (await count(database)))
    return result
  })
  await jobs.sweep()
  expect(deleted).toEqual([1000, 500])
})

test('the jobs of some accounts leave room for the first of another, not for its second', async () => {
  const { jobs } = await made()
  for (let n = 0; n < 4; n++) {
    const one = caller({ account_id: newId('acct') })
    await jobs.start(one, 'import', patient().work, { each: 'account' })
    await jobs.start(one, 'export', patient().work, { each: 'account' })
  }
  const other = caller({ account_id: newId('acct') })
  expect(await jobs.start(other, 'import', patient().work, { each: 'account' })).toMatchObject({ status: 'running' })
  await expect(jobs.start(other, 'export', patient().work, { each: 'account' })).rejects.toMatchObject({
    type: 'conflict',
    code: 'too_many_jobs',
  })
  await jobs.stop()
})

test('the box has an end of jobs, however many accounts there are', async () => {
  const { jobs } = await made()
  const each = { each: 'account' } as const
  for (let n = 0; n < 64; n++) await jobs.start(caller({ account_id: newId('acct') }), 'import', patient().work, each)
  const other = caller({ account_id: newId('acct') })
  await expect(jobs.start(other, 'import', patient().work, each)).rejects.toMatchObject({ code: 'too_many_jobs' })
  await jobs.stop()
})
