import { pick, type Random } from './random.ts'

/** Texts that are no plain words: of other types, at bounds, of the language of something else, of odd letters. */
export const oddTexts: readonly string[] = [
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

/** A JSON value of any kind and depth, made of these texts. */
export function oddValue(random: Random, texts: readonly string[] = oddTexts, depth = 0): unknown {
  const word = (): string => pick(texts, random)
  const kinds: (() => unknown)[] = [
    word,
    word,
    word,
    () => null,
    () => random(2) === 0,
    () => random(2000) - 1000,
    () => random(1000) / 7,
  ]
  if (depth < 3) {
    const deeper = (): unknown => oddValue(random, texts, depth + 1)
    kinds.push(
      () => Array.from({ length: random(4) }, deeper),
      () => Object.fromEntries(Array.from({ length: random(4) }, () => [key(word()), deeper()])),
    )
  }
  return pick(kinds, random)()
}

/** A key that JSON.stringify writes as a field of its own. */
function key(text: string): string {
  return text === '__proto__' ? 'proto' : text
}
