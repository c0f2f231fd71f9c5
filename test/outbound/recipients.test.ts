import fc from 'fast-check'
import { expect, test } from 'vitest'
import { domainOf, recipientAddress, sameMailbox } from '../../src/outbound/compose/recipients.ts'

test.each([
  ['ada@Example.COM', 'example.com'],
  ['ada@bücher.example', 'xn--bcher-kva.example'],
  ['ada@BÜCHER.Example', 'xn--bcher-kva.example'],
  ['"a@b"@XN--BCHER-KVA.example', 'xn--bcher-kva.example'],
  // what is no domain stays itself, and becomes nobody else's
  ['ada@Ā b.example', 'Ā b.example'],
])('the domain of %s is %s', (address, domain) => expect(domainOf(address)).toBe(domain))

test('two spellings are one mailbox by letter case and by the spelling of the domain, and by nothing else', () => {
  expect(sameMailbox('Ada@bücher.example', 'ada@xn--bcher-kva.EXAMPLE')).toBe(true)
  expect(sameMailbox('ada@example.com', 'adb@example.com')).toBe(false)
  expect(sameMailbox('ada@example.com', 'ada@example.org')).toBe(false)
  expect(sameMailbox('', 'ada@example.com')).toBe(false)
})

test.each([
  ['ada@example.com', '', 'ada@example.com'],
  [' <ada@example.com>\u00a0', '', 'ada@example.com'],
  ['Ada <ada@example.com>', 'Ada', 'ada@example.com'],
  ['  Ada   Lovelace  <  ada@example.com  >  ', 'Ada   Lovelace', 'ada@example.com'],
  ['"Lovelace, Ada (\\"Countess\\")" <ada@example.com>', 'Lovelace, Ada ("Countess")', 'ada@example.com'],
  ['"a < b" <ada@example.com>', 'a < b', 'ada@example.com'],
  ['Ada (of the engine) <ada@example.com>', 'Ada (of the engine)', 'ada@example.com'],
  ['Zoë 😀 <ada@example.com>', 'Zoë 😀', 'ada@example.com'],
])('the recipient %j is %j at %s', (text, name, address) => {
  expect(recipientAddress(text, 'to')).toEqual({ name, address })
})

test.each([
  'Ada <ada@example.com',
  'Ada ada@example.com>',
  '<<ada@example.com>',
  '<ada@example.com>>',
  'Ada <ada@example.com> <',
  '<>',
  ' ',
])('%j is no recipient', (text) => expect(() => recipientAddress(text, 'to')).toThrow(/is|holds|has/))

test('a name and an address are told apart as this expression does, which takes the third power of the length to fail', () => {
  const form = /^\s*(.*?)\s*<([^<>]*)>\s*$/su
  const piece = fc.constantFrom(' ', '<', '>', 'a', '\u2003', 'ada@example.com')
  fc.assert(
    fc.property(fc.string({ unit: piece, maxLength: 12 }), (text) => {
      const [, name = '', address = text] = form.exec(text) ?? []
      const fits = !/[<>@]/.test(name) && /^\s*a*ada@example\.coma*\s*$/.test(address)
      expect(attempt(() => recipientAddress(text, 'to'))).toEqual(fits ? { name, address: address.trim() } : undefined)
    }),
    { numRuns: 2000 },
  )
})

test.each([' ', '<', '>', '<>', 'a ', '"'])('ten million characters of %j are no recipient, which is known at once', (piece) => {
  expect(() => recipientAddress(piece.repeat(10_000_000 / piece.length), 'to')).toThrow(/is|holds|has/)
})

function attempt<Value>(work: () => Value): Value | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
