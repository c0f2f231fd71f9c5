import { expect, test } from 'vitest'
import { attachmentsOf, parse } from '../../src/message/parse.ts'
import { randomFrom } from '../support/random.ts'
import { marker, mutatedMessage, sourceMessages } from '../torture/mail/mutation.ts'

const texts = sourceMessages().map((raw) => raw.toString('latin1'))

const seed = Number(process.env['FUZZ_SEED'] ?? 20261120)

const rounds = Array.from({ length: 10 }, (_, index) => seed + index)

test.each(rounds)('300 broken messages are read without harm (FUZZ_SEED=%i)', async (start) => {
  const random = randomFrom(start)
  const faults: string[] = []
  for (let round = 0; round < 300; round++) {
    for (const fault of await faultsOf(mutatedMessage(texts, random), round % 10 === 0)) faults.push(`round ${round}: ${fault}`)
  }
  expect(faults).toEqual([])
  expect(Object.keys(Object.prototype)).toEqual([])
  expect('polluted' in {}).toBe(false)
})

async function faultsOf(raw: Buffer, withContent: boolean): Promise<string[]> {
  const parsed = await parse(raw)
  const { subject, text, snippet, body_text, body_html, codes, links, attachments } = parsed
  const last = attachments.at(-1)
  const again = withContent && last !== undefined ? (await attachmentsOf(raw, [last.index]))[0]?.attachment : last
  const checks: [string, boolean][] = [
    ['the text of another field', !JSON.stringify(parsed).includes(marker)],
    ['a snippet of more than a line', snippet.length <= 200 && !/[\r\n]/.test(snippet)],
    ['too many codes or links', codes.length <= 5 && links.length <= 100],
    ['a NUL', !`${subject}${text}${body_text}${body_html}`.includes('\0')],
    ['a name that is a path', attachments.every(({ filename }) => /^[^/\\\p{Cc}]{1,200}$/u.test(filename))],
    ['another attachment the second time', again?.sha256 === last?.sha256],
  ]
  return checks.flatMap(([fault, isFine]) => (isFine ? [] : [fault]))
}
