import { expect, test } from 'vitest'
import { codeAt, type Recipe } from '../../src/totp/codes.ts'
import { NewTotpEntry } from '../../src/totp/model.ts'
import { readSetup } from '../../src/totp/setup.ts'
import { appliance } from '../support/appliance.ts'
import { base32 } from '../support/base32.ts'
import { randomFrom } from '../support/random.ts'
import { peer } from '../support/peer.ts'
import { succeed } from '../support/program.ts'
import { vectors } from '../totp/vectors.ts'

const oathtool = peer('oathtool')
const algorithms = ['SHA1', 'SHA256', 'SHA512'] as const

test.runIf(oathtool)('oathtool says what RFC 6238 says, and so do we', async () => {
  expect(vectors).toHaveLength(18)
  for (const { secret, algorithm, second, code } of vectors) {
    for (const digits of [6, 7, 8]) {
      const recipe = { algorithm, digits, period: 30 }
      const expected = code.slice(8 - digits)
      expect(await theirs([{ secret: base32(secret), recipe, second }])).toEqual([expected])
      expect(codeAt(secret, recipe, second * 1000)).toBe(expected)
    }
  }
})

test.runIf(oathtool)(
  'a thousand random secrets, however spelled, make the codes that oathtool makes of them',
  async () => {
    const roll = randomFrom(6238)
    const cases = Array.from({ length: 1000 }, () => {
      const secret = base32(Buffer.from(Array.from({ length: 1 + roll(80) }, () => roll(256))))
      const recipe = { algorithm: algorithms[roll(3)]!, digits: 6 + roll(3), period: 15 + roll(106) }
      return { secret, spelled: spell(secret, roll), recipe, second: roll(2 ** 32), millisecond: roll(1000) }
    })
    const expected = await theirs(cases)
    const differing = cases.flatMap((one, index) => {
      const { spelled, recipe, second, millisecond } = one
      const { secret: octets, ...read } = readSetup(NewTotpEntry.parse({ secret: spelled, service_name: 'X', ...recipe }))
      const ours = codeAt(octets, read, second * 1000 + millisecond)
      return ours === expected[index] ? [] : [{ ...one, ours, expected: expected[index] }]
    })
    expect(differing).toEqual([])
    for (const algorithm of algorithms) {
      for (const digits of [6, 7, 8]) {
        expect(cases.filter(({ recipe }) => recipe.algorithm === algorithm && recipe.digits === digits).length).toBeGreaterThan(
          80,
        )
      }
    }
  },
  180_000,
)

test.runIf(oathtool)('a box answers the codes of oathtool', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  for (const algorithm of algorithms) {
    for (const digits of [6, 7, 8]) {
      const recipe = { algorithm, digits, period: 20 + digits }
      const secret = base32(Buffer.from(`${algorithm} of ${digits} digits`))
      const uri = `otpauth://totp/Example:ada?secret=${secret}&algorithm=${algorithm}&digits=${digits}&period=${recipe.period}`
      const { body: entry } = await box.call('POST', `/v1/identities/${ada.id}/totp`, { uri })
      const { body: answer } = await box.call('GET', `/v1/identities/${ada.id}/totp/${entry.id}/code`)
      const second = Date.parse(answer.expires_at as string) / 1000 - 1
      expect([answer.code]).toEqual(await theirs([{ secret, recipe, second }]))
    }
  }
})

interface Case {
  secret: string
  recipe: Recipe
  second: number
}

/**
 * What oathtool makes of secrets in base32, each at its second. One shell starts it for all of them: a process as large as this one takes a
 * tenth of a second to start another.
 */
async function theirs(cases: readonly Case[]): Promise<string[]> {
  const lines = cases.map(({ secret, recipe: { algorithm, digits, period }, second }) =>
    [secret, algorithm, digits, period, second].join(' '),
  )
  const script = `while read -r secret algorithm digits period second; do
    printf '%s' "$secret" | '${oathtool}' -b --totp="$algorithm" -d "$digits" -s "$period"s -N "@$second" - || exit
  done`
  const output = await succeed('sh', ['-c', script], { input: `${lines.join('\n')}\n` })
  return output.toString().trim().split('\n')
}

/** As people pass secrets on: in groups, in lower case, padded. */
function spell(secret: string, roll: (sides: number) => number): string {
  const grouped = secret.replace(/.{4}(?=.)/g, `$&${['', ' ', '-'][roll(3)]!}`)
  const cased = roll(2) === 0 ? grouped.toLowerCase() : grouped
  return cased.padEnd(cased.length + (roll(3) === 0 ? roll(7) : 0), '=')
}
