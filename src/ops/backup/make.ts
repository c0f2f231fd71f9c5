import { createReadStream, existsSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress } from 'node:zlib'
import { attempt } from '../../core/fault.ts'
import { masterKeySource } from '../../core/service-unit.ts'
import { removeDatabase, syncPath } from '../../store/files.ts'
import type { BucketSettings } from '../../objects/bucket.ts'
import type { PostgresTarget } from '../../store/postgres/target.ts'
import { requireOneDatabase } from '../../store/postgres/note.ts'
import { ArchiveWriter } from './archive/archive-writer.ts'
import { diskFault, refused, requireSpace } from './faults.ts'
import { keyFiles, type KeyPlace } from './key-files.ts'
import { entryNames, formatName, formatVersion, type Manifest } from './archive/manifest.ts'
import { keysContext, sealKeys } from './sealed-keys.ts'
import { embedObjects } from './embed-objects.ts'
import { type Completion, type Snapshot, takeSnapshot } from './snapshot.ts'

export interface BackupInput extends KeyPlace {
  file: string
  data_dir: string
  /** The database of a box on PostgreSQL. */
  database: PostgresTarget | undefined
  /** The store of objects that has large e-mails, which are in the backup too. */
  objects: BucketSettings | undefined
  /** Encrypts the keys; without it they are left out. */
  passphrase?: string | undefined
  force?: boolean
  program_version: string
  mail_domain: string
  created_at: string
}

export interface MadeBackup {
  file: string
  size: number
  manifest: Manifest
  warnings: string[]
}

/** Makes a backup file of a box, running or not: the complete file appears under its name, or nothing. Throws Fault. */
export async function makeBackup(
  input: BackupInput,
  onProgress: (done: number, total: number) => void = () => {},
  signal?: AbortSignal,
): Promise<MadeBackup> {
  const [draft, copy] = draftsOf(input.file)
  checkDatabase(input)
  checkPlace(input)
  if (input.database === undefined) checkSpace(input)
  try {
    const { state, master_key_name, ...moment } = await snapshot(input, copy, signal)
    signal?.throwIfAborted()
    const keys = input.passphrase === undefined ? undefined : keyFiles(input, master_key_name)
    const { program_version, mail_domain, created_at } = input
    const writer = new ArchiveWriter(draft, {
      format: formatName,
      format_version: formatVersion,
      program_version,
      created_at,
      mail_domain,
      keys: keys ? 'sealed' : 'left out',
      ...moment,
    })
    try {
      await writer.add(
        entryNames.database,
        compressed(copy, (done) => onProgress(done, moment.database_size), signal),
      )
      await writer.add(entryNames.state, [state])
      if (keys) {
        const sealed = await sealKeys(keys, input.passphrase!, keysContext({ ...moment, created_at }))
        await writer.add(entryNames.keys, [Buffer.from(sealed)])
      }
      const manifest = writer.finish()
      signal?.throwIfAborted()
      mustBeFree(input)
      adopt(writer, draft, input.file)
      return { file: input.file, size: writer.size, manifest, warnings: keys ? [] : [withoutKeys(input)] }
    } finally {
      // all of it was synced before it was renamed
      attempt(() => writer.close())
    }
  } catch (error) {
    attempt(() => rmSync(draft, { force: true }))
    throw diskFault(error, `${input.file} could not be written`)
  } finally {
    attempt(() => removeDatabase(copy))
  }
}

/** The temporary files of a backup: the archive, and the copy of the database. */
export function draftsOf(file: string): [archive: string, copy: string] {
  return [`${file}.part`, `${file}.part.db`]
}

async function snapshot({ data_dir, database, objects }: BackupInput, copy: string, signal?: AbortSignal): Promise<Snapshot> {
  const complete: Completion = (file, refers) => embedObjects(file, { settings: objects, refers }, signal)
  if (database === undefined) return takeSnapshot(data_dir, copy, complete)
  // with the driver, which boxes on SQLite do not need
  const { takeServerSnapshot } = await import('./server-snapshot.ts')
  return takeServerSnapshot(data_dir, database, copy, signal, complete)
}

function checkDatabase({ data_dir, database }: BackupInput): void {
  try {
    requireOneDatabase(data_dir, database)
  } catch (error) {
    throw refused((error as Error).message, 'no_box', error)
  }
  const state = join(data_dir, 'state.json')
  if (database !== undefined && !existsSync(state))
    throw refused(`There is no box in ${data_dir}: ${state} is missing.`, 'no_box')
}

function checkPlace(input: BackupInput): void {
  const folder = dirname(resolve(input.file))
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw refused(`The directory ${folder} does not exist. Create it first.`, 'no_directory')
  const data = existsSync(input.data_dir) ? realpathSync(input.data_dir) : resolve(input.data_dir)
  if (`${realpathSync(folder)}/`.startsWith(`${data}/`)) {
    throw refused(
      `${input.file} is in the data directory, so both could be lost together. Choose another directory.`,
      'inside_data_dir',
    )
  }
  if (input.passphrase !== undefined && input.passphrase.length < 12)
    throw refused('The passphrase must have at least 12 characters: a lost backup can be attacked offline.', 'weak_passphrase')
  mustBeFree(input)
}

/** Checks the space first, as a copy that does not fit would fill the disk of the box. */
function checkSpace({ file, data_dir }: BackupInput): void {
  const needed = statSync(join(data_dir, 'pillarbox.db'), { throwIfNoEntry: false })?.size ?? 0
  requireSpace(dirname(resolve(file)), needed, 'at least ')
}

function mustBeFree({ file, force }: BackupInput): void {
  const there = statSync(file, { throwIfNoEntry: false })
  if (there && !there.isFile()) throw refused(`${file} is not a file.`, 'exists')
  if (there && !force)
    throw refused(`${file} exists already, and was not changed. Choose another name, or add --force.`, 'exists')
}

async function* compressed(file: string, onProgress: (done: number) => void, signal?: AbortSignal): AsyncIterable<Buffer> {
  const pack = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } })
  const source = createReadStream(file, { highWaterMark: 1 << 18 })
  const flow = pipeline(source, pack, signal ? { signal } : {})
  flow.catch(() => {})
  for await (const chunk of pack) {
    yield chunk as Buffer
    onProgress(source.bytesRead)
  }
  await flow
}

/** Renames the finished archive durably, or removes it; one that replaced another, which is gone, or that cannot be removed stays. */
function adopt(writer: ArchiveWriter, draft: string, file: string): void {
  if (!writer.isAt(draft))
    throw refused(`Another backup is being written to ${file}. Wait for it, or choose another name.`, 'busy')
  const replaces = existsSync(file)
  renameSync(draft, file)
  try {
    syncPath(dirname(resolve(file)))
  } catch (error) {
    if (!replaces) attempt(() => rmSync(file))
    if (existsSync(file)) {
      const what = replaces ? 'was replaced by the new backup, which is complete' : 'could not be removed again, and is complete'
      const message = `${file} ${what}, but a crash of the machine can undo that: ${(error as Error).message}. Make another backup.`
      throw refused(message, 'backup_failed', error)
    }
    throw error
  }
}

function withoutKeys(input: BackupInput): string {
  return (
    `The keys were left out because there is no passphrase to encrypt them: store ${masterKeySource(input)} in another safe place. ` +
    'Without it the one-time passwords, webhook secrets and DKIM keys in this backup cannot be read.'
  )
}
