import type { Basis } from '../../basis.ts'
import { mkdir, open, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { conflict, Fault, invalid, storageFull } from '../../core/fault.ts'
import { newId } from '../../core/ids.ts'
import { isLarge, largeWork } from '../../core/work/long-work.ts'
import { release } from '../../core/memory.ts'
import { type Caller, may } from '../../core/scopes.ts'
import { Turns } from '../../core/work/paced-work.ts'
import type { Upload } from '../../http/route.ts'
import type { Identities } from '../../identities/identities.ts'
import type { Jobs, ReportProgress } from '../../jobs/jobs.ts'
import type { Job } from '../../jobs/model.ts'
import type { MailArchive, Restorable, RestoreResult } from '../../mail/archive.ts'
import { headEnd } from '../../message/headers.ts'
import { WorkLimiter } from '../../net/work-limiter.ts'
import type { SmsArchive } from '../../sms/archive.ts'
import type { Incoming } from './budget.ts'
import { incomingFrom } from './incoming.ts'
import { importKind, type Tally, tallied } from './model.ts'

interface Deps extends Pick<Basis, 'database' | 'space'> {
  jobs: Jobs
  identities: Identities
  mail: MailArchive
  sms: SmsArchive
  /** The largest upload in bytes. */
  limit: () => number
  directory: string
}

/** The largest imported message in bytes: large providers deliver no more than 50 MB. */
const largest = 50 * 1024 * 1024

/** The largest unpacked size, as a multiple of the limit. */
const maxExpansion = 8

const maxMessages = 300_000

/** The most messages being read, and their bytes together; the same bytes apply to those being written. */
const maxReading = { messages: 8, octets: 32 * 1024 * 1024 }

/** The most messages written concurrently: they share a commit. */
const writeBatch = 16

/** The most imports of all accounts that have messages in memory; the others wait. */
const concurrent = { all: 1, one: 1 }

/** The bytes after which an import lets one that waits continue, and what each message counts in addition to its own. */
const turnBytes = { all: 32 * 1024 * 1024, message: 64 * 1024 }

export class Imports {
  readonly #deps: Deps
  readonly #arriving = new Set<string>()
  readonly #limiter = new WorkLimiter({ concurrent })

  constructor(deps: Deps) {
    this.#deps = deps
    deps.jobs.endedBy(importKind, ['messages:write', 'emails:write'])
  }

  /**
   * Stores the file, and starts the import. Throws Fault `body_too_large` above the limit, `job_running` while the account has another
   * import.
   */
  async start(caller: Caller, identityId: string, upload: Upload, signal: AbortSignal): Promise<Job> {
    const { jobs, identities } = this.#deps
    await identities.row(caller, identityId)
    jobs.requireFree(caller, importKind, 'account')
    if (this.#arriving.has(caller.account_id)) {
      throw conflict('Another import is being uploaded; wait until it ends.', { code: 'job_running' })
    }
    this.#arriving.add(caller.account_id)
    const path = join(this.#deps.directory, newId('req'))
    try {
      const size = await this.#receive(upload, path, signal)
      const work = async (report: ReportProgress, stop: AbortSignal): Promise<Record<string, unknown>> => {
        try {
          return await this.#work(caller, identityId, { path, size, report, signal: stop })
        } finally {
          await rm(path, { force: true })
        }
      }
      return await jobs.start(caller, importKind, work, { identity_id: identityId, each: 'account' })
    } catch (error) {
      await rm(path, { force: true })
      throw error
    } finally {
      this.#arriving.delete(caller.account_id)
    }
  }

  /** Removes uploads of an earlier run, which no job reads any more. */
  async sweep(): Promise<void> {
    const { directory } = this.#deps
    for (const name of await readdir(directory).catch(() => [])) await rm(join(directory, name), { force: true })
  }

  async #receive({ octets, length }: Upload, path: string, signal: AbortSignal): Promise<number> {
    const { limit, directory, space } = this.#deps
    const max = limit()
    if (length !== undefined && length > max) throw tooLarge(max)
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const file = await open(path, 'wx', 0o600)
    let size = 0
    try {
      for await (const chunk of octets) {
        signal.throwIfAborted()
        size += chunk.length
        if (size > max) throw tooLarge(max)
        if (space.low()) throw storageFull()
        for (let done = 0; done < chunk.length;) done += (await file.write(chunk, done)).bytesWritten
      }
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code === 'ENOSPC' ? storageFull(error) : error
    } finally {
      await file.close()
    }
    if (size === 0) throw invalid('body', 'Send the file as the body: an mbox, a message (.eml), or a ZIP of such.', 'missing')
    return size
  }

  async #work(
    caller: Caller,
    identityId: string,
    { path, size, report, signal }: { path: string; size: number; report: ReportProgress; signal: AbortSignal },
  ): Promise<Record<string, unknown>> {
    const reading = { done: 0, total: size }
    report({ done: 0, total: size, unit: 'octets' })
    const bounds = { message: largest, unpacked: maxExpansion * this.#deps.limit() }
    const run = new ImportRun(this.#deps, caller, identityId)
    const turns = new Turns()
    let messages = 0
    let taken = 0
    const place = this.#limiter.share(caller.account_id)
    await place.begin(signal)
    try {
      for await (const incoming of incomingFrom(path, bounds, reading)) {
        signal.throwIfAborted()
        // items that are only counted need no wait
        if (turns.due) await turns.yield()
        messages += 1
        if (messages > maxMessages) {
          const message = `The file contains more than ${maxMessages} messages. Split it into several.`
          throw new Fault('invalid_request', message, { code: 'import_too_large' })
        }
        if (this.#deps.space.low()) throw storageFull()
        taken += turnBytes.message + ('email' in incoming ? incoming.email.length : 0)
        await run.take(incoming)
        report({ done: Math.min(reading.done, reading.total), total: reading.total })
        if (taken < turnBytes.all || !this.#limiter.waiting) continue
        await run.end()
        place.end()
        await place.begin(signal)
        taken = 0
      }
      const tally = await run.end()
      report({ done: reading.total, total: reading.total })
      return { ...tally }
    } finally {
      // what is still being read or written after a failure stays in memory until then
      void run.settled().then(place.end)
    }
  }
}

/** A message being written to the database, with its bytes. */
interface Writing {
  sms: boolean
  octets: number
  /** Released when it is written. */
  raw?: Buffer
  kept: Promise<RestoreResult>
}

/** Imports items into one identity: a few messages are read while earlier ones are written, always in order. */
class ImportRun {
  readonly #deps: Deps
  readonly #caller: Caller
  readonly #identityId: string
  readonly #tally = Object.fromEntries(tallied.map((name) => [name, 0])) as Tally
  #reading: { octets: number; message: Promise<Restorable & { understood: boolean }> }[] = []
  #writing: Writing[] = []

  constructor(deps: Deps, caller: Caller, identityId: string) {
    this.#deps = deps
    this.#caller = caller
    this.#identityId = identityId
  }

  async take(incoming: Incoming): Promise<void> {
    if ('flaw' in incoming) this.#tally[incoming.flaw] += 1
    else if ('sms' in incoming) await this.#text(incoming)
    else if (headEnd(incoming.email) === Infinity) {
      this.#tally.header_too_large += 1
      release(incoming.email)
    } else if (isLarge(incoming.email.length)) {
      await this.end()
      await largeWork(this.#caller.account_id, incoming.email.length, async () => {
        this.#read(incoming)
        await this.end()
      })
    } else {
      this.#read(incoming)
      if (this.#reading.length >= maxReading.messages || octetsOf(this.#reading) > maxReading.octets) await this.#next()
    }
  }

  #read({ email, metadata }: Extract<Incoming, { email: unknown }>): void {
    const message = this.#deps.mail.read(email, metadata, this.#caller.account_id)
    // awaited in order
    message.catch(() => undefined)
    this.#reading.push({ octets: email.length, message })
  }

  /** Writes all that was taken. */
  async end(): Promise<Tally> {
    while (this.#reading.length > 0) await this.#next()
    await this.#settle()
    return this.#tally
  }

  /** Resolves when nothing is being read or written. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#reading.map(({ message }) => message), ...this.#writing.map(({ kept }) => kept)])
  }

  async #next(): Promise<void> {
    const { database, mail } = this.#deps
    const message = await mail.prepare(this.#identityId, await this.#reading.shift()!.message)
    if (!message.understood) this.#tally.not_understood += 1
    const kept = database.transaction((tx) => mail.insert(tx, this.#caller, this.#identityId, message))
    await this.#write({ sms: false, octets: message.raw.length, raw: message.raw, kept })
  }

  /** Started at once and settled together: they share a commit. */
  async #write(writing: Writing): Promise<void> {
    // awaited in order
    writing.kept.catch(() => undefined)
    this.#writing.push(writing)
    if (this.#writing.length >= writeBatch || octetsOf(this.#writing) > maxReading.octets) await this.#settle()
  }

  async #settle(): Promise<void> {
    const outcomes = await Promise.all(this.#writing.splice(0).map(written))
    for (const { sms, outcome } of outcomes) {
      if (outcome === 'kept') this.#tally[sms ? 'sms' : 'imported'] += 1
      if (outcome === 'duplicate') this.#tally.duplicates += 1
    }
    if (!outcomes.some(({ outcome }) => outcome === 'full')) return
    const { imported, sms } = this.#tally
    const texts = sms === 0 ? '' : ` and ${sms} text messages`
    throw conflict(
      `The mailbox is full (mail.quota, or the storage quota of its account, limits.storage_bytes); ${imported} messages${texts} were imported before. Free space and repeat the import: existing messages are skipped.`,
      { code: 'mailbox_full' },
    )
  }

  async #text({ sms, media }: Extract<Incoming, { sms: unknown }>): Promise<void> {
    const { database, sms: archive } = this.#deps
    const state = archive.understand(sms)
    if (!state) this.#tally.unreadable += 1
    else if (!may(this.#caller, ['messages:write', 'sms:write'])) this.#tally.ignored += 1
    else {
      const kept = database.transaction((tx) => archive.keep(tx, this.#caller, this.#identityId, { state, media }))
      await this.#write({ sms: true, octets: media.reduce((sum, one) => sum + (one?.length ?? 0), 0), kept })
    }
  }
}

async function written({ sms, raw, kept }: Writing): Promise<{ sms: boolean; outcome: RestoreResult }> {
  const outcome = await kept
  if (raw) release(raw)
  return { sms, outcome }
}

function octetsOf(messages: readonly { octets: number }[]): number {
  return messages.reduce((sum, { octets }) => sum + octets, 0)
}

function tooLarge(max: number): Fault {
  return new Fault('invalid_request', `The file is larger than ${max} bytes (transfer.upload_limit).`, {
    code: 'body_too_large',
  })
}
