import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inflateRawSync } from 'node:zlib'
import type { Examination } from '../../../src/mail/types.ts'
import type { Examiner } from '../../../src/mail/workers/examiner.ts'
import { DnsStub } from '../../support/dns-stub.ts'
import { randomFrom } from '../../support/random.ts'
import { envelope } from '../../support/signed-mail.ts'
import { Dialogue } from '../../support/smtp.ts'
import { type RunningBox, World } from '../box/world.ts'
import { marker, mutatedMessage, sourceMessages } from '../mail/mutation.ts'
import { shrunk } from '../shrink.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Messages of one case; one in so many of them goes through a box as well. */
const [messagesOfCase, share] = [200, 20]

/** Faults of one case that are shrunk. */
const maxShrunk = 2

/** Why a message could be read in part, as src/message/parse.ts documents it; anything else is a crash that was caught. */
const bounds = /^(?:header_too_large|too_many_lines|too_many_parts|part_header_too_large|no_parts|text_too_long):/

export const mail: Trial = {
  name: 'mail',
  about:
    'Messages of the tests and reports of other servers are mutated in their structure (fields, parameters, parts, encodings, nesting, line ends) and in ' +
    'their bytes, and are parsed, authenticated and screened by the worker threads of the box; one in twenty is sent to a box by SMTP as well. None crashes ' +
    'the parser or takes it longer than its deadline, nothing of one field appears in another, and what a box accepts it returns byte for byte.',
  goal: { tries: 1_000_000, unit: 'messages', faults: '0 crashes, 0 hangs over the deadline, 0 kept differently from sent' },
  short: 1000,
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
    const examiner = new module.Examiner({
      hostname: 'mx.test',
      dmarc: 'reject',
      deadline: 60_000,
      trusted_sealers: [],
      dns: { servers: dns.servers, timeout: 30_000 },
      verify: true,
    })
    const world = await World.open(directory, program, randomFrom(seed))
    const box = await world.start(world.home('box'))
    const texts = sourceMessages().map((raw) => raw.toString('latin1'))
    const trial = new MailTrial({ world, box, examiner, texts, seed })
    return {
      run: (number) => trial.run(number),
      async close() {
        await box.process.end('SIGKILL')
        await Promise.all([world.close(), examiner.stop()])
        await dns.close()
      },
    }
  },
}

interface Deps {
  world: World
  box: RunningBox
  examiner: Examiner
  texts: string[]
  seed: number
}

class MailTrial {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async run(number: number): Promise<CaseResult> {
    const { texts, seed } = this.#deps
    const random = randomFrom(caseSeed(seed, number))
    const messages = Array.from({ length: messagesOfCase }, () => mutatedMessage(texts, random))
    const faults: string[] = []
    // those that stop a worker are tried alone, so that each is known
    const examined = await Promise.all(messages.map((raw) => this.#faultsRead(raw)))
    for (const [index, found] of examined.entries()) {
      if (found.length === 0) continue
      if (faults.length >= maxShrunk) {
        faults.push(...found.map((fault) => `message ${index}: ${fault}`))
        continue
      }
      const raw = await shrunk(messages[index]!, async (bytes) =>
        (await this.#faultsRead(bytes)).some((fault) => kindOf(fault) === kindOf(found[0]!)),
      )
      const file = join(tmpdir(), `torture-mail-${seed}-${number}-${index}.eml`)
      writeFileSync(file, raw)
      faults.push(...found.map((fault) => `message ${index}: ${fault}; shrunk to ${raw.length} bytes in ${file}`))
    }
    for (let index = 0; index < messages.length; index += share)
      for (const fault of await this.#faultsKept(messages[index]!)) faults.push(`message ${index}: ${fault}`)
    return { tries: messagesOfCase, faults }
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

  /** Sends a message to the box; answers what is wrong with what it keeps, if it takes it. */
  async #faultsKept(raw: Buffer): Promise<string[]> {
    const { box, world } = this.#deps
    const { inbox } = world.furnished
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
    // smuggling, long lines and the like are refused for good
    if (!reply.startsWith('250 '))
      return /^5\d\d /.test(reply) ? [] : [`it was answered with ${reply === '' ? 'nothing' : reply}`]
    const found: string[] = []
    for (const spam of [false, true]) {
      const list = await box.get('GET', `/v1/identities/${inbox.id}/emails?limit=1&duplicates=true&spam=${spam}`)
      for (const { id } of list['data'] as { id: string }[]) {
        const kept = await box.text(`/v1/identities/${inbox.id}/emails/${id}/raw`)
        if (!withoutTrace(kept).endsWith(withoutTrace(sent))) {
          found.push(difference(withoutTrace(kept), withoutTrace(sent)))
          continue
        }
        const shown = await box.ask('GET', `/v1/identities/${inbox.id}/emails/${id}`)
        return shown?.status === 200 ? [] : [`it is shown with ${shown?.status} ${JSON.stringify(shown?.body)}`]
      }
    }
    return [`it is kept with other bytes, or not at all: ${found.join(', or ')}`]
  }
}

/** A message without the fields that `GET …/raw` leaves out where they are forged (docs/email.md). */
export function withoutTrace(text: string): string {
  const end = text.startsWith('\r\n') ? 0 : text.indexOf('\r\n\r\n')
  const head = end < 0 ? text : text.slice(0, end + 2)
  const fields = /^(?:return-path|authentication-results)(?:[ \t]|\r\n[ \t])*:.*(?:\r\n[ \t].*)*\r\n/gim
  return head.replaceAll(fields, '') + text.slice(head.length)
}

/** Where a text and what is kept of it differ first, seen from the end. */
export function difference(kept: string, sent: string): string {
  let same = 0
  while (same < sent.length && kept.at(-1 - same) === sent.at(-1 - same)) same += 1
  const around = (text: string): string =>
    JSON.stringify(text.slice(Math.max(0, text.length - same - 30), text.length - same + 30))
  return `sent ${around(sent)}, kept ${around(kept)}`
}

/** A fault without its numbers: what stays the same while a message is made smaller. */
function kindOf(fault: string): string {
  return fault.replaceAll(/\d+/g, '')
}
