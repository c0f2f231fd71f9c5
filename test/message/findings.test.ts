import { expect, test } from 'vitest'
import { findingsIn } from '../../src/message/findings.ts'

function kindsIn(text: string): string[] {
  return [...new Set(findingsIn([{ place: 'text', text }]).map(({ kind }) => kind))]
}

// put together here, so that scanners of repositories find none
const fake = (...parts: string[]): string => parts.join('')

test.each([
  ['an access key of a cloud', `aws_access_key_id = ${fake('AK', 'IAIOSFODNN7EXAMPLE')}`, 'secret'],
  ['a token of a forge', fake('gh', 'p_16C7e42F292c6912E7710c838347Ae178B4a'), 'secret'],
  ['a token of a chat', fake('xo', 'xb-123456789012-abcdefABCDEF'), 'secret'],
  ['a key of a payment service', fake('sk', '_live_4eC39HqLyjWDarjtT1zdp7dc'), 'secret'],
  ['a private key', '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA', 'secret'],
  ['a JSON Web Token', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U', 'secret'],
  ['random characters', 'the token is Zk3vQ9mX2bLp8RtY6wNc4HsJ', 'secret'],
  ['random hexadecimal digits', 'secret=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', 'secret'],
  ['a key of a box', `use pbx_${'4kT9'.repeat(12)}x`, 'key'],
  ['a card number', 'Card: 4111 1111 1111 1111, 12/27', 'card'],
  ['a card number without blanks', '5555555555554444', 'card'],
  ['a card number before its date', '4111 1111 1111 1111 12/27', 'card'],
  ['a card number before its date and code', '4111-1111-1111-1111 1227 123', 'card'],
  ['a card number behind a date', '12-27 4111 1111 1111 1111', 'card'],
  ['a card number of fifteen digits before its code', '3782 822463 10005 1234', 'card'],
  ['a card number among others', 'Card 2 4111 1111 1111 1111', 'card'],
  ['a card number with other blanks', '4111\u00a01111\u202f1111\u20071111', 'card'],
  ['a card number with other hyphens', '4111\u20131111\u20111111\u22121111', 'card'],
  ['a card number with tabulators', '4111\t1111\t1111\t1111', 'card'],
  ['a card number with soft hyphens', '4111\u00ad1111\u200b1111\u20601111', 'card'],
  ['a card number in wide digits', '\uff14\uff11\uff11\uff11 1111 1111 1111', 'card'],
  ['a token with a character that nobody sees', fake('gh', 'p_16C7e42F\u200b292c6912E7710c838347Ae178B4a'), 'secret'],
  ['a one-time code', 'Your verification code is 493817.', 'code'],
])('%s is found', (_what, text, kind) => {
  expect(kindsIn(text)).toContain(kind)
})

test.each([
  ['words', 'Dear Bob, thank you for the report. We meet on Tuesday at ten.'],
  ['a number whose check digit is wrong', 'Order 4111 1111 1111 1112'],
  ['a telephone number', 'Call +1 555 010 0123'],
  ['a number with a fraction', '0.4111111111111111 and 4111111111111111.5'],
  ['a long word', 'Donaudampfschifffahrtsgesellschaftskapitänsmütze'],
  ['a path', 'see src/outbound/compose/held-emails/and-more/files-of-this-kind'],
  ['a file name', 'quarterly-report-2026-final-version-3.pdf'],
  ['a number of an invoice', 'Invoice 2026-000123456789'],
  ['a line of hyphens', '-'.repeat(80)],
])('%s is not', (_what, text) => {
  expect(kindsIn(text)).toEqual([])
})

test('samples tell where it is and not what it is', () => {
  const text = `mine: ${fake('gh', 'p_16C7e42F292c6912E7710c838347Ae178B4a')}`
  expect(findingsIn([{ place: 'notes.txt', text }])).toEqual([{ kind: 'secret', place: 'notes.txt', sample: 'ghp_••••••••' }])
})

test('a text of nothing but beginnings of tokens is read in a moment', () => {
  const begun = process.cpuUsage()
  expect(kindsIn('-eyJ'.repeat(262_144))).toEqual([])
  const { user } = process.cpuUsage(begun)
  expect(user / 1000).toBeLessThan(1000)
})

test('many findings of one kind hide none of another, wherever they are', () => {
  const token = fake('gh', 'p_16C7e42F292c6912E7710c838347Ae178B4a')
  // card numbers that differ in their first digits, each with its check digit
  const cards = [
    '2000',
    '2011',
    '2022',
    '2033',
    '2044',
    '2055',
    '2066',
    '2077',
    '2088',
    '2099',
    '2109',
    '2118',
    '2127',
    '2136',
    '2145',
  ]
    .concat(['2154', '2163', '2172', '2181', '2190', '2208', '2217', '2226', '2235', '2244'])
    .map((first) => withCheckDigit(`${first}00000000000`))
    .join(' ')
  const many = [
    { place: 'subject', text: cards },
    { place: 'body_text', text: `token: ${token}` },
  ]
  const kinds = findingsIn(many).map(({ kind }) => kind)
  expect(kinds.filter((kind) => kind === 'card')).toHaveLength(20)
  expect(kinds).toContain('secret')
  const runs = Array.from({ length: 25 }, (_, index) => `${String.fromCharCode(65 + index)}7k9Zx3vQ9mX2bLp8RtY6wNc4HsJ`).join(' ')
  expect(kindsIn(`${runs} 4111 1111 1111 1111`)).toEqual(['secret', 'card'])
})

/** The number with the digit that makes it a card number (ISO/IEC 7812). */
function withCheckDigit(number: string): string {
  const sum = Array.from(number)
    .toReversed()
    .reduce((total, digit, index) => {
      const value = Number(digit) * (index % 2 === 0 ? 2 : 1)
      return total + (value > 9 ? value - 9 : value)
    }, 0)
  return `${number}${(10 - (sum % 10)) % 10}`
}
