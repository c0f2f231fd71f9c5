import type { Basis } from '../../basis.ts'
import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { chmod, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { day } from '../../core/clock.ts'
import { conflict, notFound, storageFull } from '../../core/fault.ts'
import { type Caller, may, type Scope } from '../../core/scopes.ts'
import type { SignedQuery } from '../../core/shapes.ts'
import { zip } from '../../core/zip/zip.ts'
import type { AnyRoute, Download } from '../../http/route.ts'
import type { Identities } from '../../identities/identities.ts'
import type { Jobs, ReportProgress } from '../../jobs/jobs.ts'
import type { Job, Result } from '../../jobs/model.ts'
import type { MailArchive } from '../../mail/archive.ts'
import { readIndex, type SignedUrls } from '../../mail/attachments.ts'
import { WorkLimiter } from '../../net/work-limiter.ts'
import type { SmsArchive } from '../../sms/archive.ts'
import { Contents } from './contents.ts'
import type { ExportFiles } from './export-files.ts'
import { type Exported, type ExportInput, exportKind } from './model.ts'

interface Deps extends Pick<Basis, 'space' | 'clock'> {
  jobs: Jobs
  identities: Identities
  mail: MailArchive
  sms: SmsArchive
  routes: () => readonly AnyRoute[]
  urls: SignedUrls
  files: ExportFiles
  /** The directory in which they are written, with mode 0700. */
  directory: string
}

/** How long a file is kept and its URL is valid, in milliseconds. */
const lifetime = day

/** The most files of one identity: each may be as large as all its data, and none counts against the quota. */
const maxFiles = 3

/** The scopes by which it is told what an export contains: events of keys and webhooks take account:read. */
const reading: Scope[] = ['identities:read', 'messages:read', 'emails:read', 'sms:read', 'cards:read', 'account:read']

/** Exports being written at once: each has a large message in memory several times. Accounts take turns. */
const concurrent = { all: 2, one: 1 }

export class Exports {
  readonly #deps: Deps
  readonly #limiter = new WorkLimiter({ concurrent })

  constructor(deps: Deps) {
    this.#deps = deps
    deps.jobs.endedBy(exportKind, ['messages:write', 'emails:write'])
    deps.jobs.presents(exportKind, (caller, id, result) => this.#present(caller, id, result))
    deps.jobs.keepsFiles(exportKind, (id) => deps.files.remove(id))
  }

  /** Starts an export of what the caller may read of an identity. */
  async start(caller: Caller, identityId: string, { format }: ExportInput): Promise<Job> {
    const { jobs, identities, space, clock } = this.#deps
    await identities.row(caller, identityId)
    if (space.low()) throw storageFull()
    if ((await jobs.doneSince(exportKind, identityId, clock.now() - lifetime)) >= maxFiles) {
      throw conflict(
        `This identity has ${maxFiles} exports, which are kept for 24 hours. Use one of them (GET /v1/jobs?kind=export), or delete one (DELETE /v1/jobs/{id}).`,
        { code: 'too_many_exports' },
      )
    }
    const work = (report: ReportProgress, signal: AbortSignal, id: string): Promise<Record<string, unknown>> => {
      const write = () => this.#write(caller, identityId, { format, report, signal, id })
      return this.#limiter.share(caller.account_id).run(signal, write)
    }
    const scopes = reading.filter((scope) => may(caller, [scope]))
    return jobs.start(caller, exportKind, work, { identity_id: identityId, scopes, each: 'account' })
  }

  async open(id: string, index: string, query: SignedQuery, ip: string): Promise<Download> {
    const holder = await this.#deps.urls.verify(id, readIndex(index, 'a file'), query)
    const found = await this.#deps.files.find(id)
    // its identity may have been deleted, and with it the job
    if (!found || !(await this.#deps.jobs.knows(id))) {
      found?.bytes.destroy()
      throw notFound('export; it is kept for 24 hours')
    }
    this.#deps.urls.record(holder, { address: ip, action: 'export.downloaded', target: id, identity_id: null })
    const headers = { 'Content-Disposition': `attachment; filename="${id}.zip"`, 'Content-Length': String(found.size) }
    return { type: 'application/zip', bytes: found.bytes, headers }
  }

  /** Removes files that are a day old, or whose job was deleted or interrupted. */
  async sweep(): Promise<void> {
    await this.#deps.files.sweep(lifetime)
  }

  async #write(
    caller: Caller,
    identityId: string,
    { format, report, signal, id }: { format: ExportInput['format']; report: ReportProgress; signal: AbortSignal; id: string },
  ): Promise<Record<string, unknown>> {
    const { identities, mail, urls, clock, directory, space } = this.#deps
    const identity = await identities.get(caller, identityId)
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await chmod(directory, 0o700)
    report({ done: 0, total: await mail.count(identityId), unit: 'messages' })
    const step = (): void => {
      signal.throwIfAborted()
      if (space.low()) throw storageFull()
      report({ done: contents.counts.messages })
    }
    const contents = new Contents(this.#deps, { caller, identity, format, step })
    const [part, spool] = [join(directory, `${id}.part`), join(directory, `${id}.lines`)]
    const hash = createHash('sha256')
    let size = 0
    const measured = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        hash.update(chunk)
        size += chunk.length
        done(null, chunk)
      },
    })
    try {
      await pipeline(zip(contents.all(spool)), measured, createWriteStream(part, { mode: 0o600, flush: true }), { signal })
      await this.#deps.files.add(id, part)
    } finally {
      await Promise.all([rm(part, { force: true }), rm(spool, { force: true })])
    }
    report({ done: contents.counts.messages, total: contents.counts.messages })
    const { files, counts } = contents
    return {
      ...urls.sign(caller, id, 0, { place: 'exports', until: clock.now() + lifetime }),
      size,
      sha256: hash.digest('hex'),
      ...counts,
      files,
    } satisfies Exported
  }

  /** Whoever may see the job gets a URL of their own, for as long as the first one: it ends with their key or session. */
  #present(caller: Caller, id: string, result: Result): Result {
    const until = Date.parse(result['expires_at'] as string)
    return { ...result, ...this.#deps.urls.sign(caller, id, 0, { place: 'exports', until }) }
  }
}
