import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { ZipFile } from '../../src/core/zip/unzip.ts'
import { type Packable, zip } from '../../src/core/zip/zip.ts'
import { folder } from '../support/folder.ts'
import { peer } from '../support/peer.ts'
import { succeed } from '../support/program.ts'

async function* files(...list: [name: string, content: Packable['content']][]): AsyncGenerator<Packable> {
  for (const [name, content] of list) yield { name, modified: Date.UTC(2026, 10, 20, 10, 5), content }
}

async function opened(octets: Uint8Array): Promise<ZipFile> {
  const path = join(folder(), 'a.zip')
  writeFileSync(path, octets)
  return ZipFile.open(path)
}

async function* pieces(): AsyncGenerator<Buffer> {
  for (let count = 0; count < 100; count += 1) yield Buffer.alloc(10_000, count)
}

async function* failing(): AsyncGenerator<Buffer> {
  yield Buffer.from('x')
  throw new Error('the disk is gone')
}

async function* many(): AsyncGenerator<Packable> {
  for (let count = 0; count < 70_000; count += 1) yield { name: `${count}`, modified: 0, content: Buffer.from(String(count)) }
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

test('what goes into a ZIP comes out of it, whole and in pieces, under its name', async () => {
  const archive = await opened(
    await buffer(zip(files(['a.txt', Buffer.from('one')], ['é/ü.bin', pieces()], ['empty', Buffer.alloc(0)]))),
  )
  const entries = await all(archive.entries())
  expect(entries.map(({ name, size }) => [name, size])).toEqual([
    ['a.txt', 3],
    ['é/ü.bin', 1_000_000],
    ['empty', 0],
  ])
  const contents = []
  for (const entry of entries) contents.push(await buffer(archive.read(entry, Infinity)))
  expect(contents).toEqual([Buffer.from('one'), await buffer(pieces()), Buffer.alloc(0)])
  await expect(buffer(archive.read(entries[1]!, 999_999))).rejects.toMatchObject({ code: 'too_large' })
  await archive.close()
})

test('a source that fails breaks the ZIP off, and one that nobody reads on is let go', async () => {
  await expect(buffer(zip(files(['a', failing()])))).rejects.toThrow('the disk is gone')
  const source = { gone: false }
  async function* endless(): AsyncGenerator<Buffer> {
    try {
      for (;;) yield Buffer.alloc(100_000, Math.random().toString())
    } finally {
      source.gone = true
    }
  }
  for await (const chunk of zip(files(['a', endless()]))) if (chunk.length > 1000) break
  for (let tries = 0; tries < 100 && !source.gone; tries += 1) await new Promise((resolve) => setImmediate(resolve))
  expect(source.gone).toBe(true)
})

test('a packed file of a few octets takes little memory until it is written', async () => {
  const taken = new Set<ArrayBufferLike>()
  const small = Array.from({ length: 1000 }, (_, number): [string, Buffer] => [`${number}`, Buffer.from('a few octets')])
  for await (const { buffer: memory } of zip(files(...small))) taken.add(memory)
  expect([...taken].reduce((sum, { byteLength }) => sum + byteLength, 0)).toBeLessThan(2 * 1024 * 1024)
})

test('Python reads 70,000 files of ours, and we read what Python packs, with more than ZIP knows without ZIP64', async () => {
  const python = peer('python3')
  if (!python) return
  const directory = folder()
  writeFileSync(join(directory, 'ours.zip'), await buffer(zip(many())))
  const script = `
import sys, zipfile
ours = zipfile.ZipFile(sys.argv[1] + '/ours.zip')
names = ours.namelist()
print(len(names), ours.read('69999').decode(), ours.getinfo('5').external_attr >> 16 == 0o100600)
with zipfile.ZipFile(sys.argv[1] + '/theirs.zip', 'w') as theirs:
    theirs.writestr('stored.txt', 'stored', zipfile.ZIP_STORED)
    theirs.writestr('d/deflated.txt', 'deflated ' * 1000, zipfile.ZIP_DEFLATED)
    theirs.writestr('packed.bz2', 'bz', zipfile.ZIP_BZIP2)
    theirs.mkdir('folder')
    with theirs.open('long.txt', 'w', force_zip64=True) as long: long.write(b'long')
    theirs.comment = b'PK\\x05\\x06 is no end ' * 20
    for n in range(66000): theirs.writestr('n/%d' % n, b'')
`
  expect((await succeed(python, ['-c', script, directory])).toString().trim()).toBe('70000 69999 True')
  const archive = await opened(readFileSync(join(directory, 'theirs.zip')))
  const entries = await all(archive.entries())
  expect(entries).toHaveLength(66_004)
  const read = async (name: string): Promise<string> =>
    (
      await buffer(
        archive.read(
          entries.find((one) => one.name === name)!,
          1_000_000,
        ),
      )
    ).toString()
  expect([await read('stored.txt'), (await read('d/deflated.txt')).length, await read('long.txt')]).toEqual([
    'stored',
    9000,
    'long',
  ])
  await expect(read('packed.bz2')).rejects.toMatchObject({ code: 'bad_archive' })
  await archive.close()
}, 120_000)
