import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inflateRawSync } from 'node:zlib'
import type { Examination } from '../../../src/mail/types.ts'
import type { Examiner } from '../../../src/mail/workers/examiner.ts'
import { DnsStub } from '../../support/dns-stub.ts'
import { randomFrom } from '../../support/random.ts'
import { envelope } from '../../support/signed-mail.ts'
import { Dialogue } from '../../support/smtp.ts'
import { atOnce } from '../box/at-once.ts'
import { faultsOfLog } from '../box/log.ts'
import { Inboxes } from '../box/inboxes.ts'
import { faultOfKept } from '../box/kept.ts'
import { type Named, type RunningBox, World } from '../box/world.ts'
import { marker, mutatedMessage, sourceMessages } from '../mail/mutation.ts'
import { type Corpus, packagedMessages } from '../mail/packaged.ts'
import { shrunk } from '../shrink.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Messages of one case; one in so many of them goes through a box as well. */
const [messagesOfCase, share] = [1000, 10]

/** Messages that are examined at once, and those that a box is sent at once, each to an identity of its own. */
const [abreast, inboxes] = [100, 8]

/** Messages with a fault after which a case goes no further, and how many of them are shrunk. */
const [maxFaulty, maxShrunk] = [5, 2]

/** Cases after which there is another box, so that its files stay small. */
const casesOfBox = 50

/** Why a message could be read in part, as src/message/parse.ts documents it; anything else is a crash that was caught. */
const bounds = /^(?:header_too_large|too_many_lines|too_many_parts|part_header_too_large|no_parts|text_too_long):/

export const mail: Trial = {
  name: 'mail',
  about:
    'Messages of tests and reports of other servers are mutated in their structure (fields, parameters, parts, encodings, nesting, line ends) and in ' +
    'their bytes, and are parsed, authenticated and screened by the worker threads of the box; one in ten is sent to a box by SMTP as well. None crashes ' +
    'the parser or takes it longer than its deadline, and nothing of one field appears in another. Of those that are sent, what a box accepts it returns byte for ' +
    'byte, what it refuses for good has what it is refused for (about one in four a bare CR, a bare LF or a NUL, none of which is accepted), and the box logs no ' +
    'error. There is no public corpus of mail among the sources: they are the messages of the tests of the box, and where they are installed those of ' +
    'Python’s email package (msg_*.txt) and of dkimpy; a case is repeated only where the same are installed.',
  goal: { tries: 1_000_000, unit: 'messages', faults: '0 crashes, 0 hangs over the deadline, 0 of those sent kept differently' },
  short: 1000,
  hours: 0.3,
  broken: {
    'unguarded-name': {
      what: 'a subject in brackets makes the parser throw',
      file: 'src/message/parse.ts',
      find: 'const subject = withoutInvisible(writtenSubject)',
      replace:
        "const subject = withoutInvisible(writtenSubject)\n  if (writtenSubject.includes('<')) throw new Error('unexpected <')",
    },
    'endless-loop': {
      what: 'a text with an override of the direction is read for ever',
      file: 'src/message/parse.ts',
      find: 'const subject = withoutInvisible(writtenSubject)',
      replace:
        "const subject = withoutInvisible(writtenSubject)\n  while (bodyOf(mail?.text)?.includes('\\u202e')) if (subject === null) break",
    },
    'kept-dots': {
      what: 'a stuffed dot is kept before another dot',
      file: 'src/smtp/unstuffing.ts',
      find: "if (position === 'start' && octet === dot) {",
      replace: "if (position === 'start' && octet === dot && chunk[at + 1] !== dot) {",
    },
  },
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const dns = await DnsStub.start()
    // the examiner of the build that is tried
    const module = (await import(pathToFileURL(join(program, 'src', 'mail', 'workers', 'examiner.ts')).href)) as {
      Examiner: typeof Examiner
    }
    const settings = {
      hostname: 'mx.test',
      dmarc: 'reject' as const,
      deadline: 60_000,
      trusted_sealers: [],
      dns: { servers: dns.servers, timeout: 30_000 },
      verify: true,
    }
    const examiner = new module.Examiner(settings, undefined, { workers: availableParallelism() })
    const world = await World.open(directory, program, randomFrom(seed))
    const corpora = [{ name: 'the tests of the box', messages: sourceMessages() }, ...packagedMessages()]
    const trial = new MailTrial({ world, dns, examiner, corpora, seed })
    return {
      run: (number) => trial.run(number),
      notes: () => trial.notes(),
      async close() {
        await trial.close()
        await Promise.all([world.close(), examiner.stop()])
        await dns.close()
      },
    }
  },
}

interface Deps {
  world: World
  dns: DnsStub
  examiner: Examiner
  corpora: Corpus[]
  seed: number
}

/** A box that was started. */
interface Receiver {
  box: RunningBox
  inboxes: Inboxes
  cases: number
}

/** A message of a case, and what is wrong with it. */
interface Faulty {
  index: number
  raw: Buffer
  found: string[]
}

class MailTrial {
  readonly #deps: Deps
  readonly #texts: string[]
  /** How often the box answered a message so. */
  readonly #replies = new Map<string, number>()
  #receiver: Receiver | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    this.#texts = deps.corpora.flatMap(({ messages }) => messages.map((raw) => raw.toString('latin1')))
  }

  async run(number: number): Promise<CaseResult> {
    const { dns, seed, world } = this.#deps
    const message = (index: number): Buffer => mutatedMessage(this.#texts, randomFrom(caseSeed(caseSeed(seed, number), index)))
    const receiver = await this.#started()
    const unread: Faulty[] = []
    const unkept: Faulty[] = []
    let tries = 0
    const isOver = (): boolean => unread.length + unkept.length >= maxFaulty
    const read = async (index: number): Promise<void> => {
      if (isOver()) return
      tries += 1
      const raw = message(index)
      const found = await this.#faultsRead(raw)
      if (found.length > 0) unread.push({ index, raw, found })
    }
    const keep = async (index: number): Promise<void> => {
      if (isOver()) return
      const raw = message(index)
      const { reply, found } = await receiver.inboxes.lend((inbox) => keptOf(receiver.box, inbox, raw))
      this.#replies.set(reply, (this.#replies.get(reply) ?? 0) + 1)
      if (found.length > 0) unkept.push({ index, raw, found })
    }
    const indexes = Array.from({ length: messagesOfCase }, (_, index) => index)
    await Promise.all([
      atOnce(
        abreast,
        indexes.map((index) => () => read(index)),
      ),
      atOnce(
        inboxes,
        indexes.filter((index) => index % share === 0).map((index) => () => keep(index)),
      ),
    ])
    dns.queries.length = 0
    world.peers.begin(() => 0)
    const faults = [
      ...(await this.#shrunken(number, unread)),
      ...unkept.flatMap(({ index, found }) => found.map((fault) => `message ${index}: ${fault}`)),
      ...faultsOfLog(receiver.box),
    ]
    return { tries, faults }
  }

  notes(): string[] {
    const replies = [...this.#replies].toSorted(([, one], [, other]) => other - one)
    const sent = replies.reduce((sum, [, count]) => sum + count, 0)
    return [
      `The messages that mutations begin with: ${this.#deps.corpora.map(({ name, messages }) => `${messages.length} of ${name}`).join(', ')}.`,
      `${sent.toLocaleString('en')} were sent to a box by SMTP, which answered:`,
      ...replies.map(([reply, count]) => `${count.toLocaleString('en')} times ${reply}`),
    ]
  }

  async close(): Promise<void> {
    await this.#receiver?.box.process.end('SIGKILL')
  }

  async #started(): Promise<Receiver> {
    if (this.#receiver !== undefined && this.#receiver.cases++ < casesOfBox) return this.#receiver
    await this.close()
    const { world } = this.#deps
    const box = await world.start(world.home('box'))
    this.#receiver = { box, inboxes: await Inboxes.open(box, inboxes), cases: 1 }
    return this.#receiver
  }

  /** Tells what was found, with a small message that has the same fault. Those that stop a worker are tried alone, so that each is known. */
  async #shrunken(number: number, faulty: Faulty[]): Promise<string[]> {
    const { seed } = this.#deps
    const faults: string[] = []
    for (const [place, { index, raw, found }] of faulty.toSorted((one, other) => one.index - other.index).entries()) {
      let more = ''
      if (place < maxShrunk) {
        const small = await shrunk(raw, joined, async (bytes) =>
          (await this.#faultsRead(bytes)).some((fault) => kindOf(fault) === kindOf(found[0]!)),
        )
        const file = join(tmpdir(), `torture-mail-${seed}-${number}-${index}.eml`)
        writeFileSync(file, small)
        more = `; shrunk to ${small.length} bytes in ${file}`
      }
      faults.push(...found.map((fault) => `message ${index}: ${fault}${more}`))
    }
    return faults
  }

  /** What is wrong with what is read of a message. */
  async #faultsRead(raw: Buffer): Promise<string[]> {
    const { examiner } = this.#deps
    const killed = examiner.counters.killed
    const began = performance.now()
    let examination: Examination
    try {
      examination = await examiner.examine(raw, envelope())
    } catch (error) {
      return [`it was not examined: ${(error as Error).message}`]
    }
    const { parsed, sha256, bodies, body_size } = examination
    const { subject, snippet, codes, links, attachments, parse_error } = parsed
    const stored = inflateRawSync(bodies).toString()
    const read = `${JSON.stringify(parsed)}${stored}`
    const checks: [fault: string, isFine: boolean][] = [
      [`it was read for ${Math.round((performance.now() - began) / 1000)} s`, performance.now() - began < 60_000],
      [
        `it ended a worker (${parse_error})`,
        examiner.counters.killed === killed || parse_error === null || bounds.test(parse_error),
      ],
      [`the parser failed: ${parse_error}`, parse_error === null || bounds.test(parse_error)],
      ['it has another hash', sha256 === createHash('sha256').update(raw).digest('hex')],
      ['its bodies have another size', Buffer.byteLength(stored) === body_size],
      ['the text of another field is in it', !read.includes(marker)],
      ['its snippet has more than a line', snippet.length <= 200 && !/[\r\n]/.test(snippet)],
      ['it has too many codes or links', codes.length <= 5 && links.length <= 100],
      ['its text has a NUL', !`${subject}${stored}`.includes('\0') && !stored.includes('\\u0000')],
      ['an attachment has a path for a name', attachments.every(({ filename }) => /^[^/\\\p{Cc}]{1,200}$/u.test(filename))],
    ]
    return checks.flatMap(([fault, isFine]) => (isFine ? [] : [fault]))
  }
}

function joined(before: Buffer, after: Buffer): Buffer {
  return Buffer.concat([before, after])
}

/** Sends a message to the box; answers its reply, and what is wrong with what it keeps if it takes it. */
async function keptOf(box: RunningBox, inbox: Named, raw: Buffer): Promise<{ reply: string; found: string[] }> {
  const text = raw.toString('latin1')
  const sent = text.endsWith('\r\n') ? text : `${text}\r\n`
  const client = await Dialogue.connect(box.smtp.port, box.smtp.host)
  let reply: string
  try {
    await client.reply()
    await client.say('EHLO client.test')
    reply = await client.deliver(Buffer.from(sent.replaceAll(/(^|\r\n)\./g, '$1..'), 'latin1'), [inbox.email])
  } finally {
    client.destroy()
  }
  if (!reply.startsWith('250 '))
    return {
      reply,
      found: isRefusal(reply, sent, inbox.email) ? [] : [`it was answered with ${reply === '' ? 'nothing' : reply}`],
    }
  if (isSmuggling(sent)) return { reply: '250', found: ['it was accepted with a bare CR, a bare LF or a NUL'] }
  const fault = await faultOfKept(box, inbox.id, sent)
  return { reply: '250', found: fault === undefined ? [] : [fault] }
}

/** The Received fields that smtp.max_received lets through, and the octets of the longest header. */
const [maxHops, maxHeader] = [50, 256 * 1024]

/** True if a message is refused for good for a reason that it has, by what docs/email.md says. */
function isRefusal(reply: string, sent: string, recipient: string): boolean {
  if (reply.startsWith('550 5.6.0 ')) return isSmuggling(sent)
  if (reply.startsWith('554 5.6.0 ')) return sent.split('\r\n').some((line) => line.length > 998)
  const header = sent.startsWith('\r\n') ? '' : sent.split('\r\n\r\n', 1)[0]!
  if (reply.startsWith('554 5.4.6 ')) {
    const hops = header.match(/^received[ \t]*:/gim)?.length ?? 0
    const delivered = header.match(/^delivered-to[ \t]*:[^\r]*(?:\r\n[ \t][^\r]*)*/gim) ?? []
    return hops > maxHops || delivered.some((field) => field.toLowerCase().includes(recipient.toLowerCase()))
  }
  return reply.startsWith('552 5.3.4 ') && header.length > maxHeader
}

function isSmuggling(sent: string): boolean {
  return /\r(?!\n)|(?<!\r)\n|\0/.test(sent)
}

/** A fault without its numbers: what stays the same while a message is made smaller. */
function kindOf(fault: string): string {
  return fault.replaceAll(/\d+/g, '')
}
