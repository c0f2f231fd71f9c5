import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Answer, bootstrapKey, call, deliver, message } from '../../support/appliance.ts'
import { folder } from '../../support/folder.ts'
import { live, type Live } from '../../support/live.ts'
import { boxProcess, type BoxProcess, testBox } from '../../support/process.ts'
import { serverOfFile, emptyDatabase } from './server.ts'

const postgres = serverOfFile()

interface Box {
  process: BoxProcess
  env: Record<string, string>
  url: string
  smtp: { host: string; port: number }
  ask: (method: string, path: string, body?: unknown, key?: string) => Promise<Answer<ReturnType<typeof JSON.parse>>>
}

/** Runs a box as an operator does, as one of several. */
async function serve(name: string, keys: string, changes: Record<string, string> = {}): Promise<Box> {
  const env = {
    ...testBox,
    PILLARBOX_DATA_DIR: join(folder(), 'data'),
    PILLARBOX_KEYS_DIR: keys,
    PILLARBOX_DATABASE__URL: postgres().url(name),
    PILLARBOX_DATABASE__SEVERAL: 'true',
    PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
    PILLARBOX_MAIL__DOMAIN: 'box.test',
    PILLARBOX_DNS__SERVERS: '127.0.0.1:9',
    ...changes,
  }
  const process = boxProcess(env)
  const { api, smtp } = await process.said('started')
  const url = api as string
  const ask: Box['ask'] = (method, path, body, key = bootstrapKey) => call({ url, key }, method, path, body, {})
  return { process, env, url, smtp: (smtp as Box['smtp'][])[0]!, ask }
}

/** A directory with the same master key, as it is on another machine. */
function copyOf(keys: string): string {
  const other = join(folder(), 'keys')
  mkdirSync(other, { mode: 0o700 })
  copyFileSync(join(keys, 'master.key'), join(other, 'master.key'))
  return other
}

async function socket({ ask }: Box): Promise<Live> {
  const { body } = await ask('POST', '/v1/realtime/token', {})
  return live(`${body.url}?token=${body.token}`)
}

const others = async ({ ask }: Box): Promise<[string, string]> => {
  const { body } = await ask('POST', '/v1/doctor')
  const { status, message: said } = body.lines.find((line: { name: string }) => line.name === 'boxes')
  return [status, said]
}

test(
  'two processes on one database are one box to their callers, and one goes on when the other is killed',
  { timeout: 180_000 },
  async () => {
    await emptyDatabase(postgres(), 'processes')
    const keys = join(folder(), 'keys')
    const one = await serve('processes', keys)
    const other = await serve('processes', copyOf(keys))

    // a key that is revoked at one is refused at the other
    const { body: made } = await one.ask('POST', '/v1/api-keys', { label: 'short', scopes: ['identities:read'] })
    const statusAt = async ({ ask }: Box): Promise<number> => (await ask('GET', '/v1/identities', undefined, made.key)).status
    for (const box of [one, other]) expect(await statusAt(box)).toBe(200)
    expect((await one.ask('DELETE', `/v1/api-keys/${made.id}`)).status).toBe(200)
    expect(await statusAt(one)).toBe(401)
    await expect.poll(() => statusAt(other), { timeout: 1000, interval: 50 }).toBe(401)

    // mail that comes in at one is read at the other, whose sockets hear of it
    const { body: ada } = await one.ask('POST', '/v1/identities', { name: 'Ada' })
    const listening = await socket(other)
    listening.say({ type: 'subscribe', channel: 'agent_events' })
    await listening.until('subscribed')
    const mail = async (box: Box, subject: string): Promise<void> =>
      expect(await deliver(box.smtp, { to: ada.email, raw: message({ To: ada.email, Subject: subject }, 'hello') })).toMatch(
        /^250/,
      )
    const subjects = async ({ ask }: Box): Promise<string[]> =>
      (await ask('GET', `/v1/identities/${ada.id}/emails`)).body.data.map((email: { subject: string }) => email.subject)
    await mail(one, 'first')
    expect(await subjects(other)).toEqual(['first'])
    await expect.poll(() => JSON.stringify(listening.frames)).toContain('first')
    expect(await others(one)).toEqual(['pass', expect.stringMatching(/^1 other box uses the database; the last heartbeat/)])

    // the master key stays while another box runs
    const rotating = boxProcess(one.env, ['key', 'rotate-master'])
    expect(await rotating.ended).not.toBe(0)
    expect(await one.process.end('SIGTERM')).toBe(0)
    const again = boxProcess(one.env, ['key', 'rotate-master'])
    expect(await again.ended).not.toBe(0)
    expect(again.errors()).toMatch(/Stop all boxes on it, then run this command again/)
    const back = await serve('processes', keys, { PILLARBOX_DATA_DIR: one.env['PILLARBOX_DATA_DIR']! })
    await mail(back, 'second')
    expect(await subjects(other)).toHaveLength(2)

    // one is killed: the other takes mail, its sockets go on, and it does what the other did for all
    expect(await back.process.end('SIGKILL')).toBe('SIGKILL')
    await mail(other, 'third')
    expect(await subjects(other)).toHaveLength(3)
    await expect.poll(() => JSON.stringify(listening.frames)).toContain('third')
    const last = await serve('processes', keys, { PILLARBOX_DATA_DIR: one.env['PILLARBOX_DATA_DIR']! })
    expect(await subjects(last)).toHaveLength(3)
  },
)

test(
  'a box without database.several is refused beside one with it, as is the setting without a database',
  { timeout: 120_000 },
  async () => {
    await emptyDatabase(postgres(), 'mixed')
    const keys = join(folder(), 'keys')
    const one = await serve('mixed', keys)
    const other = await serve('mixed', copyOf(keys))
    expect(await other.process.end('SIGTERM')).toBe(0)
    const alone = boxProcess({ ...other.env, PILLARBOX_DATABASE__SEVERAL: 'false' })
    expect(await alone.ended).not.toBe(0)
    expect(alone.errors() + alone.output()).toMatch(/One box at a time can use a database, unless each has database\.several/)
    expect((await one.ask('GET', '/v1/identities')).status).toBe(200)
    const { PILLARBOX_DATABASE__URL: _url, ...without } = one.env
    const lacking = boxProcess({ ...without, PILLARBOX_DATA_DIR: join(folder(), 'data') })
    expect(await lacking.ended).not.toBe(0)
    expect(lacking.errors() + lacking.output()).toMatch(/DATABASE__URL.* is required when database\.several is true/)
  },
)
