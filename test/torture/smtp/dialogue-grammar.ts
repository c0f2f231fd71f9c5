import { pick, type Random } from '../../support/random.ts'

/** A step of a dialogue. */
export type Step =
  /** Sent at once; each line has one reply. */
  | { kind: 'commands'; lines: string[] }
  /** After DATA was answered with 354; it has one reply. */
  | { kind: 'message'; octets: string; marker: string }
  | { kind: 'tls' }
  /** Octets of no meaning. */
  | { kind: 'garbage'; octets: string }
  /** The client disconnects behind these octets. */
  | { kind: 'leave'; octets: string; reset: boolean }

/** The sender that only a smuggled message has. */
export const smuggler = 'smuggler@client.test'

/** Recipients elsewhere, also by routes through the box. */
export const foreign = [
  '<root@far0.test>',
  '<a%far0.test@pillarbox.test>',
  '<@pillarbox.test:b@far1.test>',
  '<far1.test!c@pillarbox.test>',
  '<"d@far2.test"@pillarbox.test>',
]

const malformed = [
  '<>',
  '<@>',
  '<"a b"@pillarbox.test>',
  '<a@[127.0.0.1]>',
  '<ä@pillarbox.test>',
  'a@b',
  '<a@b',
  '<a@@b>',
  `<${'x'.repeat(300)}@pillarbox.test>`,
]

const commands = [
  'NOOP',
  'RSET',
  'VRFY a',
  'EXPN a',
  'HELP',
  'ETRN x',
  'AUTH PLAIN AGEAYg==',
  'FOO',
  'DATA x',
  'MAIL FROM:<',
  'RCPT',
  'X'.repeat(400),
]

const parameters = [
  '',
  '',
  '',
  ' SIZE=100',
  ' BODY=8BITMIME',
  ' SMTPUTF8',
  ' SIZE=99999999999',
  ' RET=FULL ENVID=x',
  ' FOO=BAR',
  ' AUTH=<>',
  ' SIZE=1 SIZE=2',
]

/** Octets that some servers take for the end of a message, and that are none. */
const falseEnds = [
  '\n.\n',
  '\n.\r\n',
  '\r.\r',
  '\r.\r\n',
  '\r\n.\n',
  '\r\n.\r',
  '\r\n\0.\r\n',
  '\r\n.\0\r\n',
  '\r\n..\r\n',
  '\n\n.\r\n\r\n',
  '\r\r\n.\r\r\n',
]

/** The steps of one dialogue with mail for an address of the box; each message has a marker of its own. */
export function dialogueOf(random: Random, mailbox: string, name: string): Step[] {
  const steps: Step[] = [{ kind: 'commands', lines: [`${pick(['EHLO', 'HELO', 'ehlo'], random)} client.test`] }]
  const count = 1 + random(6)
  for (let index = 0; index < count; index += 1) {
    const chance = random(12)
    if (chance < 6) steps.push(...transactionOf(random, mailbox, `${name}-${index}`))
    else if (chance < 8)
      steps.push({ kind: 'commands', lines: Array.from({ length: 1 + random(4) }, () => pick(commands, random)) })
    else if (chance === 8) steps.push({ kind: 'tls' }, { kind: 'commands', lines: ['EHLO client.test'] })
    else if (chance === 9) steps.push({ kind: 'garbage', octets: garbageOf(random) })
    else if (chance === 10) steps.push({ kind: 'commands', lines: [`RCPT TO:${pick(foreign, random)}`] })
  }
  if (random(8) === 0)
    steps.push({ kind: 'leave', octets: pick(['', 'MAIL FR', 'DATA\r\nhalf a line'], random), reset: random(2) === 0 })
  return steps
}

/** MAIL and RCPT, one by one or pipelined, in their order or another, and a message. */
function transactionOf(random: Random, mailbox: string, marker: string): Step[] {
  const others = Array.from({ length: random(3) }, () => pick(random(2) === 0 ? foreign : malformed, random))
  const lines = [
    `MAIL FROM:<sender@client.test>${pick(parameters, random)}`,
    ...[`<${mailbox}>`, ...others].map((recipient) => `RCPT TO:${recipient}${random(8) === 0 ? pick(parameters, random) : ''}`),
  ]
  if (random(8) === 0) lines.reverse()
  if (random(8) === 0) lines.splice(random(lines.length), 1)
  const steps: Step[] =
    random(2) === 0 ? [{ kind: 'commands', lines }] : lines.map((line) => ({ kind: 'commands', lines: [line] }))
  return [...steps, { kind: 'message', octets: messageOf(random, mailbox, marker), marker }]
}

/** A message with its final dot; one in three has another hidden behind a false end. */
function messageOf(random: Random, mailbox: string, marker: string): string {
  const head = `From: sender@client.test\r\nSubject: ${marker}\r\nMessage-ID: <${marker}@client.test>\r\n\r\n`
  const body = pick(['Hello.\r\n', '..stuffed\r\n', '', `${'x'.repeat(2000)}\r\n`, 'a line\r\n'.repeat(200)], random)
  if (random(3) > 0) return `${head}${body}.\r\n`
  const hidden = [`MAIL FROM:<${smuggler}>`, `RCPT TO:<${mailbox}>`, 'DATA', `Subject: smuggled ${marker}`, '', 'Smuggled.', '']
  return `${head}${body}${pick(falseEnds, random)}${hidden.join('\r\n')}.\r\n`
}

function garbageOf(random: Random): string {
  return Array.from({ length: 1 + random(200) }, () => String.fromCharCode(random(256))).join('')
}
