import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { type Clock, iso } from '../../core/clock.ts'
import { release, relieve } from '../../core/memory.ts'
import { isLarge } from '../../core/work/long-work.ts'
import { Turns } from '../../core/work/paced-work.ts'
import { type Caller, may, type Scope } from '../../core/scopes.ts'
import type { Packable } from '../../core/zip/zip.ts'
import type { Identity } from '../../identities/model.ts'
import type { MailArchive, ArchivedEmail } from '../../mail/archive.ts'
import type { StoredEmail } from '../../mail/email-rows.ts'
import type { SmsArchive } from '../../sms/archive.ts'
import type { Sms } from '../../sms/model.ts'
import type { AnyRoute } from '../../http/route.ts'
import { collectionsOf } from './collections.ts'
import { mboxrd } from './mbox.ts'
import type { ExportInput } from './model.ts'

const mailScopes: Scope[] = ['messages:read', 'emails:read']
const smsScopes: Scope[] = ['messages:read', 'sms:read']

const batch = 50

interface Deps {
  mail: MailArchive
  sms: SmsArchive
  routes: () => readonly AnyRoute[]
  clock: Clock
}

/** A temporary file for the lines about messages, which are produced while the messages are written. */
interface Spool {
  path: string
  lines: FileHandle
}

/** The files of an export, oldest first; streamed, never in memory as a whole. */
export class Contents {
  readonly #deps: Deps
  readonly #caller: Caller
  readonly #identity: Identity
  readonly #format: ExportInput['format']
  readonly #step: () => void
  /** E-mails whose bytes an mbox would change, by position. */
  #inexact: { row: StoredEmail; file: string }[] = []
  readonly counts = { messages: 0, sms: 0 }
  readonly files: string[] = []

  /** `step` is called for each message, and throws to abort. */
  constructor(deps: Deps, input: { caller: Caller; identity: Identity; format: ExportInput['format']; step: () => void }) {
    this.#deps = deps
    this.#caller = input.caller
    this.#identity = input.identity
    this.#format = input.format
    this.#step = input.step
  }

  /** `spool` is the path of a temporary file. */
  async *all(spool: string): AsyncGenerator<Packable> {
    const identity = this.#identity
    yield this.#file('identity.json', text(JSON.stringify(identity, null, 2)))
    if (may(this.#caller, mailScopes)) yield* this.#mail({ path: spool, lines: await open(spool, 'w', 0o600) })
    if (may(this.#caller, smsScopes)) yield* this.#sms(spool)
    const lists = collectionsOf(this.#deps.routes(), this.#caller, identity.id)
    for (const { file, items } of lists) yield this.#file(file, lines(items()))
    const about = readme(identity.email, iso(this.#deps.clock.now()), this.files)
    yield this.#file('README.txt', text(about))
  }

  async *#mail(spool: Spool): AsyncGenerator<Packable> {
    try {
      if (this.#format === 'mbox') {
        yield this.#file('messages.mbox', this.#mbox(spool))
        for (const { row, file } of this.#inexact) {
          const bytes = await this.#deps.mail.rawMessage(row)
          if (bytes) yield this.#quietly(file, bytes)
        }
      } else {
        yield* this.#emls(spool)
      }
    } finally {
      await spool.lines.close()
    }
    yield this.#file('messages.jsonl', createReadStream(spool.path))
  }

  async *#mbox(spool: Spool): AsyncGenerator<Buffer> {
    let index = 0
    for await (const { row, archived, bytes: octets } of this.#messages()) {
      if (!octets) {
        await note(spool, archived, octets, { file: null, mbox_index: null })
        continue
      }
      const { entry, exact } = await mboxrd(octets, archived.mail_from, Date.parse(archived.received_at))
      const file = exact ? null : name(index)
      await note(spool, archived, octets, { file, mbox_index: index })
      release(octets)
      if (file !== null) this.#inexact.push({ row, file })
      index += 1
      yield entry
    }
  }

  async *#emls(spool: Spool): AsyncGenerator<Packable> {
    let index = 0
    for await (const { archived, bytes: octets } of this.#messages()) {
      const file = octets ? name(index) : null
      await note(spool, archived, octets, { file, mbox_index: null })
      index += 1
      if (!octets) continue
      yield this.#quietly(file!, octets, Date.parse(archived.received_at))
      release(octets)
    }
  }

  async *#messages(): AsyncGenerator<{ row: StoredEmail; archived: ArchivedEmail; bytes: Buffer | undefined }> {
    const { mail } = this.#deps
    for (let seq = 0; ;) {
      const rows = await mail.after(seq, this.#identity.id, batch)
      for (const { row, archived } of rows) {
        this.#step()
        seq = row.seq
        if (!archived) continue
        this.counts.messages += 1
        yield { row, archived, bytes: await mail.rawMessage(row) }
        if (isLarge(row.size)) relieve()
      }
      if (rows.length < batch) return
    }
  }

  async *#sms(spool: string): AsyncGenerator<Packable> {
    const kept = await open(spool, 'w', 0o600)
    try {
      for await (const sms of this.#texts()) {
        const files: (string | null)[] = []
        for (const { index } of sms.media) {
          const bytes = await this.#deps.sms.media(sms.id, index)
          files.push(bytes ? `media/${sms.id}-${index}` : null)
          if (bytes) yield this.#quietly(`media/${sms.id}-${index}`, bytes)
        }
        await kept.write(`${JSON.stringify({ ...sms, media_files: files })}\n`)
      }
    } finally {
      await kept.close()
    }
    yield this.#file('sms.jsonl', createReadStream(spool))
  }

  async *#texts(): AsyncGenerator<Sms> {
    for (let seq = 0; ;) {
      const rows = await this.#deps.sms.after(seq, this.#identity.id, batch)
      for (const row of rows) {
        this.#step()
        this.counts.sms += 1
        seq = row.seq
        yield row.sms
      }
      if (rows.length < batch) return
    }
  }

  #file(file: string, content: Packable['content']): Packable {
    this.files.push(file)
    return this.#quietly(file, content)
  }

  /** One of many similar files. */
  #quietly(file: string, content: Packable['content'], modified = this.#deps.clock.now()): Packable {
    return { name: file, modified, content }
  }
}

function name(index: number): string {
  return `eml/${String(index).padStart(6, '0')}.eml`
}

async function note(
  { lines: file }: Spool,
  archived: ArchivedEmail,
  bytes: Buffer | undefined,
  place: { file: string | null; mbox_index: number | null },
): Promise<void> {
  const octets = bytes?.length ?? null
  const sha256 = bytes ? await sha256Of(bytes) : null
  await file.write(`${JSON.stringify({ ...archived, ...place, octets, sha256 })}\n`)
}

/** Bytes that are hashed at a time: about 1 ms. */
const piece = 512 * 1024

async function sha256Of(bytes: Buffer): Promise<string> {
  const turns = new Turns()
  const hash = createHash('sha256')
  for (let start = 0; start < bytes.length; start += piece) {
    if (turns.due) await turns.yield()
    hash.update(bytes.subarray(start, start + piece))
  }
  return hash.digest('hex')
}

async function* lines(items: AsyncIterable<unknown>): AsyncGenerator<Buffer> {
  for await (const item of items) yield text(`${JSON.stringify(item)}\n`)
}

function text(words: string): Buffer {
  return Buffer.from(words)
}

function readme(address: string, made: string, files: readonly string[]): string {
  return `An export of ${address}, created ${made} by Pillarbox.

identity.json    the identity
messages.mbox    every e-mail, oldest first, including spam (mboxrd: lines that begin with "From " are quoted with ">"; line ends are LF)
eml/             e-mails as separate files: all of them, or those that an mbox cannot store exactly
messages.jsonl   a line for each e-mail with its data except the text; "file" and "mbox_index" give its place
sms.jsonl        a line for each text message, oldest first; its media are in media/
threads.jsonl    conversations
events.jsonl     events, oldest first
cards.jsonl      cards: names and budgets
totp.jsonl       services with one-time passwords
logins.jsonl     logins: places and user names
agents.jsonl     the public profile

Received messages are byte for byte as received. Sent ones have the date and signatures with which they were sent.

NOT included, because the box cannot read it or must not disclose it:
- the encrypted data of cards (encrypted_data): only the client that created it has the key;
- the secrets of one-time passwords: set them up again at each service;
- the passwords, API keys and notes of logins: reveal them one at a time;
- API keys, webhooks and suppressions: they belong to the account.
Data that the key of the export may not read is not included either. The files are: ${files.join(', ')}.

pillarbox import <identity> <this file> imports messages and text messages into another identity.
`
}
