import { expect, test } from 'vitest'
import { inputOf } from '../../src/sms/opt-outs.ts'
import { normalized } from '../../src/sms/phone-codes.ts'
import { segmentsOf } from '../../src/sms/segments.ts'

test.each([
  ['', 1],
  ['a'.repeat(160), 1],
  ['a'.repeat(161), 2],
  ['a'.repeat(306), 2],
  ['a'.repeat(307), 3],
  // each of the extension table is two septets
  ['€'.repeat(80), 1],
  ['€'.repeat(81), 2],
  // and is not parted: 152 and one more do not fill a part of 153
  [`${'a'.repeat(152)}€${'a'.repeat(151)}`, 2],
  [`${'a'.repeat(152)}€${'a'.repeat(152)}`, 3],
  ['ä'.repeat(160), 1],
  ['Δ'.repeat(160), 1],
  // no c with a cedilla in small
  [`ç${'a'.repeat(69)}`, 1],
  [`ç${'a'.repeat(70)}`, 2],
  ['я'.repeat(134), 2],
  ['я'.repeat(135), 3],
  ['😀'.repeat(35), 1],
  ['😀'.repeat(36), 2],
  // 67 is odd: a character of two units goes to the next part
  ['😀'.repeat(66), 2],
  ['😀'.repeat(67), 3],
  ['`', 1],
])('%j is carried in its parts', (text, parts) => {
  expect(segmentsOf(text)).toBe(parts)
})

test('a wish is the word alone', () => {
  for (const word of [
    'STOP',
    'stop',
    ' Stop ',
    '"STOP"',
    'STOP!',
    'StopAll',
    'ARRÊT',
    'arre\u0302t',
    '停止',
    'Opt out',
    'OPT-OUT',
    'stop  all',
    'ＳＴＯＰ',
    'stop?',
    'Stop,',
  ])
    expect(inputOf(word)).toBe('stop')
  for (const word of ['START', 'unstop.', '開始', 'opt in']) expect(inputOf(word)).toBe('start')
  for (const text of ['', 'stop it', 'do not stop', 'yes', 'stopping', 'STOP 2', 'x'.repeat(5000)])
    expect(inputOf(text)).toBe(null)
})

test.each([
  ['72345', 'DE', '72345'],
  ['262966', 'US', '262966'],
  ['Google', 'US', 'Google'],
  ['AD-HDFCBK', 'IN', 'AD-HDFCBK'],
  ['017012345678', 'DE', '+4917012345678'],
  ['004917012345678', 'DE', '+4917012345678'],
  ['4917012345678', 'DE', '+4917012345678'],
  ['+4917012345678', 'US', '+4917012345678'],
  ['33612345678', 'FR', '+33612345678'],
  ['481234567', 'PL', '+48481234567'],
  ['4155550123', 'US', '+14155550123'],
  ['14155550123', 'US', '+14155550123'],
  ['4512345678', 'DK', '+4512345678'],
])('%s, seen from %s, is %s', (number, country, known) => {
  expect(normalized(number, country)).toBe(known)
})
