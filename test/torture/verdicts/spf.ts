import { pick, type Random } from '../../support/random.ts'
import type { Keys } from './signed.ts'
import { oneIn, splice, type NewTry } from './try.ts'
import type { Records, Zone } from './zone.ts'

const domains = ['a.test', 'b.test', 'c.test', 'd.test', 'sub.a.test']
const hosts = ['h1.test', 'h2.test', 'mail.a.test', 'void.test', 'gone.test', 'alias.test', 'down.test']
const addresses = ['192.0.2.1', '192.0.2.1', '198.51.100.7', '2001:db8::1', '2001:db8:0:1::9', '::ffff:192.0.2.1']
const networks = [
  '192.0.2.1',
  '192.0.2.1',
  '192.0.2.0/24',
  '198.51.100.0/25',
  '0.0.0.0/0',
  '192.0.2.1/33',
  '192.0.2',
  '192.0.2.1/024',
  '203.0.113.9',
]
const networks6 = ['2001:db8::1', '2001:db8::/32', '::/0', '2001:db8::/129', '2001:db8:::1', '::ffff:192.0.2.0/120']
const masks = ['', '', '', '/24', '/32', '/0', '/33', '//64', '/24//64', '//129', '/', '/x', '/024']
const macros = [
  '%{d}',
  '%{i}.a.test',
  '%{l}.a.test',
  '%{s}',
  '%{o}',
  '%{ir}.a.test',
  '%{d2}',
  '%{d1r}.test',
  '%{l-}.a.test',
  '%{h}',
  '%{v}.a.test',
  '%{p}',
  '%{D}',
  '%%.test',
  '%_.test',
  '%-.test',
  '%{x}.test',
  '%{d0}',
  '%.test',
  '%{d',
  '%{c}.test',
  '%{t}.test',
]
const senders = [
  'x@a.test',
  'x@a.test',
  'a-b+c@a.test',
  'x@sub.a.test',
  '',
  'x@b.test',
  'postmaster@A.Test',
  'x@a',
  'x@[192.0.2.1]',
  '"q r"@a.test',
  'x@none.test',
  'x@a..test',
]
const helos = ['mail.a.test', 'a.test', 'none.test', '[192.0.2.1]', 'h1', 'b.test']
const noise = [
  ' ',
  '  ',
  ';',
  '=',
  ':',
  '/',
  '%',
  '"',
  '\t',
  'v=spf1 ',
  '-',
  '~',
  '+',
  '?',
  '.',
  'é',
  '\0',
  'redirect=b.test',
  'all',
  '-all ',
]

/** An unsigned message, and records of SPF of all kinds for its sender. */
export function spfTry(_keys: Keys, random: Random): NewTry {
  const zone: Zone = {
    'h1.test': { A: ['192.0.2.1'], AAAA: ['2001:db8::1'] },
    'h2.test': { A: ['198.51.100.7', '192.0.2.9'] },
    'mail.a.test': { A: [pick(['192.0.2.1', '203.0.113.1'], random)], TXT: [['v=spf1 a -all']] },
    'void.test': {},
    'alias.test': { CNAME: pick(['h1.test', 'h2.test', 'void.test', 'gone.test'], random) },
    'down.test': { error: true },
    '1.2.0.192.in-addr.arpa': { PTR: pick([['h1.test'], ['mail.a.test', 'h2.test'], ['gone.test'], []], random) },
  }
  for (const domain of domains) if (!oneIn(8, random)) zone[domain] = domainRecords(random)
  const envelope = {
    remote_address: pick(addresses, random),
    mail_from: pick(senders, random),
    helo: pick(helos, random),
  }
  const raw = Buffer.from('From: x@author.test\r\nSubject: x\r\n\r\nx\r\n')
  return { kind: 'spf', raw, zone, author: 'author.test', envelope }
}

function domainRecords(random: Random): Records {
  if (oneIn(20, random)) return { error: true }
  if (oneIn(20, random)) return { CNAME: pick([...domains, ...hosts], random) }
  const texts = Array.from({ length: oneIn(10, random) ? random(3) : 1 }, () => record(random))
  const records: Records = { TXT: texts.map((text) => split(text, random)) }
  if (oneIn(4, random))
    records.TXT!.push([pick(['other text', 'v=spf2.0/pra +all', 'v=spf10 +all', 'v=spf1', 'V=SPF1 +all'], random)])
  if (oneIn(2, random)) records.A = [pick(['192.0.2.1', '203.0.113.5'], random)]
  if (oneIn(2, random)) records.MX = mailServers(random)
  return records
}

function record(random: Random): string {
  const terms = Array.from({ length: random(oneIn(10, random) ? 16 : 5) }, () => term(random))
  if (!oneIn(4, random)) terms.push(`${pick(['-', '-', '~', '?', '+', ''], random)}all`)
  if (oneIn(5, random))
    terms.splice(
      random(terms.length + 1),
      0,
      `${pick(['redirect', 'redirect', 'exp', 'other', 'Redirect'], random)}=${target(random)}`,
    )
  let text = ['v=spf1', ...terms].join(' ')
  while (oneIn(5, random)) text = splice(text, random, pick(noise, random))
  return text
}

function term(random: Random): string {
  const qualifier = pick(['', '', '', '+', '-', '~', '?'], random)
  const name = pick(
    ['ip4', 'ip4', 'ip6', 'a', 'mx', 'include', 'include', 'exists', 'ptr', 'all', 'A', 'Include', 'unknown'],
    random,
  )
  return qualifier + name + argument(name.toLowerCase(), random)
}

function argument(name: string, random: Random): string {
  if (name === 'ip4') return `:${pick(networks, random)}`
  if (name === 'ip6') return `:${pick(networks6, random)}`
  if (name === 'a' || name === 'mx') return (oneIn(3, random) ? '' : `:${target(random)}`) + pick(masks, random)
  if (name === 'all') return oneIn(10, random) ? `:${target(random)}` : ''
  if (name === 'ptr') return oneIn(2, random) ? '' : `:${target(random)}`
  return oneIn(20, random) ? pick(['', ':'], random) : `:${target(random)}`
}

function target(random: Random): string {
  if (oneIn(4, random)) return pick(macros, random)
  return oneIn(3, random) ? pick(hosts, random) : pick(domains, random)
}

function split(text: string, random: Random): string[] {
  if (!oneIn(4, random)) return [text]
  const at = random(text.length)
  return [text.slice(0, at), text.slice(at)]
}

function mailServers(random: Random): [number, string][] {
  if (oneIn(12, random))
    return Array.from({ length: 9 + random(4) }, (_, index) => [index, index < 8 ? `m${index}.test` : 'h1.test'])
  return Array.from({ length: 1 + random(3) }, (_, index) => [index, pick(hosts, random)])
}
