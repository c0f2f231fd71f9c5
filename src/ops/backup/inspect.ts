import { createHash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { Readable } from 'node:stream'
import { createInflateRaw, inflateRawSync } from 'node:zlib'
import { verifyAudit } from '../../audit/verify.ts'
import { type JsonBounds, parseForeign } from '../../core/json.ts'
import { Seal, type SealedColumn } from '../../core/seal/seal.ts'
import { applicationId, knownVersion } from '../../store/migrate.ts'
import { State } from '../../store/state.ts'
import type { BackupArchive } from './archive/archive.ts'
import { damaged, refused } from './faults.ts'
import { entryNames } from './archive/manifest.ts'
import { rowsOf, value } from './snapshot.ts'

/** The limits of state.json: some 50,000 accounts. */
const stateBounds: JsonBounds = { depth: 8, tokens: 1_000_000 }

/** Bytes up to which a blob is unpacked in one step. */
const small = 1024 * 1024

/** Throws Fault for a database from a newer version. */
export function requireKnownVersion({ file, manifest: { database_version, program_version } }: BackupArchive): void {
  if (database_version <= knownVersion()) return
  throw refused(
    `${file} contains a database of a newer Pillarbox (${program_version}, version ${database_version}; this one knows ${knownVersion()}). ` +
      'Use the newer program; nothing was changed.',
    'backup_newer',
  )
}

/** Checks an unpacked database: it matches the manifest, is intact, and not from a newer version. Throws Fault. */
export async function inspectDatabase(archive: BackupArchive, file: string): Promise<void> {
  const { database_version, rows } = archive.manifest
  requireKnownVersion(archive)
  await reading(archive, file, (database) => {
    if (value(database, 'PRAGMA application_id') !== applicationId)
      throw damaged(archive.file, 'its database is not a Pillarbox database')
    const version = Number(value(database, 'PRAGMA user_version'))
    if (version !== database_version)
      throw damaged(archive.file, `its database has version ${version}, but its manifest ${database_version}`)
    const trouble = String(value(database, 'PRAGMA integrity_check(1)'))
    if (trouble !== 'ok') throw damaged(archive.file, `its database is damaged (${trouble.split('\n').at(-1)})`)
    const orphan = database.prepare('PRAGMA foreign_key_check').get()
    if (orphan) throw damaged(archive.file, `its database violates a foreign key in ${String(orphan['table'])}`)
    const found = rowsOf(database)
    const names = [...new Set([...Object.keys(rows), ...Object.keys(found)])]
    const wrong = names.find((name) => rows[name] !== found[name])
    if (wrong !== undefined)
      throw damaged(
        archive.file,
        `its table ${wrong} has ${found[wrong] ?? 'no'} rows, but its manifest ${rows[wrong] ?? 'none'}`,
      )
  })
}

/** Checks every row of the audit log of an unpacked database, and that its last is that of the manifest; returns their number. Throws Fault. */
export function inspectAudit(archive: BackupArchive, file: string): Promise<number> {
  return reading(archive, file, (database) => {
    const { audit } = archive.manifest
    const report = verifyAudit(database)
    const fault = report?.faults[0]
    if (fault) throw damaged(archive.file, `row ${fault.seq} of its audit log ${fault.what}`)
    if ((report?.head ?? null) !== (audit?.hash ?? null) || (report?.last_seq ?? 0) !== (audit?.seq ?? 0))
      throw damaged(archive.file, `its audit log ends at row ${report?.last_seq ?? 0}, but in its manifest at another`)
    return report?.rows ?? 0
  })
}

/** Checks that state.json is valid, and of the box in the manifest. Throws Fault. */
export async function inspectState(archive: BackupArchive): Promise<State> {
  const text = await archive.text(entryNames.state)
  let state: State
  try {
    state = State.parse(parseForeign(text, entryNames.state, stateBounds))
  } catch (error) {
    throw damaged(archive.file, 'its state.json is not readable by this version', error)
  }
  if (state.box_id !== archive.manifest.box_id) throw damaged(archive.file, 'its state.json belongs to another box')
  return state
}

/** Decompresses every message, body and media file and compares its checksum; returns their number. Throws Fault. */
export function inspectBlobs(archive: BackupArchive, file: string): Promise<number> {
  return reading(archive, file, async (database) => {
    let count = 0
    const rows = database.prepare('SELECT id, size, sha256, deflated, bytes FROM blobs').iterate() as IterableIterator<Blob>
    const piecesOf = pieces(database)
    const expired = expiredRaw(database)
    for (const blob of rows) {
      const sound = expired.has(blob.id)
        ? blob.bytes.length === 0
        : await isSound({ ...blob, bytes: Buffer.concat([blob.bytes, ...piecesOf(blob.id)]) })
      if (!sound) throw damaged(archive.file, `the bytes of blob ${blob.id} do not match their checksum`)
      count += 1
    }
    return count
  })
}

/** Decrypts every encrypted value of a database with a master key; returns their number. Throws Fault when one fails. */
export function inspectSealed(
  archive: BackupArchive,
  file: string,
  columns: readonly SealedColumn[],
  master: Buffer,
): Promise<number> {
  const seal = new Seal(master)
  return reading(archive, file, (database) => {
    let count = 0
    for (const { table, column, from, base64, only, context } of columns) {
      // a database from before this column has no such values
      if (!database.prepare('SELECT 1 FROM pragma_table_info(?) WHERE name = ?').get(table, column)) continue
      const query = `SELECT *, ${table}.rowid AS place_of_it, ${table}.${column} AS value_of_it FROM ${from ?? table}
        WHERE ${table}.${column} IS NOT NULL AND ${only ?? '1'}`
      for (const row of database.prepare(query).iterate()) {
        const { place_of_it: place, value_of_it: kept } = row as { place_of_it: number; value_of_it: string | Uint8Array }
        try {
          seal.open(base64 === true ? Buffer.from(String(kept), 'base64') : (kept as Uint8Array), context(row))
        } catch (error) {
          throw damaged(archive.file, `${table}.${column} of row ${place} cannot be decrypted with the master key`, error)
        }
        count += 1
      }
    }
    return count
  })
}

interface Blob {
  id: number
  size: number
  sha256: Uint8Array | null
  deflated: number
  bytes: Uint8Array
}

/** The further pieces of a blob; a backup from before pieces were added has none. */
function pieces(database: DatabaseSync): (id: number) => Uint8Array[] {
  if (!database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'blob_pieces'").get()) return () => []
  const query = database.prepare('SELECT bytes FROM blob_pieces WHERE blob_id = ? ORDER BY place')
  return (id) => query.all(id).map(({ bytes }) => bytes as Uint8Array)
}

/** The raw messages that retention has deleted: their blobs are empty. */
function expiredRaw(database: DatabaseSync): Set<number> {
  const tables = ['emails', 'emails_trash'].filter((name) =>
    database.prepare(`SELECT 1 FROM pragma_table_info(?) WHERE name = 'raw_expired_at'`).get(name),
  )
  const queries = tables.map((name) => `SELECT raw_id FROM ${name} WHERE raw_expired_at IS NOT NULL`)
  if (queries.length === 0) return new Set()
  const rows = database.prepare(queries.join(' UNION ')).all() as { raw_id: number }[]
  return new Set(rows.map(({ raw_id }) => raw_id))
}

async function isSound({ size, sha256, deflated, bytes }: Blob): Promise<boolean> {
  const hash = createHash('sha256')
  let length = 0
  try {
    for await (const chunk of deflated === 1 ? inflated(bytes, size) : [bytes]) {
      length += chunk.length
      if (length > size) return false
      hash.update(chunk)
    }
  } catch {
    return false
  }
  return length === size && (sha256 === null || hash.digest().equals(sha256))
}

/** A small archive could otherwise fill the memory. */
function inflated(bytes: Uint8Array, size: number): Iterable<Buffer> | AsyncIterable<Buffer> {
  if (size <= small) return [inflateRawSync(bytes, { maxOutputLength: Math.max(size, 1) })]
  return Readable.from([bytes]).pipe(createInflateRaw())
}

/** Errors of SQLite are damage too. */
async function reading<T>(archive: BackupArchive, file: string, look: (database: DatabaseSync) => T | Promise<T>): Promise<T> {
  try {
    using database = new DatabaseSync(file, { readOnly: true })
    return await look(database)
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_SQLITE_ERROR') throw error
    throw damaged(archive.file, `its database cannot be read (${(error as Error).message})`, error)
  }
}
