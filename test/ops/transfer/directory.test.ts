import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { collect } from '../../../src/core/memory.ts'
import { type Packable, zip } from '../../../src/core/zip/zip.ts'
import type { Incoming } from '../../../src/ops/transfer/budget.ts'
import { incomingFrom } from '../../../src/ops/transfer/incoming.ts'
import { folder } from '../../support/folder.ts'

const mebibyte = 1024 * 1024

/** Writes a ZIP of files of a few bytes with these names, and returns its path. */
async function zipOf(names: Iterable<string>): Promise<string> {
  async function* files(): AsyncGenerator<Packable> {
    for (const name of names) yield { name, modified: 0, content: Buffer.from('a: b') }
  }
  const path = join(folder(), 'a.zip')
  await pipeline(Readable.from(zip(files())), createWriteStream(path))
  return path
}

function* numbered(count: number, rest: string): Generator<string> {
  for (let number = 0; number < count; number += 1) yield `${String(number).padStart(6, '0')}${rest}`
}

function read(path: string): AsyncGenerator<Incoming> {
  return incomingFrom(path, { message: mebibyte, unpacked: 1000 * mebibyte }, { done: 0, total: 0 })
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

function memory(): number {
  collect(true)
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

test('the names of an archive, however long they are, are not in memory while it is read', async () => {
  const path = await zipOf(numbered(1000, `Ā${'n'.repeat(64_900)}.eml`))
  const before = memory()
  const incoming = read(path)
  expect(await incoming.next()).toMatchObject({ value: { flaw: 'unreadable' } })
  expect(memory() - before).toBeLessThan(8 * mebibyte)
  await incoming.return(undefined)
})

test('a file whose name has more than 4,096 bytes is not read, and the others are', async () => {
  const path = await zipOf([`${'n'.repeat(4093)}.eml`, `${'n'.repeat(4092)}.eml`, 'short.eml', `${'n'.repeat(5000)}.txt`])
  const incoming = await all(read(path))
  expect(incoming.map((one) => ('flaw' in one ? one.flaw : 'email'))).toEqual(['unreadable', 'email', 'email', 'ignored'])
})

test('other work goes on while an archive of very many files is opened', async () => {
  const path = await zipOf([...numbered(200_000, 'n'.repeat(150)), 'messages.jsonl'])
  const reading = { ended: false }
  const end = all(read(path)).finally(() => (reading.ended = true))
  let longest = 0
  while (!reading.ended) {
    const before = process.threadCpuUsage()
    await setImmediate()
    const { user, system } = process.threadCpuUsage(before)
    longest = Math.max(longest, (user + system) / 1000)
  }
  // the one line of messages.jsonl is no JSON
  expect(await end).toEqual([{ flaw: 'unreadable' }])
  expect(longest).toBeLessThan(100)
})
