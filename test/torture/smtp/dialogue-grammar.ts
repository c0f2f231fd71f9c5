import { pick, type Random } from '../../support/random.ts'
import { type Login, loginOf } from './logins.ts'

/** Where a dialogue is held: the port for other servers, that for submission with STARTTLS, or that with TLS from the first octet. */
export type Door = 'smtp' | 'submission' | 'tls'

/** A step of a dialogue. */
export type Step =
  /** Sent at once; each line has one reply. */
  | { kind: 'commands'; lines: string[] }
  /** After DATA was answered with 354; it has one reply. `own`: its author is the one that logs in. */
  | { kind: 'message'; octets: string; marker: string; own: boolean }
  | ({ kind: 'login' } & Login)
  /** STARTTLS, with these octets in the same packet, and a handshake. */
  | { kind: 'tls'; behind: string; version: 'TLSv1.2' | 'TLSv1.3' }
  /** STARTTLS, and then these octets in place of a handshake, or so many of its first; the client disconnects. */
  | { kind: 'no handshake'; octets: string | number; reset: boolean }
  /** The client asks for other keys, under TLS 1.2. */
  | { kind: 'renegotiation'; times: number }
  /** Commands in the clear under TLS. */
  | { kind: 'plaintext'; octets: string }
  /** Octets of no meaning. */
  | { kind: 'garbage'; octets: string }
  /** The client disconnects behind these octets; but for `close`, TLS is not ended. */
  | { kind: 'leave'; octets: string; way: 'close' | 'cut' | 'reset' }

/** Whose mail a dialogue is about. */
export interface Parties {
  door: Door
  /** Receives. */
  mailbox: string
  /** Logs in with this password. */
  user: string
  password: string
}

/** The sender that only a smuggled message has. */
export const smuggler = 'smuggler@client.test'

/** A recipient elsewhere, whose mail a submission may be for. */
export const abroad = 'root@far0.test'

/** Recipients elsewhere, also by routes through the box. */
export const foreign = [
  `<${abroad}>`,
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
export const falseEnds = [
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

const hello: Step = { kind: 'commands', lines: ['EHLO client.test'] }

/** The steps of one dialogue with mail for an address of the box; each message has a marker of its own. */
export function dialogueOf(random: Random, parties: Parties, name: string): Step[] {
  const steps: Step[] = [{ kind: 'commands', lines: [`${pick(['EHLO', 'HELO', 'ehlo'], random)} client.test`] }]
  if (parties.door !== 'smtp') {
    if (random(10) === 0) steps.push(loginStepOf(random, parties))
    if (parties.door === 'submission' && random(8) > 0) steps.push(tlsOf(random, parties, name), hello)
    if (random(4) > 0) steps.push({ kind: 'login', ...loginOf(random, parties, 'right') })
  }
  const count = 1 + random(6)
  for (let index = 0; index < count; index += 1) steps.push(...partOf(random, parties, `${name}-${index}`))
  const chance = random(24)
  if (chance < 3) {
    const octets = pick(['', 'MAIL FR', 'DATA\r\nhalf a line'], random)
    steps.push({ kind: 'leave', octets, way: pick(['close', 'cut', 'reset'], random) })
  } else if (chance < 5) steps.push(brokenHandshakeOf(random))
  else if (chance === 5) steps.push({ kind: 'plaintext', octets: `NOOP\r\n${injectionOf(parties, name)}` })
  // the handshake comes first here
  return parties.door === 'tls' && random(16) === 0 ? [brokenHandshakeOf(random)] : steps
}

function partOf(random: Random, parties: Parties, marker: string): Step[] {
  const chance = random(14)
  if (chance < 6) return transactionOf(random, parties, marker)
  if (chance < 8) return [{ kind: 'commands', lines: Array.from({ length: 1 + random(4) }, () => pick(commands, random)) }]
  if (chance === 8) return [tlsOf(random, parties, marker), hello]
  if (chance === 9) return [{ kind: 'garbage', octets: garbageOf(random) }]
  if (chance === 10) return [{ kind: 'commands', lines: [`RCPT TO:${pick(foreign, random)}`] }]
  if (chance === 11) return [loginStepOf(random, parties)]
  if (chance === 12) return [{ kind: 'renegotiation', times: 1 + random(4) }]
  return []
}

function loginStepOf(random: Random, parties: Parties): Step {
  return { kind: 'login', ...loginOf(random, parties) }
}

/** Of three, one has commands behind it that a client in the middle could have put there. */
function tlsOf(random: Random, parties: Parties, marker: string): Step {
  const version = pick(['TLSv1.2', 'TLSv1.3'] as const, random)
  if (random(3) > 0) return { kind: 'tls', behind: '', version }
  const injection = injectionOf(parties, marker)
  // parsers of commands may go on after the handshake with what they had begun
  const behind = pick(['NOOP\r\n', injection, `${'NOOP\r\n'.repeat(250)}${injection}`, `MAIL FROM:<${smuggler}>`], random)
  return { kind: 'tls', behind, version }
}

function injectionOf({ mailbox, user, password, door }: Parties, marker: string): string {
  const login = `AUTH PLAIN ${Buffer.from(`\0${user}\0${password}`).toString('base64')}`
  const lines = [
    'EHLO client.test',
    ...(door === 'smtp' ? [] : [login]),
    ...hiddenOf(door === 'smtp' ? smuggler : user, mailbox, marker),
  ]
  return `${lines.join('\r\n')}.\r\n`
}

function brokenHandshakeOf(random: Random): Step {
  const octets = pick<string | number>([random(1000), 100_000, garbageOf(random), 'EHLO client.test\r\nNOOP\r\n'], random)
  return { kind: 'no handshake', octets, reset: random(3) === 0 }
}

/** MAIL and RCPT, one by one or pipelined, in their order or another, and a message. */
function transactionOf(random: Random, parties: Parties, marker: string): Step[] {
  const { door, mailbox, user } = parties
  const others = Array.from({ length: random(3) }, () => pick(random(2) === 0 ? foreign : malformed, random))
  if (door !== 'smtp' && random(2) === 0) others.push(`<${abroad}>`)
  const stranger = 'sender@client.test'
  // who logs in may not send as another
  const [sender, author] =
    door === 'smtp'
      ? [stranger, stranger]
      : [user, user].map((own) => (random(8) > 0 ? own : pick([stranger, mailbox, ''], random)))
  const lines = [
    `MAIL FROM:<${sender}>${door === 'smtp' || random(3) === 0 ? pick(parameters, random) : ''}`,
    ...[`<${mailbox}>`, ...others].map((recipient) => `RCPT TO:${recipient}${random(8) === 0 ? pick(parameters, random) : ''}`),
  ]
  if (random(8) === 0) lines.reverse()
  if (random(8) === 0) lines.splice(random(lines.length), 1)
  const steps: Step[] =
    random(2) === 0 ? [{ kind: 'commands', lines }] : lines.map((line) => ({ kind: 'commands', lines: [line] }))
  if (random(8) === 0) steps.splice(1 + random(steps.length), 0, loginStepOf(random, parties))
  return [...steps, { kind: 'message', octets: messageOf(random, author!, parties, marker), marker, own: author === user }]
}

/** A message with its final dot; one in three has another hidden behind a false end. */
function messageOf(random: Random, author: string, { door, mailbox, user }: Parties, marker: string): string {
  const head = `From: ${author}\r\nSubject: ${marker}\r\nMessage-ID: <${marker}@client.test>\r\n\r\n`
  const body = pick(['Hello.\r\n', '..stuffed\r\n', '', `${'x'.repeat(2000)}\r\n`, 'a line\r\n'.repeat(200)], random)
  if (random(3) > 0) return `${head}${body}.\r\n`
  const hidden = hiddenOf(door === 'smtp' ? smuggler : user, door === 'smtp' ? mailbox : abroad, marker)
  return `${head}${body}${pick(falseEnds, random)}${hidden.join('\r\n')}.\r\n`
}

/** The commands of a message that must be sent nowhere, and its lines. */
export function hiddenOf(sender: string, recipient: string, marker: string): string[] {
  const message = [`From: ${sender}`, `Subject: smuggled ${marker}`, '', 'Smuggled.', '']
  return [`MAIL FROM:<${sender}>`, `RCPT TO:<${recipient}>`, 'DATA', ...message]
}

function garbageOf(random: Random): string {
  return Array.from({ length: 1 + random(200) }, () => String.fromCharCode(random(256))).join('')
}
