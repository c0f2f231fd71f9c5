import { expect, test } from 'vitest'
import { domainOf, sameMailbox } from '../../src/sending/recipients.ts'

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
