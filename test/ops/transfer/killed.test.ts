import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { folder } from '../../support/folder.ts'
import { boxProcess, testBox } from '../../support/process.ts'
import { message } from '../../support/appliance.ts'
import type { Fields } from './moving.ts'

const key = 'test-key-with-every-scope-1234567890'

test('killed while it imports, the box says so at the next start, and the same import leaves nothing twice', async () => {
  const directory = folder()
  const env = { ...testBox, PILLARBOX_DATA_DIR: join(directory, 'data'), PILLARBOX_BOOTSTRAP_KEY: key }
  const start = async (): Promise<{
    process: ReturnType<typeof boxProcess>
    call: (method: string, path: string, body?: string) => Promise<Fields>
  }> => {
    const process = boxProcess(env)
    const { api } = await process.said('started')
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const call = async (method: string, path: string, body?: string): Promise<Fields> => {
      const answer = await fetch(`${String(api)}${path}`, { method, headers, ...(body === undefined ? {} : { body }) })
      return JSON.parse(await answer.text()) as Fields
    }
    return { process, call }
  }
  const letters = Array.from({ length: 600 }, (_, number) => {
    const raw = message({ Subject: `Letter ${number}`, 'Message-ID': `<l${number}@sender.test>` }, 'Words.')
    return `From a@b.test Fri Nov 20 10:00:00 2020\r\n${raw}\r\n\r\n`
  }).join('')
  const first = await start()
  const { id } = await first.call('POST', '/v1/identities', '{}')
  const { id: job } = await first.call('POST', `/v1/identities/${id}/import`, letters)
  for (;;) {
    const { progress, status } = await first.call('GET', `/v1/jobs/${job}`)
    if (status !== 'running' || progress.done > 0) break
    await sleep(5)
  }
  await first.process.end('SIGKILL')
  const second = await start()
  expect(await second.call('GET', `/v1/jobs/${job}`)).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('interrupted by a restart') },
  })
  const { id: again } = await second.call('POST', `/v1/identities/${id}/import`, letters)
  for (;;) {
    const { status, result } = await second.call('GET', `/v1/jobs/${again}`)
    if (status === 'running') {
      await sleep(20)
      continue
    }
    expect(result.imported + result.duplicates).toBe(600)
    break
  }
  const { data, has_more } = await second.call('GET', `/v1/identities/${id}/emails?limit=1&offset=599`)
  expect([data.length, has_more]).toEqual([1, false])
  await second.process.end('SIGTERM')
})
