import { pick, type Random } from '../../support/random.ts'
import type { Letter } from './signer.ts'
import { oneIn, splice } from './try.ts'

const pieces = [
  'a line\r\n',
  'two  blanks\there\r\n',
  'a blank at the end \r\n',
  '\r\n',
  '\r\n\r\n',
  ' \r\n',
  '\t \r\n',
  'é and ü\r\n',
  '.\r\n',
  '..stuffed\r\n',
  'no end',
  'Subject: in the body\r\n',
  '\xff\x00\x01\r\n',
  '\r\r\n',
  'x'.repeat(300) + '\r\n',
]

const optional = [
  'Content-Type: text/plain; charset=utf-8',
  'Content-Type: multipart/mixed; boundary=xx',
  'MIME-Version: 1.0',
  'Content-Transfer-Encoding: 8bit',
  'Reply-To: <y@a.test>',
  'Received: from x.test by y.test;\r\n\tThu, 19 Nov 2026 10:00:00 +0000',
  'Received: from z.test',
  'X-Folded: one\r\n two\r\n\tthree  ',
  'X-Empty:',
  'Cc: z@a.test,\r\n  w@a.test',
  'List-Unsubscribe: <https://a.test/>',
]

const froms = ['x@a.test', 'x@a.test', 'X <x@a.test>', '"x, y" <x@A.Test>', '=?utf-8?Q?X?= <x@a.test>', 'X\r\n <x@a.test>']

/** A message from a.test as its author writes it. */
export function letter(random: Random): Letter {
  const fields = [
    `From: ${pick(froms, random)}`,
    'To: u@mx.test',
    `Subject: ${pick(['pay', ' pay  now ', 'long\r\n subject\t', '=?utf-8?B?eA==?='], random)}`,
    'Date: Thu, 19 Nov 2026 10:00:00 +0000',
    'Message-ID: <1@a.test>',
  ]
  for (const field of optional) if (oneIn(5, random)) fields.splice(random(fields.length + 1), 0, field)
  return { fields, body: Array.from({ length: random(7) }, () => pick(pieces, random)).join('') }
}

type Change = (letter: Letter, random: Random) => Letter

/** A message after one to three changes on its way. */
export function mutated(message: Letter, random: Random): Letter {
  let changed = message
  for (let times = random(3); times >= 0; times--) changed = pick(changes, random)(changed, random)
  return changed
}

const added = [
  'From: x@b.test',
  'From: y@a.test',
  'Subject: another',
  'To: v@mx.test',
  'Content-Type: text/html',
  'X-Added: yes',
  'Reply-To: e@b.test',
  'Received: from q.test',
  'Date: Fri, 20 Nov 2026 10:00:00 +0000',
  'subject : blank before the colon',
  'not a field',
  ' continued',
]

function inField(change: (field: string, random: Random) => string): Change {
  return ({ fields, body }, random) => {
    if (fields.length === 0) return { fields, body }
    const at = random(fields.length)
    return { fields: fields.with(at, change(fields[at]!, random)), body }
  }
}

const changes: Change[] = [
  ({ fields, body }, random) => ({ fields, body: splice(body, random, pick(['', ' ', 'x', '\r\n', '\t', '\xa0'], random)) }),
  ({ fields, body }, random) => ({ fields, body: body + pick(['\r\n', '\r\n\r\n', ' ', 'more\r\n', ' \r\n', '\n'], random) }),
  ({ fields, body }) => ({ fields, body: body.replaceAll(/ +/g, '  ') }),
  ({ fields, body }) => ({ fields, body: body.replaceAll(/[ \t]+\r\n/g, '\r\n') }),
  ({ fields, body }) => ({ fields, body: body.replace(/(?:\r\n)+$/, '') }),
  ({ fields, body }, random) => ({ fields: fields.toSpliced(random(fields.length + 1), 0, pick(added, random)), body }),
  ({ fields, body }, random) => ({ fields: fields.toSpliced(random(fields.length), 1), body }),
  ({ fields, body }, random) => ({ fields: fields.toSpliced(random(fields.length + 1), 0, pick(fields, random)), body }),
  ({ fields, body }, random) => ({ fields: [...fields.slice(random(fields.length)), ...fields.slice(0, 2)], body }),
  inField((field) => field.replace(/^[^:]*/, (name) => name.toUpperCase())),
  inField((field) => field.replaceAll(' ', '\r\n ')),
  inField((field) => field.replaceAll(/\r\n[ \t]/g, ' ')),
  inField((field) => `${field}  `),
  inField((field, random) => splice(field, random, pick(['', ' ', 'x', '\t', '=', ';', '\r\n ', '"', '\r', '\0', 'é'], random))),
  // of a signature, which is on top
  ({ fields, body }, random) => ({
    fields: fields.with(
      0,
      splice(fields[0]!, random, pick(['', ' ', '\r\n ', ';', 'x', '=', '; l=10', '; d=b.test', '; t=1'], random)),
    ),
    body,
  }),
  ({ fields, body }, random) => {
    const [tag, value] = pick(
      [
        ['d', 'b.test'],
        ['s', 'long'],
        ['h', 'from'],
        ['a', 'rsa-sha1'],
        ['x', '1500000000'],
        ['l', '0'],
        ['i', '2'],
        ['cv', 'pass'],
        ['bh', '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='],
      ] as const,
      random,
    )
    return { fields: fields.with(0, fields[0]!.replace(new RegExp(`([;:]\\s*${tag}\\s*=)[^;]*`), `$1${value}`)), body }
  },
]
