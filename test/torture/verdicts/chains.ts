import { pick, type Random } from '../../support/random.ts'
import { letter, mutated } from './letters.ts'
import { type Keys, addSignature, folded, keyZone, signedField, signedTags } from './signed.ts'
import { bytesOf, type Letter, seal, type Tag } from './signer.ts'
import { oneIn, type NewTry } from './try.ts'

/** A message that was sealed by up to four servers, and then changed, or not. */
export function chainTry(keys: Keys, random: Random): NewTry {
  const message = letter(random)
  if (oneIn(3, random)) addSignature(message, keys, random)
  const sets: string[] = []
  const length = 1 + random(oneIn(3, random) ? 4 : 2)
  for (let instance = 1; instance <= length; instance++) {
    if (oneIn(6, random)) message.body += 'a footer\r\n'
    addSet(message, sets, instance, keys, random)
  }
  const changed = oneIn(2, random) ? message : changedChain(message, random)
  return { kind: 'arc', raw: bytesOf(changed), zone: keyZone(keys, random), author: 'a.test' }
}

/** Puts a set on top; `sets` are the fields of the chain in the order in which seals sign them. */
function addSet(message: Letter, sets: string[], instance: number, keys: Keys, random: Random): void {
  const selector = oneIn(20, random) ? pick(['long', 'short', 'ed'] as const, random) : 'k'
  const key = keys[selector]
  const a = `${key.algorithm}-${oneIn(30, random) ? 'sha1' : 'sha256'}`
  const domain = oneIn(10, random) ? 'sub.a.test' : 'a.test'
  const i = oneIn(60, random) ? pick(['0', '01', '51', 'x', String(instance + 1)], random) : String(instance)
  const results = `ARC-Authentication-Results: i=${i}; ${pick(['mx.a.test; spf=pass; dmarc=pass header.from=a.test', 'mx.a.test; none', 'a (comment); arc=none'], random)}`
  const signedTagsOfSet: Tag[] = [['i', i], ['a', a], ['d', domain], ['s', selector], ...signedTags(message, a, random)]
  if (oneIn(10, random))
    signedTagsOfSet.push(
      pick<Tag>(
        [
          ['t', '1400000000'],
          ['x', '1500000000'],
          ['v', '1'],
          ['x', '4000000000'],
        ],
        random,
      ),
    )
  const signed = signedField('ARC-Message-Signature', signedTagsOfSet, message, key, random)
  const cv = oneIn(20, random) ? pick(['none', 'pass', 'fail', 'Pass', ''], random) : instance === 1 ? 'none' : 'pass'
  const tags: Tag[] = [
    ['i', i],
    ['a', a],
    ['t', '1400000000'],
    ['cv', cv],
    ['d', domain],
    ['s', selector],
  ]
  if (oneIn(30, random))
    tags.push(
      pick<Tag>(
        [
          ['h', 'from'],
          ['bh', 'x'],
          ['x', '1500000000'],
          ['y', 'z'],
        ],
        random,
      ),
    )
  if (oneIn(30, random)) tags.splice(random(tags.length), 1)
  const text = `ARC-Seal: ${tags.map(([name, value]) => `${name}=${value}`).join('; ')};${pick([' ', '\r\n\t'], random)}b=`
  // a chain that failed is not signed (RFC 8617 5.1.2)
  const own = [results, signed]
  const sealed = `${text}${folded(seal([...(cv === 'fail' ? [] : sets), ...own], text, a, key), random)}`
  sets.push(...own, sealed)
  message.fields.unshift(sealed, signed, results)
}

function changedChain(message: Letter, random: Random): Letter {
  if (!oneIn(2, random)) return mutated(message, random)
  const { body } = message
  const arc = message.fields.flatMap((field, index) => (/^arc-/i.test(field) ? [index] : []))
  const [one, other] = [pick(arc, random), pick(arc, random)]
  const { fields } = message
  const changed = pick<() => string[]>(
    [
      () => fields.toSpliced(one, 1),
      () => fields.toSpliced(one, 0, fields[other]!),
      () => fields.with(one, fields[other]!).with(other, fields[one]!),
      () => fields.with(one, fields[one]!.replace(/i=\d+/, `i=${random(4)}`)),
      () => fields.with(one, fields[one]!.replace(/cv=\w+/, `cv=${pick(['none', 'pass', 'fail'], random)}`)),
      () => fields.with(one, fields[one]!.replace('pass', 'fail')),
      () => fields.filter((field) => !/^arc-seal: i=1;/i.test(field)),
      () => fields.slice(3),
      () => fields.toReversed(),
    ],
    random,
  )()
  return { fields: changed, body }
}
