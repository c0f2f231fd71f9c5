import { pick, type Random } from '../../support/random.ts'
import { letter, mutated } from './letters.ts'
import { bodyHash, bytesOf, type Key, type Letter, signature, type Tag } from './signer.ts'
import { oneIn, splice, type NewTry } from './try.ts'
import type { Zone } from './zone.ts'

/** Keys by the selector that they are published under. */
export type Keys = Record<'k' | 'long' | 'short' | 'ed', Key>

const algorithms = ['rsa-sha1', 'RSA-SHA256', 'rsa-sha512', 'rsa', '']
const canonicalizations = [
  'relaxed/relaxed',
  'relaxed/relaxed',
  'simple/simple',
  'relaxed/simple',
  'simple/relaxed',
  'relaxed',
  'simple',
]
const lists = [
  'from:to:subject:date:message-id:content-type:content-transfer-encoding:mime-version',
  'from:subject:from:subject:content-type:content-transfer-encoding',
  'From:To:Subject:Content-Type : Content-Transfer-Encoding',
  'from:to:subject:date',
  'From:To:Subject',
  'from:subject',
  'subject:from:from:subject:to:to:content-type',
  'from : to : subject : reply-to',
  'from',
  'to:subject',
  'from:subject:dkim-signature',
  'from:subject:x-none:received',
  'from:subject:',
  '',
]
/** Times long past and far ahead, so that a case is judged the same in any year. */
const [past, ahead] = ['1400000000', '4000000000']

/** A signed message, whose key record or text has changed since, or not. */
export function signedTry(keys: Keys, random: Random): NewTry {
  const message = letter(random)
  const zone = keyZone(keys, random)
  const count = oneIn(6, random) ? 2 + random(2) : 1
  for (let index = 0; index < count; index++) addSignature(message, keys, random)
  const changed = oneIn(2, random) ? message : mutated(message, random)
  return { kind: 'dkim', raw: bytesOf(changed), zone, author: 'a.test' }
}

/** Puts a DKIM-Signature on top. */
export function addSignature(message: Letter, keys: Keys, random: Random): void {
  const selector = oneIn(6, random) ? pick(['long', 'short', 'none'], random) : pick(['k', 'k', 'ed'], random)
  const key = keys[selector === 'none' ? 'k' : (selector as keyof Keys)]
  const a =
    key.algorithm === 'ed25519' && !oneIn(10, random)
      ? 'ed25519-sha256'
      : oneIn(6, random)
        ? pick(algorithms, random)
        : 'rsa-sha256'
  const tags: Tag[] = [
    ['v', oneIn(40, random) ? pick(['2', '1.0', ''], random) : '1'],
    ['a', a],
    [
      'd',
      oneIn(8, random) ? pick(['sub.a.test', 'A.Test', 'b.test', 'a.test.', 'a', 'a..test', 'xn--4ca.test'], random) : 'a.test',
    ],
    ['s', selector],
    ...signedTags(message, a, random),
  ]
  const optional: Tag[] = [
    ['i', pick(['@a.test', 'x@a.test', '@sub.a.test', 'x@b.test', '@', 'a.test', 'x=40y@a.test', '@aa.test'], random)],
    ['t', pick([past, past, ahead, 'x', '', '-1'], random)],
    ['x', pick([ahead, ahead, past, 'x', '', '1400000001', '99999999999'], random)],
    ['q', pick(['dns/txt', 'dns/txt', 'dns', 'dns/txt:other', 'other'], random)],
    ['z', 'From:x@a.test|Subject:other'],
    ['y', 'unknown'],
    ['d', 'b.test'],
    ['From', 'x'],
  ]
  for (const tag of optional) if (oneIn(tag[0] === 'd' ? 60 : 16, random)) tags.push(tag)
  if (oneIn(40, random)) tags.splice(random(tags.length), 1)
  message.fields.unshift(signedField('DKIM-Signature', tags, message, key, random))
}

/** The tags that a signature of either kind has, of the message as it is. */
export function signedTags(message: Letter, a: string, random: Random): Tag[] {
  const c = oneIn(20, random)
    ? pick(['Relaxed/Relaxed', 'x/y', 'relaxed/relaxed/relaxed', ''], random)
    : pick(canonicalizations, random)
  const h = pick(oneIn(4, random) ? lists : lists.slice(0, 3), random)
  const length = oneIn(20, random) ? random(message.body.length + 10) : undefined
  const canonicalization = c === '' || c === 'x/y' ? 'simple/simple' : c.toLowerCase()
  const bh = bodyHash(message.body, canonicalization, a.endsWith('sha1') ? 'sha1' : 'sha256', length)
  return [['c', c], ['h', h], ['bh', bh], ...(length === undefined ? [] : [['l', String(length)] satisfies Tag])]
}

/** A field of these tags, in some order and layout, signed over the message and itself. */
export function signedField(name: string, tags: readonly Tag[], message: Letter, key: Key, random: Random): string {
  // in a chain dkimpy finds an instance that is written in one way only
  const isPlain = name !== 'DKIM-Signature' && !oneIn(12, random)
  const before = isPlain ? ' ' : pick([' ', ' ', '', '\r\n\t', '\r\n  ', '  '], random)
  const list = [...tags]
  if (!isPlain && oneIn(3, random)) list.push(list.splice(random(list.length), 1)[0]!)
  list.splice(oneIn(3, random) ? 1 + random(list.length) : list.length, 0, ['b', '\x01'])
  const around = !isPlain && oneIn(6, random) ? pick([' ', '\r\n '], random) : ''
  const written = list.map(([tag, value]) => `${before}${tag}${around}=${around && tag !== 'b' ? around : ''}${value}`)
  const template = `${name}:${written.join(';')}${pick(['', '', ';', '; '], random)}`
  const known = Object.fromEntries(tags)
  const options = { h: known['h'] ?? '', c: known['c'] ?? '', a: known['a'] ?? '' }
  const value = signature(message, template.replace('\x01', ''), { ...options, c: options.c.toLowerCase() }, key)
  return template.replace('\x01', folded(value, random))
}

/** Base64 with white space in it, as many signers write it. */
export function folded(value: string, random: Random): string {
  return oneIn(2, random) ? value : value.replaceAll(/.{60}/g, (piece) => `${piece}\r\n\t`)
}

/** The records of the keys, one in six of which has something unusual. */
export function keyZone(keys: Keys, random: Random): Zone {
  const zone: Zone = { 'a.test': {}, '_dmarc.a.test': { TXT: [['v=DMARC1; p=reject']] } }
  for (const domain of ['a.test', 'sub.a.test', 'b.test', 'xn--4ca.test'])
    for (const [selector, { algorithm, published }] of Object.entries(keys)) {
      const plain = `v=DKIM1; k=${algorithm}; p=${published}`
      const text = oneIn(6, random) ? unusual(algorithm, published, random) : plain
      zone[`${selector}._domainkey.${domain}`] = oneIn(40, random)
        ? { error: true }
        : { TXT: [text.match(/.{1,255}/gs) ?? [''], ...(oneIn(40, random) ? [['v=DKIM1; p=']] : [])] }
    }
  return zone
}

function unusual(algorithm: string, published: string, random: Random): string {
  return pick<() => string>(
    [
      () => `p=${published}; k=${algorithm}`,
      () => `k=${algorithm}; p=${published}; v=DKIM1`,
      () => `v=DKIM1;k=${algorithm};p=${published};`,
      () => `v=DKIM1; p=${published}`,
      () => `v=DKIM2; k=${algorithm}; p=${published}`,
      () => `v=dkim1; k=${algorithm}; p=${published}`,
      () => `v=DKIM1; k=${algorithm === 'rsa' ? 'ed25519' : 'rsa'}; p=${published}`,
      () => `v=DKIM1; k=${algorithm}; t=${pick(['y', 's', 'y:s', ' y : s ', 'x', ''], random)}; p=${published}`,
      () => `v=DKIM1; k=${algorithm}; h=${pick(['sha256', 'sha1', 'sha1:sha256', 'sha512', ''], random)}; p=${published}`,
      () => `v=DKIM1; k=${algorithm}; s=${pick(['email', '*', 'tlsrpt', 'other', 'other:email', ''], random)}; p=${published}`,
      () => `v=DKIM1; k=${algorithm}; n=a note; g=*; p=${published}`,
      () => `v=DKIM1; k=${algorithm}; p=`,
      () => `v=DKIM1; k=${algorithm}`,
      () => `v=DKIM1; k=${algorithm}; p=${published}; p=${published}`,
      () => `v=DKIM1; k=${algorithm}; p=${published.replaceAll(/.{50}/g, '$& ')}`,
      () => splice(`v=DKIM1; k=${algorithm}; p=${published}`, random, pick(['', 'x', ' ', ';', '=', '"', '\\;'], random)),
      () => `v = DKIM1 ; k = ${algorithm} ; p = ${published} `,
      () => 'v=DKIM1 is not a record',
    ],
    random,
  )()
}
