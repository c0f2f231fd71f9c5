import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { MasterKey, nameOf } from '../../src/core/seal/master-key.ts'
import { readKey, Seal } from '../../src/core/seal/seal.ts'
import { sql } from '../../src/store/database.ts'
import { Keyring } from '../../src/store/keyring.ts'
import { prepare } from '../../src/store/migrate.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { contextOf } from '../../src/totp/secrets.ts'
import { quiet } from '../store/opened.ts'
import { appliance } from '../support/appliance.ts'
import { child } from '../support/child.ts'
import { folder } from '../support/folder.ts'
import { peer } from '../support/peer.ts'
import { boxProcess } from '../support/process.ts'
import { databaseOf, fill, holding, keysOf, sealedValues } from './sealed.ts'

/** Sealed columns of which a box alone has no values. */
const ofSeveralBoxes = ['acme_files.sealed', 'oauth_codes.sealed']

test('the command changes the key of a stopped box, and everything opens as before', async () => {
  const box = await appliance()
  const kept = await fill(box)
  const former = readFileSync(join(keysOf(box), 'master.key'), 'utf8')
  const running = boxProcess(box.env, ['key', 'rotate-master'], box.directory)
  expect(await running.ended).toBe(78)
  expect(running.errors()).toMatch(/in use by another Pillarbox process/)

  await box.app.stop()
  const before = sealedValues(box)
  expect(new Set(before.map(({ place }) => place.split(' ')[0]))).toEqual(
    new Set(box.app.sealed.map(({ table, column }) => `${table}.${column}`).filter((place) => !ofSeveralBoxes.includes(place))),
  )
  const rotating = boxProcess(box.env, ['key', 'rotate-master'], box.directory)
  expect([await rotating.ended, rotating.errors()]).toEqual([0, ''])
  expect(rotating.output()).toContain(`${before.length} values were re-encrypted`)
  expect(rotating.output()).toContain(join(keysOf(box), 'master.key.former'))

  expect(readdirSync(keysOf(box)).toSorted()).toEqual(['master.key', 'master.key.former'])
  for (const name of readdirSync(keysOf(box))) expect(statSync(join(keysOf(box), name)).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(keysOf(box), 'master.key.former'), 'utf8')).toBe(former)
  expect(readFileSync(join(keysOf(box), 'master.key'), 'utf8')).not.toBe(former)
  const after = sealedValues(box)
  expect(after.map(({ place, plain }) => ({ place, plain }))).toEqual(before.map(({ place, plain }) => ({ place, plain })))
  // who has the former key finds nothing that it opens
  for (const { kept: octets } of before) expect(holding(box.env['PILLARBOX_DATA_DIR']!, octets)).toEqual([])
  await box.restart()
  await kept.expectAll()
})

test('killed between any two steps, the next start knows the right key, and finishes', async () => {
  const box = await appliance()
  const kept = await fill(box)
  const left = {
    made: ['master.key', 'master.key.next'],
    sealed: ['master.key', 'master.key.next'],
    'former kept': ['master.key', 'master.key.former', 'master.key.next'],
    'in use': ['master.key', 'master.key.former'],
  }
  for (const [step, names] of Object.entries(left)) {
    await box.app.stop()
    const before = sealedValues(box)
    const key = readKey(join(keysOf(box), 'master.key'))
    const killed = child('keys/children/rotate.ts', [box.directory, JSON.stringify(box.env), step])
    expect(await killed.ended).toEqual({ code: null, errors: '' })
    expect([step, readdirSync(keysOf(box)).toSorted()]).toEqual([step, names])

    await box.restart()
    await kept.expectAll()
    await box.app.stop()
    const used = readKey(join(keysOf(box), 'master.key'))
    expect([step, used.equals(key)]).toEqual([step, step === 'made'])
    expect(readdirSync(keysOf(box))).not.toContain('master.key.next')
    if (step !== 'made') expect(readKey(join(keysOf(box), 'master.key.former')).equals(key)).toBe(true)
    expect(sealedValues(box).map(({ plain }) => plain)).toEqual(before.map(({ plain }) => plain))
  }
  // and what finished goes on
  const whole = child('keys/children/rotate.ts', [box.directory, JSON.stringify(box.env), 'none'])
  expect(await whole.ended).toEqual({ code: 0, errors: '' })
  await box.restart()
  await kept.expectAll()
}, 120_000)

test('killed at any moment, everything is sealed under the one key that is found', async () => {
  const directory = folder()
  const [file, keys] = [join(directory, 'box.db'), join(directory, 'keys')]
  prepare(file, false)
  const key = new MasterKey(keys)
  key.read(false)
  const count = 500
  await during(file, async (database) => {
    const { seal } = await Keyring.open(database, key)
    await database.transaction(async (tx) => {
      for (let index = 0; index < count; index += 1) {
        await tx.run(
          sql`INSERT INTO totp_entries (seq, id, account_id, identity_id, service_name, algorithm, digits, period, secret_slot, created_at)
            VALUES (${index + 1}, ${`totp_${index}`}, 'acct', 'ident', 'X', 'SHA1', 6, 30, ${index + 1}, '2026')`,
        )
        const sealed = seal.seal(Buffer.from(`secret ${index}`), contextOf(`totp_${index}`, 'ident'))
        await tx.run(sql`INSERT INTO totp_secrets (slot, secret) VALUES (${index + 1}, ${sealed})`)
      }
    })
  })
  const seen = new Set<string>()
  for (let round = 0; round < 15; round += 1) {
    const rotating = child('keys/children/rotate-on.ts', [file, keys])
    await rotating.until(1 + (round % 3))
    await sleep(Math.random() * 50)
    await rotating.kill()
    seen.add(readdirSync(keys).toSorted().join(' '))
    await during(file, async (database) => {
      const { seal } = await Keyring.open(database, key)
      const rows = await database.all<{ id: string; secret: Uint8Array }>(
        sql`SELECT id, secret FROM totp_entries JOIN totp_secrets ON slot = secret_slot ORDER BY seq`,
      )
      const opened = rows.map(({ id, secret }) => seal.open(secret, contextOf(id, 'ident')).toString())
      expect(opened).toEqual(Array.from({ length: count }, (_, index) => `secret ${index}`))
    })
    expect(readdirSync(keys).filter((name) => !['master.key', 'master.key.former'].includes(name))).toEqual([])
  }
  // the kills met it at work, not only between two rotations
  expect([...seen].some((names) => names.includes('.next'))).toBe(true)
}, 120_000)

test('what a power cut could lose is on disk before the next step relies on it', async () => {
  const strace = peer('strace')
  if (strace === undefined) return
  const box = await appliance()
  await fill(box)
  await box.app.stop()
  const trace = join(box.directory, 'trace')
  const calls = 'trace=fsync,fdatasync,pwrite64,link,linkat,rename,renameat2'
  const traced = child(
    'keys/children/rotate.ts',
    [box.directory, JSON.stringify(box.env)],
    [strace, '-f', '-y', '-e', calls, '-o', trace],
  )
  expect(await traced.ended).toMatchObject({ code: 0 })
  const lines = readFileSync(trace, 'utf8').split('\n')
  const keys = keysOf(box)
  const after = (from: number, pattern: RegExp): number => {
    const index = lines.findIndex((line, place) => place > from && pattern.test(line))
    expect([pattern.source, index]).not.toEqual([pattern.source, -1])
    return index
  }
  const folderSynced = new RegExp(`fsync\\(\\d+<${keys}>\\) += 0`)
  const made = after(
    after(-1, /fsync\(\d+<[^>]*master\.key\.next\.[0-9a-f]{12}>\) += 0/),
    /link(?:at)?\(.*"[^"]*master\.key\.next"/,
  )
  const named = after(made, folderSynced)
  const written = after(made, /pwrite64\(\d+<[^>]*pillarbox\.db-wal>/)
  expect(named).toBeLessThan(written)
  const committed = after(written, /fdatasync(?:\(\d+<[^>]*pillarbox\.db-wal>\)| resumed>\)) += 0/)
  const former = after(made, /link(?:at)?\(.*"[^"]*master\.key\.former"/)
  expect(committed).toBeLessThan(former)
  const formerNamed = after(former, folderSynced)
  const used = after(made, /rename(?:at2)?\(.*master\.key\.next".*"[^"]*master\.key"/)
  expect(formerNamed).toBeLessThan(used)
  after(used, folderSynced)
})

test('a start with another key than the database is sealed under is refused, and says where the right one is', async () => {
  const box = await appliance()
  const kept = await fill(box)
  await box.app.stop()
  const keys = keysOf(box)
  const right = readFileSync(join(keys, 'master.key'))
  writeFileSync(join(keys, 'master.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`)
  await expect(box.restart()).rejects.toThrow(
    `${join(keys, 'master.key')} is not the master key that encrypts this database. Restore the one that belongs to it`,
  )
  writeFileSync(join(keys, 'master.key.former'), right, { mode: 0o600 })
  await expect(box.restart()).rejects.toThrow(`${join(keys, 'master.key.former')} is: put it in its place`)
  expect(readdirSync(keys).toSorted()).toEqual(['master.key', 'master.key.former'])
  renameSync(join(keys, 'master.key.former'), join(keys, 'master.key'))
  await box.restart()
  await kept.expectAll()
})

test('a database restored from before a rotation opens with the former key', async () => {
  const box = await appliance()
  const kept = await fill(box)
  await box.app.stop()
  const backup = folder()
  cpSync(databaseOf(box), join(backup, 'pillarbox.db'))
  expect((await child('keys/children/rotate.ts', [box.directory, JSON.stringify(box.env)]).ended).code).toBe(0)
  for (const suffix of ['-wal', '-shm']) rmSync(`${databaseOf(box)}${suffix}`, { force: true })
  cpSync(join(backup, 'pillarbox.db'), databaseOf(box))
  await expect(box.restart()).rejects.toThrow(`${join(keysOf(box), 'master.key.former')} is: put it in its place`)
  renameSync(join(keysOf(box), 'master.key.former'), join(keysOf(box), 'master.key'))
  await box.restart()
  await kept.expectAll()
})

test('a key that is handed over is read and never written; changing it is the operator’s, who is told how', async () => {
  const box = await appliance()
  const kept = await fill(box)
  await box.app.stop()
  const credentials = join(box.directory, 'credentials')
  mkdirSync(credentials)
  const [own, handed] = [join(keysOf(box), 'master.key'), join(credentials, 'master.key')]
  // systemd’s access list shows as bits of the group
  writeFileSync(handed, readFileSync(own), { mode: 0o440 })
  rmSync(own)
  box.env['CREDENTIALS_DIRECTORY'] = credentials
  await box.restart()
  await kept.expectAll()
  await box.app.stop()
  expect(readdirSync(keysOf(box))).toEqual([])

  const refused = boxProcess(box.env, ['key', 'rotate-master'], box.directory)
  expect(await refused.ended).toBe(78)
  expect(refused.errors()).toContain(`read from ${handed}`)
  expect(refused.errors()).toContain(`copy it to ${own}`)
  expect(readdirSync(keysOf(box))).toEqual([])

  // as told
  delete box.env['CREDENTIALS_DIRECTORY']
  writeFileSync(own, readFileSync(handed), { mode: 0o600 })
  const rotating = boxProcess(box.env, ['key', 'rotate-master'], box.directory)
  expect([await rotating.ended, rotating.errors()]).toEqual([0, ''])
  box.env['PILLARBOX_MASTER_KEY_FILE'] = handed
  await expect(box.restart()).rejects.toThrow(`${own} is: provide that key`)
  writeFileSync(join(credentials, 'new'), readFileSync(own), { mode: 0o400 })
  box.env['PILLARBOX_MASTER_KEY_FILE'] = join(credentials, 'new')
  await box.restart()
  await kept.expectAll()
})

test('a handed over key that anybody may read is refused', async () => {
  const handed = join(folder(), 'key')
  writeFileSync(handed, `${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o444 })
  expect(() => new MasterKey(folder(), handed).read(true)).toThrow(/can be read by users other/)
})

test('a key that is linked to is changed where it lies', async () => {
  const directory = folder()
  const [file, keys, elsewhere] = [join(directory, 'box.db'), join(directory, 'keys'), join(directory, 'elsewhere')]
  prepare(file, false)
  const key = new MasterKey(keys)
  const former = key.read(false)
  mkdirSync(elsewhere)
  renameSync(join(keys, 'master.key'), join(elsewhere, 'secret'))
  symlinkSync(join(elsewhere, 'secret'), join(keys, 'master.key'))
  await during(file, async (database) => {
    await (await Keyring.open(database, key)).rotate([])
    const after = await Keyring.open(database, key)
    expect(after.seal.key('x').equals(new Seal(key.read(true)).key('x'))).toBe(true)
  })
  expect(key.read(true).equals(former)).toBe(false)
  expect(readdirSync(keys)).toEqual(['master.key'])
  expect(readdirSync(elsewhere).toSorted()).toEqual(['secret', 'secret.former'])
})

test('a rotation that meets a value it cannot open changes nothing', async () => {
  const directory = folder()
  const [file, keys] = [join(directory, 'box.db'), join(directory, 'keys')]
  prepare(file, false)
  const key = new MasterKey(keys)
  const before = key.read(false)
  await during(file, async (database) => {
    const keyring = await Keyring.open(database, key)
    const good = keyring.seal.seal(Buffer.from('good'), 'w')
    const columns = [
      { table: 'webhooks', column: 'secret', key: ['seq'], context: ({ id }: Record<string, unknown>) => String(id) },
    ]
    await database.transaction(async (tx) => {
      for (const [id, octets] of [
        ['w', good],
        ['v', good],
      ] as const) {
        await tx.run(
          sql`INSERT INTO webhooks (id, account_id, url, events, scopes, active, secret, after_seq, created_at, updated_at)
            VALUES (${id}, '', '', '[]', '[]', 1, ${octets}, 0, '', '')`,
        )
      }
    })
    await expect(keyring.rotate(columns)).rejects.toThrow(
      'webhooks.secret of row 2 cannot be decrypted with the master key in use',
    )
    const row = await database.get<{ secret: Uint8Array }>(sql`SELECT secret FROM webhooks WHERE id = 'w'`)
    expect(Buffer.from(row!.secret).equals(good)).toBe(true)
    const again = await Keyring.open(database, key)
    expect(again.seal.open(row!.secret, 'w').toString()).toBe('good')
  })
  expect(key.read(true).equals(before)).toBe(true)
  expect(readdirSync(keys)).toEqual(['master.key'])
})

test('where there is no box, no key is changed, and none is begun', async () => {
  const directory = folder()
  const nowhere = boxProcess({ PILLARBOX_DATA_DIR: join(directory, 'data') }, ['key', 'rotate-master'], directory)
  expect(await nowhere.ended).toBe(1)
  expect(nowhere.errors()).toBe(`There is no box in ${join(directory, 'data')}.\n`)
  expect(readdirSync(directory)).toEqual([])
})

test('the name of a key tells keys apart', () => {
  expect(nameOf(Buffer.alloc(32, 1))).toBe(nameOf(Buffer.alloc(32, 1)))
  expect(nameOf(Buffer.alloc(32, 1))).not.toBe(nameOf(Buffer.alloc(32, 2)))
})

async function during(file: string, work: (database: SqliteDatabase) => Promise<void>): Promise<void> {
  const database = await SqliteDatabase.open(file, quiet)
  try {
    await work(database)
  } finally {
    await database.close()
  }
}
