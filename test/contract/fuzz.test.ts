import { afterAll, describe, expect, test } from 'vitest'
import { isIdempotent } from '../../src/http/route.ts'
import { randomFrom } from '../support/random.ts'
import { absent, Asking, shapeOf } from './asking.ts'
import { inhabit } from './inhabited.ts'

const world = await inhabit()
const asking = new Asking(world)
afterAll(() => world.close())

const each = Number(process.env['PILLARBOX_TEST_FUZZ'] ?? 30)

const id = world.own.objects['identities/:id']!
const texts = [
  '',
  ' ',
  'a',
  'true',
  'false',
  '0',
  '1',
  '-1',
  '200',
  '1000000',
  '9007199254740991',
  '1e9',
  'null',
  'undefined',
  'NaN',
  '[]',
  '{}',
  '2026-11-20T10:00:00Z',
  '2026-11-20',
  '9999-12-31T23:59:59.999999999Z',
  '0000-01-01T00:00:00Z',
  '2026-02-28T23:59:59-23:59',
  '2024-02-29',
  id,
  absent(id),
  world.foreign.objects[':email_id']!,
  'evt_01jd3v8m2ef1pbx9mz5k7q4w6a',
  'email',
  'sms',
  'any',
  'inbound',
  'all',
  'email.received',
  '*',
  "' OR 1=1 --",
  '"',
  '\\',
  '%',
  '_',
  '\u{1F600}',
  '\u202e',
  '\u200b',
  'é',
  'ﷺ'.repeat(60),
  'x'.repeat(128),
  'x'.repeat(1000),
  '..',
  '/',
  'pillarbox.test',
  'active',
  'suspended',
  'deleted',
  'identities:read',
  'account:write',
  'a.b',
  '\ufeff',
  'İ',
  'ß',
  'constructor',
  'toString',
  '__proto__',
]

describe('whatever is asked, nothing breaks and every answer is as described', () => {
  test.each(asking.spellings.map((spelling, index) => [`${spelling.method} ${spelling.path}`, spelling, index] as const))(
    '%s',
    async (_, spelling, index) => {
      const roll = randomFrom(77_000 + index)
      const word = (): string => texts[roll(texts.length)]!
      const value = (depth = 0): unknown => {
        const kinds = [word, word, word, () => null, () => roll(2) === 0, () => roll(2000) - 1000, () => roll(1000) / 7]
        if (depth < 3) {
          kinds.push(() => Array.from({ length: roll(4) }, () => value(depth + 1)) as never)
          kinds.push(() => Object.fromEntries(Array.from({ length: roll(4) }, () => [key(word()), value(depth + 1)])) as never)
        }
        return kinds[roll(kinds.length)]!()
      }
      const some = (shape: object, pick: () => unknown): Record<string, unknown> =>
        Object.fromEntries(
          Object.keys(shape)
            .filter(() => roll(3) === 0)
            .map((name) => [name, pick()]),
        )
      const seen = new Set<number>()
      const estate = spelling.method === 'DELETE' ? await world.settle(`Fuzz ${spelling.path} ${index}`) : world.own
      for (let turn = 0; turn < each; turn += 1) {
        const { path } = await asking.good(spelling, estate)
        const query = some(shapeOf(spelling.route.query), word) as Record<string, string>
        // waiting is for another test
        if ('timeout' in shapeOf(spelling.route.query)) query['timeout'] = '0'
        const body = spelling.method === 'GET' ? {} : { body: some(shapeOf(spelling.route.body), value) }
        const told = await asking.ask(spelling, path, { query, ...body })
        if (told.status >= 500) throw new Error(`${path} ${JSON.stringify({ query, ...body })}: ${told.text}`)
        seen.add(told.status)
      }
      const guessing = spelling.path === '/v1/session' || spelling.path.startsWith('/v1/account') ? [401, 429] : []
      expect([...seen].filter((status) => ![200, 201, 400, 403, 404, 409, ...guessing].includes(status))).toEqual([])
    },
  )

  test('lists still answer after all that', async () => {
    // a card that was frozen or cancelled on the way is not revealed any more
    const reading = asking.spellings.filter(({ method, route }) => method === 'GET' && !isIdempotent(route))
    for (const spelling of reading) {
      const { path, question } = await asking.good(spelling, world.own)
      expect((await asking.ask(spelling, path, question)).status).toBe(200)
    }
  })
})

/** A key that JSON.stringify writes as a field of its own. */
function key(text: string): string {
  return text === '__proto__' ? 'proto' : text
}
