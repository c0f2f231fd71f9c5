import { afterAll, describe, expect, test } from 'vitest'
import { isIdempotent } from '../../src/http/route.ts'
import { oddTexts, oddValue } from '../support/odd-values.ts'
import { pick, randomFrom } from '../support/random.ts'
import { absent, Asking, shapeOf } from './asking.ts'
import { inhabit } from './inhabited.ts'

const world = await inhabit()
const asking = new Asking(world)
afterAll(() => world.close())

const each = Number(process.env['PILLARBOX_TEST_FUZZ'] ?? 30)

const id = world.own.objects['identities/:id']!
const words = [...oddTexts, id, absent(id), world.foreign.objects[':email_id']!]

describe('whatever is asked, nothing breaks and every answer is as described', () => {
  test.each(asking.spellings.map((spelling, index) => [`${spelling.method} ${spelling.path}`, spelling, index] as const))(
    '%s',
    async (_, spelling, index) => {
      const roll = randomFrom(77_000 + index)
      const word = (): string => pick(words, roll)
      const value = (): unknown => oddValue(roll, words)
      const some = (shape: object, choose: () => unknown): Record<string, unknown> =>
        Object.fromEntries(
          Object.keys(shape)
            .filter(() => roll(3) === 0)
            .map((name) => [name, choose()]),
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
