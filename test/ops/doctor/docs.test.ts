import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { DnsRecord } from '../../../src/domains/model.ts'
import { doctor } from '../../../src/config/operation.ts'

const page = readFileSync(new URL('../../../docs/troubleshooting.md', import.meta.url), 'utf8')

test('every name that a line can have is explained, and no other', () => {
  const root = new URL('../../../src/', import.meta.url)
  const files = ['ops/doctor', 'commands'].flatMap((folder) =>
    readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
  )
  const texts = files.filter((file) => file.endsWith('.ts')).map((file) => readFileSync(new URL(file, root), 'utf8'))
  const literal = texts.flatMap((text) => [...text.matchAll(/\babout\(\s*'([a-z0-9_]+)'/g)].map(([, name]) => name!))
  const names = new Set([...literal, ...DnsRecord.shape.purpose.options])
  const explained = [...page.matchAll(/^### (\w+)$/gm)].map(([, name]) => name!)
  expect(literal.length).toBeGreaterThan(20)
  expect(explained.toSorted()).toEqual([...names].toSorted())
})

test('every setting of it is mentioned', () => {
  const missing = Object.keys(doctor.shape).filter((name) => !page.includes(`\`doctor.${name}\``))
  expect(missing).toEqual([])
})
