import { pick, type Random } from '../../support/random.ts'
import { letter } from './letters.ts'
import { type Keys, signedField } from './signed.ts'
import { bodyHash, bytesOf } from './signer.ts'
import { oneIn, splice, type NewTry } from './try.ts'
import type { Zone } from './zone.ts'

/** Domains that are related or only look so; co.uk and github.io are public suffixes. */
const domains = [
  'a.test',
  'sub.a.test',
  'x.sub.a.test',
  'other.a.test',
  'b.test',
  'xa.test',
  'a.test.b.test',
  'one.co.uk',
  'two.co.uk',
  'mail.one.co.uk',
  'one.github.io',
  'two.github.io',
  'a.b.c.d.e.f.g.h.a.test',
  'z.b.c.d.e.f.g.h.a.test',
]
const places = [...domains, 'test', 'co.uk', 'github.io', 'uk', 'h.a.test', 'g.h.a.test', 'd.e.f.g.h.a.test']
const values: Record<string, readonly string[]> = {
  p: ['none', 'quarantine', 'reject', 'Reject', 'other', ''],
  sp: ['none', 'quarantine', 'reject', 'x'],
  np: ['reject', 'none', 'x'],
  adkim: ['s', 'r', 'S', 'x'],
  aspf: ['s', 'r', 'S', 'x'],
  psd: ['y', 'n', 'u', 'Y', 'x'],
  t: ['y', 'n'],
  rua: ['mailto:r@a.test', 'r@a.test', ''],
  pct: ['0', '50', 'x'],
  fo: ['1'],
  P: ['none'],
}

const froms = [
  'x@%',
  'X <x@%>',
  '"x@b.test" <x@%>',
  'x@b.test <x@%>',
  '"x, y" <x@%>',
  'x@% (comment)',
  '=?utf-8?Q?x=40b.test?= <x@%>',
]
const unclear = [
  'x@%, y@b.test',
  'X <x@b.test>, <y@%>',
  'g: x@%;',
  '<x@%> <y@b.test>',
  'x@%\r\nFrom: y@b.test',
  '"x@b.test',
  'x@b.test@%',
  '<@b.test:x@%>',
  'x(@b.test)@%',
  '"x@b.test"@%',
  'x @ %',
  'x@% x@b.test',
  '',
  '<>',
  'x@[192.0.2.1]',
  'x@%.',
]

/** A message whose sender or signer is aligned with its author, or not, by records of DMARC of all kinds. */
export function policyTry(keys: Keys, random: Random): NewTry {
  const [author, sender, signer] = [pick(domains, random), relative(random), relative(random)]
  const zone: Zone = { test: {}, 'a.test': {} }
  for (const place of places) if (oneIn(4, random)) zone[`_dmarc.${place}`] = records(random)
  if (oneIn(2, random)) zone[`_dmarc.${author}`] = records(random)
  zone[sender] = {
    TXT: [[pick(['v=spf1 ip4:192.0.2.1 -all', 'v=spf1 ip4:192.0.2.1 -all', 'v=spf1 -all', 'v=spf1 ?all'], random)]],
  }
  zone[`k._domainkey.${signer}`] = { TXT: [[`v=DKIM1; k=ed25519; p=${keys.ed.published}`]] }
  const message = letter(random)
  const isPlain = !oneIn(5, random)
  const from = pick(isPlain ? froms : unclear, random).replaceAll('%', author)
  message.fields = message.fields.map((field) => (field.startsWith('From:') ? `From: ${from}` : field))
  if (oneIn(2, random)) {
    const bh = bodyHash(message.body, 'simple/simple', 'sha256')
    const tags = {
      v: '1',
      a: 'ed25519-sha256',
      d: signer,
      s: 'k',
      c: 'relaxed/simple',
      h: 'from:to:subject:date:content-type',
      bh,
    }
    message.fields.unshift(signedField('DKIM-Signature', Object.entries(tags), message, keys.ed, random))
  }
  const envelope = { mail_from: `x@${sender}` }
  return { kind: 'dmarc', raw: bytesOf(message), zone, author: isPlain ? author : null, envelope }
}

function relative(random: Random): string {
  return pick(domains, random)
}

function records(random: Random): Zone[string] {
  if (oneIn(30, random)) return { error: true }
  if (oneIn(30, random)) return { CNAME: '_dmarc.b.test' }
  const texts = [[policy(random)]]
  if (oneIn(12, random)) texts.push([policy(random)])
  if (oneIn(8, random)) texts.unshift(['v=spf1 -all'])
  return { TXT: texts }
}

function policy(random: Random): string {
  const tags = [`p=${pick(oneIn(4, random) ? values['p']! : values['p']!.slice(0, 3), random)}`]
  for (const [tag, choices] of Object.entries(values))
    if (tag !== 'p' && oneIn(tag === 'adkim' || tag === 'aspf' || tag === 'psd' ? 4 : 10, random))
      tags.splice(random(tags.length + 1), 0, `${tag}=${pick(choices, random)}`)
  const version = oneIn(20, random)
    ? pick(['v=DMARC2', 'V=DMARC1', 'v=dmarc1', 'v = DMARC1', 'DMARC1', ' v=DMARC1'], random)
    : 'v=DMARC1'
  const text = [version, ...tags].join(pick(['; ', '; ', ';', ' ; '], random))
  return oneIn(15, random) ? splice(text, random, pick([';', '=', ' ', 'x', '; adkim=r'], random)) : text
}
