import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/core/clock.ts'
import { newId } from '../../../src/core/ids.ts'
import type { Caller } from '../../../src/core/scopes.ts'
import { Jobs, type ReportProgress } from '../../../src/jobs/jobs.ts'
import type { PostgresDatabase } from '../../../src/store/postgres/database.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import type { PostgresTarget } from '../../../src/store/postgres/target.ts'
import { Cursors } from '../../../src/store/page.ts'
import { callerOf } from '../../support/caller.ts'
import { quiet } from '../opened.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { heartbeat } from './queue-of-box.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

const postgres = serverOfFile()
let target: PostgresTarget
let count = 0

beforeEach(async () => {
  target = await emptyDatabase(postgres(), `jobs_${(count += 1)}`)
  await preparePostgres(target, false)
})

interface Box {
  database: PostgresDatabase
  jobs: Jobs
}

async function started(at = target): Promise<Box> {
  const { database } = await opened(at, { shared: true, heartbeat })
  const jobs = new Jobs({ database, clock: systemClock, cursors: new Cursors(Buffer.alloc(32)), log: quiet })
  await jobs.beginAgain()
  onTestFinished(() => jobs.stop())
  return { database, jobs }
}

function caller(account = newId('acct')): Caller {
  return callerOf(account)
}

/** Work that goes on until it is told to end; `stopped` is why. */
function patient() {
  const end = Promise.withResolvers<Record<string, unknown>>()
  const state = { stopped: '', report: (() => {}) as ReportProgress }
  const work = (tell: ReportProgress, signal: AbortSignal): Promise<Record<string, unknown>> => {
    state.report = tell
    signal.addEventListener('abort', () => {
      state.stopped = String(signal.reason)
      end.reject(new Error('aborted'))
    })
    return end.promise
  }
  return { work, end, state }
}

test('one job of a kind at a time, whichever box it is asked of; it is seen at each', async () => {
  const [one, two] = [await started(), await started()]
  const [me, other] = [caller(), caller()]
  const { work, end } = patient()
  const { id } = await one.jobs.start(me, 'backup', work)
  expect(await two.jobs.get(me, id)).toMatchObject({ status: 'running' })
  const message = expect.stringContaining(id)
  await expect(two.jobs.start(me, 'backup', work)).rejects.toMatchObject({ code: 'job_running', message })
  await expect(two.jobs.start(other, 'backup', work)).rejects.toMatchObject({
    code: 'job_running',
    message: expect.not.stringContaining(id),
  })
  await one.jobs.start(me, 'export', patient().work, { each: 'account' })
  await expect(two.jobs.start(me, 'export', work, { each: 'account' })).rejects.toMatchObject({ code: 'job_running' })
  expect(await two.jobs.start(other, 'export', patient().work, { each: 'account' })).toMatchObject({ status: 'running' })
  end.resolve({ file: 'there' })
  await expect.poll(() => two.jobs.get(me, id)).toMatchObject({ status: 'done', result: { file: 'there' } })
  expect(await two.jobs.start(me, 'backup', patient().work)).toMatchObject({ status: 'running' })
})

test('of two boxes that are asked at once, one begins', async () => {
  const [one, two] = [await started(), await started()]
  const me = caller()
  const begun = await Promise.allSettled([one, two].map(({ jobs }) => jobs.start(me, 'backup', patient().work)))
  expect(begun.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
})

test('a job is cancelled or deleted at another box than it runs at: it stops when it next reports', async () => {
  const [one, two] = [await started(), await started()]
  const me = caller()
  for (const how of ['cancel', 'remove'] as const) {
    const { work, state } = patient()
    const { id } = await one.jobs.start(me, 'backup', work)
    const answer = await two.jobs[how](me, id)
    expect(answer).toMatchObject(how === 'cancel' ? { id, status: 'cancelled' } : { id, deleted: true })
    await expect
      .poll(() => {
        state.report({ done: 1 })
        return state.stopped
      })
      .toBe('cancelled')
    await expect.poll(() => one.jobs.work).toBeUndefined()
    if (how === 'cancel') expect(await one.jobs.get(me, id)).toMatchObject({ status: 'cancelled' })
    else await expect(one.jobs.get(me, id)).rejects.toMatchObject({ type: 'not_found' })
  }
})

test('the job of a box that is cut off stops, and is said to be interrupted by the others', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  const [cut, other] = [await started({ ...target, port: proxy.port }), await started()]
  const me = caller()
  const { work, state } = patient()
  const { id } = await cut.jobs.start(me, 'backup', work)
  // another that begins does not take it for interrupted
  await (await started()).jobs.beginAgain()
  expect(await other.jobs.get(me, id)).toMatchObject({ status: 'running' })
  proxy.block()
  await expect.poll(() => other.jobs.get(me, id)).toMatchObject({ status: 'failed', error: { code: 'restarted' } })
  expect(state.stopped).toBe('lost')
  expect(await other.jobs.start(me, 'backup', patient().work)).toMatchObject({ status: 'running' })
  proxy.unblock()
  await expect.poll(() => cut.database.run.alive).toBe(true)
  await expect.poll(() => cut.jobs.work).toBeUndefined()
  expect(await other.jobs.get(me, id)).toMatchObject({ status: 'failed', error: { code: 'restarted' } })
})
