import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bootstrapKey, deliver, message } from '../../support/appliance.ts'
import { DnsStub } from '../../support/dns-stub.ts'
import { boxProcess, type BoxProcess, testBox } from '../../support/process.ts'
import { run } from '../../support/program.ts'
import { fillDisk, freeOn, smallDisk } from '../../support/small-disk.ts'

// boxes start and end, and each command is a process
const program = new URL('../../../src/main.ts', import.meta.url).pathname
const short = 'disk low on space: new data is rejected'
const roomAgain = 'disk has space again: new data is accepted'
const MiB = 1024 * 1024

interface Running {
  process: BoxProcess
  smtp: { host: string; port: number }
  call(method: string, path: string, body?: object): Promise<{ status: number; body: Any }>
}

// answers are JSON of any shape; tests say what they expect of it
type Any = ReturnType<typeof JSON.parse>

async function started(env: Record<string, string>): Promise<Running> {
  const box = boxProcess(env)
  const { api, smtp } = await box.said('started')
  return {
    process: box,
    smtp: smtp[0],
    async call(method, path, body) {
      const headers = { Authorization: `Bearer ${bootstrapKey}`, 'Content-Type': 'application/json' }
      const answer = await fetch(`${api}${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) })
      return { status: answer.status, body: JSON.parse(await answer.text()) }
    },
  }
}

async function settings(disk: string): Promise<Record<string, string>> {
  const dns = await DnsStub.start()
  return {
    ...testBox,
    PILLARBOX_DATA_DIR: join(disk, 'data'),
    PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
    PILLARBOX_DNS__SERVERS: dns.servers.join(','),
    PILLARBOX_MIN_FREE: '64 MiB',
  }
}

/** A message with a large attachment that packing makes no smaller. */
const large = (): string => {
  const octets = randomBytes(3 * MiB)
    .toString('base64')
    .replaceAll(/.{76}/g, '$&\n')
  const type = 'application/octet-stream'
  return message({ Subject: 'large', 'MIME-Version': '1.0', 'Content-Type': type, 'Content-Transfer-Encoding': 'base64' }, octets)
}

const command = async (env: Record<string, string>, ...words: string[]): Promise<[code: number | null, text: string]> => {
  const { code, output, errors } = await run(process.execPath, [program, ...words], { env, cwd: '/' })
  return [code, `${output.toString()}${errors}`]
}

/** A box with 8 messages of 4 MiB that was stopped. */
async function livedIn(disk: string): Promise<{ env: Record<string, string>; identity: string }> {
  const env = await settings(disk)
  const box = await started(env)
  const { body } = await box.call('POST', '/v1/identities', { name: 'Ada', email_username: 'ada' })
  for (let count = 0; count < 8; count++) {
    expect(await deliver(box.smtp, { to: body.email, raw: large() })).toMatch(/^250 /)
  }
  expect(await box.process.end('SIGTERM')).toBe(0)
  return { env, identity: body.id }
}

async function expectReadOnly(env: Record<string, string>, box: Running, identity: string): Promise<void> {
  expect(await command(env, 'ready')).toEqual([0, 'The box is up, but rejects new data: the disk is nearly full.\n'])
  const [, answered] = await command(env, 'ready', '--json')
  expect(JSON.parse(answered)).toEqual({ ready: true, failing: ['space'] })
  expect(await box.call('GET', '/readyz')).toEqual({ status: 503, body: { status: 'unavailable', failing: ['space'] } })
  expect((await box.call('GET', '/v1/status')).body).toMatchObject({
    failing: ['space'],
    disk: { low: true, min_free: 64 * MiB, free: expect.any(Number) },
  })
  const [code, screen] = await command(env, 'status')
  expect([code, screen]).toEqual([
    1,
    expect.stringMatching(/rejects new data: the disk is nearly full[^]*free, less than min_free \(64.0 MiB\)/),
  ])
  const { status, body } = await box.call('POST', '/v1/identities', { name: 'Bea' })
  expect([status, body.error.code]).toEqual([500, 'storage_full'])
  expect(await deliver(box.smtp, { to: 'ada@pillarbox.test', raw: message({}, 'x\n') })).toMatch(/^452 4\.3\.1 /)
  const list = await box.call('GET', `/v1/identities/${identity}/emails`)
  expect(list.body.data).toHaveLength(8)
  expect((await box.call('GET', `/v1/identities/${identity}/emails/${list.body.data[0].id}`)).status).toBe(200)
}

/** Deletes all mail of the identity for good. */
async function purge(box: Running, identity: string): Promise<void> {
  const list = await box.call('GET', `/v1/identities/${identity}/emails`)
  for (const { id } of list.body.data) {
    expect(await box.call('DELETE', `/v1/identities/${identity}/emails/${id}`)).toMatchObject({ status: 200 })
  }
  expect(await box.call('POST', `/v1/identities/${identity}/trash/empty`)).toMatchObject({ status: 200, body: { purged: 8 } })
}

test('with less than min_free free a box starts, reads, deletes and says so; what is deleted gives room back, and mail is taken again', async () => {
  const disk = smallDisk(192)
  if (disk === undefined) return
  const { env, identity } = await livedIn(disk)
  fillDisk(join(disk, 'ballast'), 48 * MiB)
  const box = await started(env)
  expect(await box.process.said(short)).toMatchObject({ level: 'warn', required: 64 * MiB, free: expect.any(Number) })
  await expectReadOnly(env, box, identity)
  await purge(box, identity)
  expect(await box.process.said(roomAgain)).toMatchObject({ level: 'warn', required: 64 * MiB, free: expect.any(Number) })
  expect(freeOn(disk)).toBeGreaterThan(72 * MiB)
  expect(await deliver(box.smtp, { to: 'ada@pillarbox.test', raw: message({}, 'x\n') })).toMatch(/^250 /)
  expect(await command(env, 'ready')).toEqual([0, 'The box is ready.\n'])
  expect(await box.process.end('SIGTERM')).toBe(0)
})

test('with no byte free a box starts, reads and deletes by the room that it reserved, and takes mail again once there is room', async () => {
  const disk = smallDisk(192)
  if (disk === undefined) return
  const { env, identity } = await livedIn(disk)
  expect(existsSync(join(disk, 'data', 'reserve'))).toBe(true)
  fillDisk(join(disk, 'ballast'))
  expect(freeOn(disk)).toBe(0)
  const box = await started(env)
  await box.process.said(short)
  await expectReadOnly(env, box, identity)
  // what others write takes all of the room that was let go of
  fillDisk(join(disk, 'more'))
  expect(freeOn(disk)).toBe(0)
  await purge(box, identity)
  rmSync(join(disk, 'ballast'))
  await box.process.said(roomAgain)
  expect(await deliver(box.smtp, { to: 'ada@pillarbox.test', raw: message({}, 'x\n') })).toMatch(/^250 /)
  expect(await box.process.end('SIGTERM')).toBe(0)
  const again = await started(env)
  expect(existsSync(join(disk, 'data', 'reserve'))).toBe(true)
  expect((await again.call('GET', '/v1/status')).body.disk.low).toBe(false)
})

test('a box that fills up while it runs says so, and goes on by itself once there is room', async () => {
  const disk = smallDisk(128)
  if (disk === undefined) return
  const env = await settings(disk)
  const box = await started(env)
  fillDisk(join(disk, 'ballast'))
  await box.process.said(short)
  expect(await deliver(box.smtp, { to: 'postmaster@pillarbox.test', raw: message({}, 'x\n') })).toMatch(/^452 4\.3\.1 /)
  const failed = async (): Promise<unknown[]> => {
    const [, text] = await command(env, 'doctor', '--json')
    const { lines } = JSON.parse(text) as { lines: { name: string; status: string; fix: string | null }[] }
    return lines.filter(({ name, status }) => ['disk', 'store'].includes(name) && status === 'fail').map(({ fix }) => fix)
  }
  expect(await failed()).toEqual([`Free space or enlarge the disk; show large directories: du -xh ${disk} | sort -h | tail`])
  rmSync(join(disk, 'ballast'))
  await box.process.said(roomAgain)
  expect(await deliver(box.smtp, { to: 'postmaster@pillarbox.test', raw: message({}, 'x\n') })).toMatch(/^250 /)
  expect(await failed()).toEqual([])
})

test('a full disk on which nothing was reserved is told as what it is, never as damage, and nothing changes', async () => {
  const disk = smallDisk(128)
  if (disk === undefined) return
  const env = await settings(disk)
  const first = await started(env)
  await first.call('POST', '/v1/identities', { name: 'Ada' })
  // killed: its log is there and must be read, for which SQLite makes an index of it
  await first.process.end('SIGKILL')
  for (const name of ['reserve', 'pillarbox.db-shm']) rmSync(join(disk, 'data', name), { force: true })
  fillDisk(join(disk, 'ballast'))
  const box = boxProcess(env)
  expect(await box.ended).toBe(1)
  expect(box.errors().replace(/\(\S+ \S+ free\)/, '(… free)')).toBe(
    `The disk of ${disk}/data is full (… free), and a box cannot be opened without some free space: free 16 MiB, and start again. No data was lost.\n`,
  )
  rmSync(join(disk, 'ballast'))
  const again = await started(env)
  expect((await again.call('GET', '/v1/identities')).body.data).toHaveLength(1)
})

test('a first start on a full disk makes nothing', async () => {
  const disk = smallDisk(8)
  if (disk === undefined) return
  const env = await settings(disk)
  const before = readdirSync(disk)
  const box = boxProcess(env)
  expect(await box.ended).toBe(1)
  expect(box.errors()).toBe(
    `A new box needs 16 MiB, and the disk of ${disk}/data has 8 MiB free. Free space, or set another data_dir.\n`,
  )
  expect(readdirSync(disk)).toEqual(before)
})
