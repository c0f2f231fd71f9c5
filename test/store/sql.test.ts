import { expect, test } from 'vitest'
import { join, sql } from '../../src/store/database.ts'

const ordered = (order: unknown) => sql`SELECT * FROM emails ORDER BY ${order} LIMIT 1`
const among = (ids: string[]) => sql`SELECT * FROM emails WHERE id IN (${join(ids)})`
const named = (id: string, most: number) => sql`SELECT * FROM emails WHERE id = ${id} AND size < ${most}`

test('one template makes the text of what is nested in it each time', () => {
  expect(ordered(sql`seq`).sql).toBe('SELECT * FROM emails ORDER BY seq LIMIT 1')
  expect(ordered(sql`size`).sql).toBe('SELECT * FROM emails ORDER BY size LIMIT 1')
  expect(ordered(2).sql).toBe('SELECT * FROM emails ORDER BY ? LIMIT 1')
  expect(ordered(sql`seq`).sql).toBe('SELECT * FROM emails ORDER BY seq LIMIT 1')
  expect(among(['a']).sql).toBe('SELECT * FROM emails WHERE id IN (?)')
  expect(among(['a', 'b']).sql).toBe('SELECT * FROM emails WHERE id IN (?,?)')
})

test('one template carries the values of each use', () => {
  const [one, other] = [named('a', 1), named('b', 2)]
  expect(other.sql).toBe('SELECT * FROM emails WHERE id = ? AND size < ?')
  expect(one.sql).toBe(other.sql)
  expect([one.values, other.values]).toEqual([
    ['a', 1],
    ['b', 2],
  ])
})
