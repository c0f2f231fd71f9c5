import { expect, test } from 'vitest'
import * as z from 'zod'
import { Id, Json, Page, Timestamp } from '../../src/core/shapes.ts'
import { shaped, unsure } from '../../src/http/answer/shaped.ts'

const Row = z.object({
  id: Id('email'),
  subject: z.string().meta({ description: 'as it came' }),
  tag: z.string().nullable(),
  status: z.enum(['received', 'sent']),
  size: z.int(),
  score: z.number(),
  labels: z.array(z.string()),
  metadata: z.record(z.string(), Json),
  owner: z.object({ name: z.string(), kind: z.literal('person') }).optional(),
  note: z.string().nullable().default(null),
  created_at: Timestamp,
  deleted_at: Timestamp.optional(),
})

const row = {
  id: 'email_01jd3v8m2ef1pbx9mz5k7q4w6a',
  subject: 'Re: "é"\n\u2028',
  tag: null,
  status: 'received',
  size: 12,
  score: 0.5,
  labels: ['a', 'b'],
  metadata: { team: { names: ['x', 1, null, true] }, '2': 3 },
  owner: { name: 'Ada', kind: 'person' },
  note: 'n',
  created_at: '2026-11-20T10:05:00.123Z',
}

const bodies = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('sum'), sum: z.int() }),
])

test('a value that has what its schema names, in its order, is taken as it is', () => {
  for (const value of [row, { ...row, deleted_at: '2026-11-20T10:05:00Z' }, without('owner'), { ...row, owner: undefined }]) {
    expect(shaped(Row, value)).toBe(value)
  }
  const page = { data: [row, row], has_more: true, next_cursor: 'x' }
  expect(shaped(Page(Row), page)).toBe(page)
})

test('a schema that contains itself is made once, however many values it is asked about', () => {
  let made = 0
  const Tree: z.ZodType = z.lazy(() => {
    made += 1
    return z.union([z.string(), z.array(Tree)])
  })
  const value = ['a', ['b', ['c']], ['d']]
  for (let times = 0; times < 3; times += 1) expect(shaped(z.object({ tree: Tree }), { tree: value })).toEqual({ tree: value })
  expect(made).toBe(1)
})

test('what is made of a value is what its schema makes of it, field by field in its order', () => {
  const { id, created_at, ...others } = row
  const values: [z.ZodType, unknown][] = [
    [Row, row],
    [Row, { created_at, ...others, id }],
    [Row, { seq: 1, ...row, secret: 'x' }],
    [Row, { ...row, owner: { kind: 'person', name: 'Ada', secret: 'x' } }],
    [Page(Row), { next_cursor: null, data: [row, { secret: 'x', ...row }, row], has_more: false }],
    [Page(Row), { data: [], has_more: false, next_cursor: null }],
    [bodies, { type: 'sum', sum: 1, secret: 'x' }],
    [z.array(bodies), [{ type: 'text', text: '' }]],
    [z.union([z.int(), z.string()]), '1'],
    [Json, [{ a: [1, 'x', null, { b: {} }] }]],
    [z.object({}), { a: 1 }],
    [z.record(z.string(), z.int()), { b: 1, '1': 2 }],
    [Row.nullable(), null],
  ]
  for (const [schema, value] of values) {
    const made = shaped(schema, value)
    expect(made).not.toBe(unsure)
    expect(JSON.stringify(made)).toBe(JSON.stringify(schema.parse(value)))
  }
})

test('a value that its schema refuses or changes is left to it', () => {
  const values: [z.ZodType, unknown][] = [
    ...[undefined, null, 'x', 1, [], [row], new Date(), new Map()].map((value): [z.ZodType, unknown] => [Row, value]),
    ...Object.keys(row)
      .filter((name) => name !== 'owner')
      .map((name): [z.ZodType, unknown] => [Row, without(name)]),
    ...Object.keys(row).map((name): [z.ZodType, unknown] => [Row, { ...row, [name]: Symbol('wrong') }]),
    [Row, { ...row, id: 'ident_01jd3v8m2ef1pbx9mz5k7q4w6a' }],
    [Row, { ...row, size: 1.5 }],
    [Row, { ...row, size: Number.MAX_VALUE }],
    [Row, { ...row, score: Number.NaN }],
    [Row, { ...row, labels: ['a', undefined, 'b'] }],
    [Row, { ...row, created_at: '2026-02-30T10:05:00Z' }],
    [Row, { ...row, metadata: JSON.parse('{"__proto__":1}') }],
    [Row, { ...row, metadata: { at: new Date() } }],
    [Row, { ...row, owner: null }],
    [z.string().trim(), ' x '],
    [z.string().min(2), 'x'],
    [z.array(z.string()).max(1), ['a', 'b']],
    [z.int().positive(), 0],
    [z.iso.date(), 'x'],
    [z.string().transform(Number), '1'],
    [z.strictObject({ a: z.int() }), { a: 1, b: 2 }],
    [z.looseObject({ a: z.int() }), { a: 1, b: 2 }],
    [z.record(z.enum(['a', 'b']), z.int()), { a: 1 }],
    [z.union([z.object({ a: z.int() }), z.object({ a: z.int(), b: z.int() })]), { a: 1, b: 2 }],
  ]
  for (const [schema, value] of values) expect(shaped(schema, value)).toBe(unsure)
})

test('a schema that contains itself ends', () => {
  interface Tree {
    name: string
    trees: Tree[]
  }
  const Tree: z.ZodType<Tree> = z.object({
    name: z.string(),
    get trees() {
      return z.array(Tree)
    },
  })
  expect(shaped(Tree, { name: 'root', trees: [{ name: 'leaf', trees: [] }] })).toBe(unsure)
})

function without(name: string): object {
  return Object.fromEntries(Object.entries(row).filter(([other]) => other !== name))
}
