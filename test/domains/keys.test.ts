import { createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { Cursors } from '../../src/store/page.ts'
import { Fault } from '../../src/core/fault.ts'
import { createLog } from '../../src/core/log.ts'
import { Metrics } from '../../src/core/metrics.ts'
import type { Caller } from '../../src/core/scopes.ts'
import { Seal } from '../../src/core/seal/seal.ts'
import { DkimKeys } from '../../src/domains/keys.ts'
import type { Database } from '../../src/store/database.ts'
import type { Domain } from '../../src/domains/model.ts'
import { DomainsModule } from '../../src/domains/module.ts'
import { EventLog } from '../../src/events/log.ts'
import type { ModuleBasis } from '../../src/module.ts'
import { opened } from '../store/opened.ts'
import { limitless } from '../support/limitless.ts'
import { appliance } from '../support/appliance.ts'
import { DnsStub } from '../support/dns-stub.ts'
import { folder } from '../support/folder.ts'
import { onlyCaches } from '../../src/store/sqlite/only-run.ts'
import { HeldClock } from '../support/held-clock.ts'
import { publish, verifiedDomain } from '../support/verified-domain.ts'

const minute = 60_000
const hour = 60 * minute
const own = 'pillarbox.test'
const operator: Caller = {
  account_id: 'acct_operator',
  key_id: null,
  session_id: null,
  secret: 0,
  scopes: new Set(),
  identity_id: null,
  rate_limit: 0,
  until: Infinity,
  ip: '127.0.0.1',
  user_agent: '',
}

describe('the keys of a domain', () => {
  test('of the box are made when somebody first looks at it, not at the start', async () => {
    const box = await appliance()
    const file = join(box.directory, 'data', 'pillarbox.db')
    expect(keysIn(file)).toEqual([])
    const [one, other] = await Promise.all([box.call('GET', '/v1/domains'), box.call('GET', '/v1/domains?limit=1')])
    expect(one.body.data[0].dns_records).toEqual(other.body.data[0].dns_records)
    expect(keysIn(file).map(({ algorithm, state }) => `${algorithm} ${state}`)).toEqual([
      'rsa-sha256 active',
      'ed25519-sha256 active',
      'rsa-sha256 spare',
      'ed25519-sha256 spare',
    ])
    const domain = await verifiedDomain(box)
    await box.restart()
    expect((await box.call('GET', `/v1/domains/${domain.id}`)).body['dns_records']).toEqual(domain.dns_records)
  })

  test('lie sealed on disk, and are told to nobody', async () => {
    const box = await appliance()
    const domain = await verifiedDomain(box)
    const answers = [
      await box.call('GET', '/v1/domains'),
      await box.call('GET', `/v1/domains/${domain.id}/zone`),
      await box.call('POST', `/v1/domains/${domain.id}/dkim/rotate`),
    ]
    expect(JSON.stringify(answers.map(({ body }) => body))).not.toMatch(/private|PRIVATE/)
    const rows = keysIn(join(box.directory, 'data', 'pillarbox.db'))
    for (const { private_key, state, public_text } of rows) {
      const bytes = Buffer.from(private_key)
      // the key's own octets, without those that all keys begin with
      expect(bytes.includes(Buffer.from(public_text, 'base64').subarray(-30, -5))).toBe(false)
      expect(bytes.length === 0).toBe(state === 'retired')
    }
    expect(rows.map(({ state }) => state).toSorted()).toEqual(['active', 'active', 'retired', 'retired', 'spare', 'spare'])
  })

  test('sign so that what the DNS says of them can check it; after a rotation the others do', async () => {
    const { part, dns } = await scene()
    const first = await part.domains.signingKeys(own)
    expect(first.map(({ algorithm }) => algorithm)).toEqual(['rsa-sha256', 'ed25519-sha256'])
    const [domain] = (await part.domains.list(operator, page)).data
    expectPublished(first, domain!)
    expect(await part.domains.signingKeys(own)).toBe(first)
    expect(await part.domains.signingKeys('elsewhere.test')).toEqual([])

    publish(dns, domain!)
    const rotated = (await called(part, 'POST', '/domains/:id/dkim/rotate', domain!.id)) as Domain
    const second = await part.domains.signingKeys(own)
    expect(second.map(({ selector }) => selector)).not.toEqual(first.map(({ selector }) => selector))
    expectPublished(second, rotated)
  })

  test('do not open in the place of others, nor under another master key', async () => {
    const first = await scene()
    await first.part.domains.signingKeys(own)
    const database = openStore(first.file, { timeout: 60_000 })
    database.exec(`UPDATE dkim_keys SET private_key = (SELECT private_key FROM dkim_keys WHERE state = 'spare' LIMIT 1)`)
    database.close()
    const second = await scene({ directory: first.directory })
    await expect(second.part.domains.signingKeys(own)).rejects.toThrow(/authenticate/)
    const third = await scene({ master: Buffer.alloc(32, 2), directory: first.directory })
    await expect(third.part.domains.signingKeys(own)).rejects.toThrow(/authenticate/)
  })
})

describe('sending from a domain', () => {
  test('is a conflict until it is verified', async () => {
    const { part, dns } = await scene()
    expect(codeOf(() => part.domains.requireSending(own, 'far.test'))).toBe('domain_not_verified')
    expect(codeOf(() => part.domains.requireSending('elsewhere.test', 'far.test'))).toBe('domain_not_verified')
    const [domain] = (await part.domains.list(operator, page)).data
    publish(dns, domain!)
    await called(part, 'POST', '/domains/:id/verify', domain!.id)
    expect(codeOf(() => part.domains.requireSending(own, 'far.test'))).toBeUndefined()
  })
})

describe('looking by itself', () => {
  test('begins often and comes down to once a day; a verified domain is looked at hourly', async () => {
    const { part, dns, clock } = await scene()
    const looks = async (span: number, step: number): Promise<number> => {
      dns.queries.length = 0
      for (let passed = 0; passed < span; passed += step) {
        clock.advance(step)
        await run(part)
      }
      return dns.queries.filter((query) => query === `MX ${own}`).length
    }
    // nobody has looked at it, so nobody can have published anything
    expect(await looks(10 * minute, minute)).toBe(0)
    const [domain] = (await part.domains.list(operator, page)).data
    expect(await looks(10 * minute, minute / 2)).toBeGreaterThanOrEqual(4)
    expect(await looks(24 * hour, 10 * minute)).toBeLessThanOrEqual(40)
    await looks(14 * 24 * hour, hour)
    expect(await looks(4 * 24 * hour, hour)).toBeLessThanOrEqual(5)

    publish(dns, domain!)
    expect(await looks(30 * hour, hour)).toBeGreaterThanOrEqual(1)
    expect((await part.domains.get(operator, domain!.id)).status).toBe('verified')
    const day = await looks(24 * hour, 6 * minute)
    expect(day).toBeGreaterThanOrEqual(21)
    expect(day).toBeLessThanOrEqual(27)
  })

  test('is not held up by one domain whose name servers are silent', async () => {
    const { part, dns, clock } = await scene()
    const made: Domain[] = []
    for (const name of ['one.example', 'two.example', 'three.example']) made.push(await part.domains.create(operator, { name }))
    for (const domain of made.slice(1)) publish(dns, domain)
    for (const { name } of made[0]!.dns_records) dns.fails(name, 'silence')
    clock.advance(minute)
    await run(part)
    const states = await Promise.all(made.map(({ id }) => part.domains.get(operator, id)))
    expect(states.map(({ status }) => status)).toEqual(['pending', 'verified', 'verified'])
  })
})

const page = { limit: 50, offset: 0 }

async function scene({ master = Buffer.alloc(32, 1), directory = folder() } = {}) {
  const clock = new HeldClock()
  const dns = await DnsStub.start()
  const { database, file } = await opened(directory)
  const config = await loadConfig({
    env: { PILLARBOX_DNS__SERVERS: dns.servers.join(','), PILLARBOX_DNS__TIMEOUT: '2 s' },
    cwd: directory,
  })
  const part = new DomainsModule({
    database,
    clock,
    config,
    plan: limitless(database, clock),
    seal: new Seal(master),
    events: new EventLog(database, clock),
    cursors: new Cursors(Buffer.alloc(32)),
    log: createLog('silent'),
    metrics: new Metrics(),
    account: operator.account_id,
    // it uses nothing of the rest
    ...({} as Omit<ModuleBasis, 'database' | 'clock' | 'config' | 'seal' | 'events' | 'cursors' | 'log' | 'metrics' | 'account'>),
  })
  await part.start()
  onTestFinished(async () => {
    await database.close()
    await dns.close()
  })
  return { part, dns, clock, file, directory }
}

function run(part: DomainsModule): Promise<void> {
  return part.jobs.find(({ name }) => name === 'check-domains')!.run()
}

function called(part: DomainsModule, method: string, path: string, id: string): Promise<unknown> {
  const found = part.routes.find((one) => one.method === method && one.path === path)!
  return found.handle({ params: { id }, caller: operator } as never)
}

/** Whether what the keys sign is checked by what the records say. */
function expectPublished(
  keys: Awaited<ReturnType<DomainsModule['domains']['signingKeys']>>,
  { name, dns_records }: Domain,
): void {
  for (const { selector, algorithm, private_key } of keys) {
    const record = dns_records.find((one) => one.name === `${selector}._domainkey.${name}`)!
    const text = Buffer.from(/p=(.*)$/.exec(record.value)![1]!, 'base64')
    // RFC 8410: what comes before the 32 octets of an Ed25519 key
    const spki = algorithm === 'rsa-sha256' ? text : Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), text])
    const digest = algorithm === 'rsa-sha256' ? 'sha256' : null
    const signature = sign(digest, Buffer.from('hello'), private_key)
    const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
    expect(verify(digest, Buffer.from('hello'), key, signature)).toBe(true)
  }
}

interface KeyRow {
  algorithm: string
  state: string
  private_key: Uint8Array
  public_text: string
}

function keysIn(file: string): KeyRow[] {
  const database = openStore(file, { readOnly: true, timeout: 60_000 })
  try {
    return database
      .prepare('SELECT algorithm, state, private_key, public_text FROM dkim_keys ORDER BY seq')
      .all() as unknown as KeyRow[]
  } finally {
    database.close()
  }
}

function codeOf(work: () => void): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return error instanceof Fault ? error.code : String(error)
  }
}

test('keys for one account do not wait behind all those of another, and none are made for a call that has gone', async () => {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const waiting: (() => void)[] = []
  const keys = new DkimKeys({
    ...({} as Pick<ConstructorParameters<typeof DkimKeys>[0], 'seal' | 'nextCheck'>),
    database: { caches: onlyCaches } as unknown as Database,
    clock: new HeldClock(),
    rsaPair: () => new Promise((resolve) => waiting.push(() => resolve(pair))),
  })
  const made: string[] = []
  const gone = new AbortController()
  const many = Array.from({ length: 5 }, () => keys.make('acct_many').then(() => made.push('many')))
  const left = keys.make('acct_many', gone.signal)
  const one = keys.make('acct_one').then(() => made.push('one'))
  gone.abort()
  await expect(left).rejects.toThrow('aborted')
  let count = 0
  while (made.length < 6) {
    const next = waiting.shift()
    if (next) count += 1
    next?.()
    await new Promise(setImmediate)
  }
  await Promise.all([...many, one])
  expect(made.indexOf('one')).toBeLessThan(2)
  expect(count).toBe(6)
})
