import { createHash, randomBytes } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import { beforeEach, expect, test } from 'vitest'
import { emptyBlob, insertBlob, readBlob } from '../../src/store/blobs.ts'
import { type Database, sql } from '../../src/store/database.ts'
import { folder } from '../support/folder.ts'
import { opened } from './opened.ts'

let database: Database
beforeEach(async () => {
  ;({ database } = await opened(folder()))
  return () => database.close()
})

const mebibyte = 1024 * 1024

async function keep(octets: Buffer, deflated = false): Promise<number> {
  const sha256 = createHash('sha256').update(octets).digest()
  const bytes = deflated ? deflateRawSync(octets) : octets
  return database.transaction((tx) => insertBlob(tx, { size: octets.length, sha256, deflated, bytes }))
}

async function rows(table: 'blobs' | 'blob_pieces'): Promise<number> {
  const query = table === 'blobs' ? sql`SELECT count(*) AS count FROM blobs` : sql`SELECT count(*) AS count FROM blob_pieces`
  return (await database.get<{ count: number }>(query))!.count
}

test.each([0, 1, mebibyte - 1, mebibyte, mebibyte + 1, 2 * mebibyte, 3.5 * mebibyte])(
  'of %d octets every one is read as it was kept, deflated or not',
  async (size) => {
    const octets = randomBytes(size)
    for (const deflated of [false, true])
      expect((await readBlob(database, await keep(octets, deflated)))?.equals(octets)).toBe(true)
  },
)

test('no row holds more than 1 MiB, and none is left of what is emptied or deleted', async () => {
  const before = { blobs: await rows('blobs'), pieces: await rows('blob_pieces') }
  const ids = [await keep(randomBytes(5 * mebibyte)), await keep(randomBytes(5 * mebibyte))]
  const { most } = (await database.get<{ most: number }>(
    sql`SELECT max(octets) AS most FROM (SELECT octet_length(bytes) AS octets FROM blobs UNION ALL SELECT octet_length(bytes) FROM blob_pieces)`,
  ))!
  expect(most).toBe(mebibyte)
  expect(await rows('blob_pieces')).toBe(before.pieces + 8)
  await database.transaction((tx) => emptyBlob(tx, ids[0]!))
  expect(await readBlob(database, ids[0]!)).toHaveLength(0)
  await database.transaction((tx) => tx.run(sql`DELETE FROM blobs WHERE id = ${ids[1]!}`))
  expect(await readBlob(database, ids[1]!)).toBeUndefined()
  expect([await rows('blobs'), await rows('blob_pieces')]).toEqual([before.blobs + 1, before.pieces])
})

test('others have their turn while large octets are written', async () => {
  const bytes = randomBytes(32 * mebibyte)
  let turns = 0
  const timer = setInterval(() => (turns += 1), 1)
  const meanwhile = await database.transaction(async (tx) => {
    await insertBlob(tx, { size: bytes.length, sha256: null, deflated: false, bytes })
    return turns
  })
  clearInterval(timer)
  expect(meanwhile).toBeGreaterThan(1)
})
