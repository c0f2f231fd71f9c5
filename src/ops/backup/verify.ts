import { accessSync, constants, lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { day } from '../../core/clock.ts'
import { nameOf } from '../../core/seal/master-key.ts'
import { readKey, type SealedColumn } from '../../core/seal/seal.ts'
import { migrateCopied } from '../../store/migrate.ts'
import { BackupArchive } from './archive/archive.ts'
import { damaged, refused } from './faults.ts'
import { inspectAudit, inspectBlobs, inspectDatabase, inspectSealed, inspectState } from './inspect.ts'
import { entryNames, type Manifest } from './archive/manifest.ts'
import { keysContext, openKeys } from './sealed-keys.ts'
import { masterKeyName, withDatabase } from './snapshot.ts'
import { unpack } from './unpack.ts'

/** The name prefix of temporary directories, and the age at which one is abandoned, in milliseconds. */
const unpackedName = 'pillarbox-verify-'
const abandoned = day

interface VerifyInput {
  file: string
  passphrase?: string | undefined
  master_key?: string | undefined
  /** The directory for the unpacked database; by default beside the backup, or the temporary directory. */
  scratch?: string | undefined
  columns: () => Promise<readonly SealedColumn[]>
}

export interface VerifiedBackup {
  file: string
  size: number
  manifest: Manifest
  /** The number of messages, bodies and media files that were compared with their checksums. */
  blobs: number
  /** The number of rows of the audit log, whose chain was checked. */
  audit_rows: number
  /** `opened` if a key was given, and decrypts every value. */
  keys: 'left out' | 'not opened' | 'opened'
  sealed: number
}

/**
 * Verifies a backup: every checksum, the database page by page and row by row, every blob; that this version can migrate the database; and,
 * with a passphrase or a master key, that every encrypted value decrypts. Throws Fault that names the error.
 */
export async function verifyBackup(input: VerifyInput, signal?: AbortSignal): Promise<VerifiedBackup> {
  const archive = await BackupArchive.open(input.file)
  await archive.check(signal)
  await inspectState(archive)
  const master = await masterKeyIn(archive, input)
  const place = input.scratch ?? placeFor(input.file)
  clear(place)
  const scratch = mkdtempSync(join(place, unpackedName))
  try {
    const file = await unpack(archive, scratch, signal)
    await inspectDatabase(archive, file)
    signal?.throwIfAborted()
    const blobs = await inspectBlobs(archive, file)
    const audit_rows = await inspectAudit(archive, file)
    bringUp(archive, file)
    if (master) mustOpen(archive, file, master)
    const sealed = master ? await inspectSealed(archive, file, await input.columns(), master) : 0
    const keys = master ? 'opened' : archive.manifest.keys === 'sealed' ? 'not opened' : 'left out'
    return { file: input.file, size: archive.size, manifest: archive.manifest, blobs, audit_rows, keys, sealed }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Removes the unencrypted copy that a killed verification left. */
function clear(place: string): void {
  for (const name of readdirSync(place).filter((one) => one.startsWith(unpackedName))) {
    const seen = lstatSync(join(place, name), { throwIfNoEntry: false })
    if (!seen?.isDirectory() || seen.uid !== process.geteuid?.()) continue
    if (Date.now() - seen.mtimeMs > abandoned) rmSync(join(place, name), { recursive: true, force: true })
  }
}

/** The master key that was given, or that the passphrase decrypts; undefined when there was neither. Throws Fault. */
export async function masterKeyIn(
  archive: BackupArchive,
  { passphrase, master_key }: Pick<VerifyInput, 'passphrase' | 'master_key'>,
): Promise<Buffer | undefined> {
  if (master_key !== undefined) return givenKey(master_key)
  if (passphrase === undefined) return undefined
  if (archive.manifest.keys !== 'sealed')
    throw refused(`${archive.file} contains no encrypted keys: use --master-key instead.`, 'no_keys')
  const files = await openKeys(await archive.text(entryNames.keys), passphrase, keysContext(archive.manifest))
  const text = files
    .find(({ name }) => name === 'master.key')
    ?.content.toString()
    .trim()
  const key = Buffer.from(text ?? '', 'base64')
  if (key.length !== 32) throw damaged(archive.file, 'its keys do not include a master key')
  return key
}

/** Throws Fault when this is not the database's master key. */
export function mustOpen(archive: BackupArchive, file: string, master: Buffer): void {
  const name = withDatabase(file, { readOnly: true }, masterKeyName)
  if (name === null || name === nameOf(master)) return
  throw refused(
    `This is not the master key that encrypts the database in ${archive.file}. Nothing was changed.`,
    'wrong_master_key',
  )
}

function givenKey(file: string): Buffer {
  try {
    return readKey(file, true)
  } catch (error) {
    throw refused(`The master key could not be read: ${(error as Error).message}`, 'unreadable', error)
  }
}

/** Migrates an unpacked database to this version, as a start would. */
export function bringUp(archive: BackupArchive, file: string): void {
  try {
    migrateCopied(file)
  } catch (error) {
    throw damaged(archive.file, `its database cannot be migrated: ${(error as Error).message}`, error)
  }
}

function placeFor(file: string): string {
  const beside = dirname(resolve(file))
  try {
    accessSync(beside, constants.W_OK)
    return beside
  } catch {
    return tmpdir()
  }
}
