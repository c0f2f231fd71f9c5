import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pages, read, root } from './pages.ts'

interface Promised {
  words: string
  proofs: { file: string; title: string }[]
}

const page = pages.get('docs/promises.md')!

/** What the page promises, each with its tests. */
const promises = page
  .split(/^(?=\d+\. \*\*|#+ )/m)
  .filter((part) => /^\d/.test(part))
  .map((part): Promised => {
    const [words = '', ...rest] = part.split(/^ +- /m)
    const proofs = rest.map((line) => {
      const [, file = '', title = ''] = /^`(test\/[^`]+\.test\.ts)`: (.+)$/.exec(line.trim()) ?? []
      return { file, title }
    })
    return { words: words.trim(), proofs }
  })

test('each promise names tests that prove it, and they are there under these titles', () => {
  expect(promises.length).toBeGreaterThan(30)
  expect(promises.filter(({ proofs }) => proofs.length === 0).map(({ words }) => words)).toEqual([])
  const absent = promises.flatMap(({ proofs }) => proofs).filter(({ file, title }) => !isTest(file, title))
  expect(absent).toEqual([])
})

test('the threat model names files and tests that are there', () => {
  const [, model = ''] = /^## Threat model\n([^]*?)^## /m.exec(page) ?? []
  const files = [...model.matchAll(/`(src\/[^`]+)`/g)].map(([, file]) => file!)
  expect(files.length).toBeGreaterThan(30)
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
  const proofs = [...model.matchAll(/^ +- `(test\/[^`]+\.test\.ts)`: (.+)$/gm)].map(([, file, title]) => [file!, title!] as const)
  expect(proofs.length).toBeGreaterThan(40)
  expect(proofs.filter(([file, title]) => !isTest(file, title) && !isAttack(file, title))).toEqual([])
  const named = [...model.matchAll(/`test\/[^`]+`/g)]
  expect(named).toHaveLength(proofs.length)
})

test('the promises are numbered, one after the other', () => {
  expect(promises.map(({ words }) => Number.parseInt(words, 10))).toEqual(promises.map((_, index) => index + 1))
})

test('a title that no test has would be found', () => {
  const [{ file, title }] = promises[0]!.proofs as [Promised['proofs'][number]]
  expect(isTest(file, title)).toBe(true)
  expect(isTest(file, title.slice(1))).toBe(false)
})

/** Whether a table of attacks has one of this name. */
function isAttack(file: string, name: string): boolean {
  return file.startsWith('test/abuse/') && existsSync(join(root, file)) && read(file).includes(`'${name}',`)
}

/** Whether a file has a test of this title that is run. */
function isTest(file: string, title: string): boolean {
  if (!existsSync(join(root, file))) return false
  const text = read(file)
  const quoted = ["'", '"', '`'].map((quote) => `${quote}${title}${quote},`)
  const at = Math.max(...quoted.map((one) => text.indexOf(one)))
  return at >= 0 && text.slice(0, at).trimEnd().endsWith('(') && !/\.(?:skip|todo)\($/.test(text.slice(0, at).trimEnd())
}
