import * as z from 'zod'

export const formatName = 'pillarbox backup'

/** The archive format that this program writes, and the newest it reads. */
export const formatVersion = 1

/** The files of the archive, in this order, between `manifest.json` and `SHA256SUMS`. */
export const entryNames = { database: 'pillarbox.db.zst', state: 'state.json', keys: 'keys.json' } as const

const Entry = z.strictObject({
  name: z.enum([entryNames.database, entryNames.state, entryNames.keys]),
  /** Bytes as stored in the archive. */
  size: z.int().min(0),
  /** Of these bytes, in hex. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})

/** The first file of a backup: its origin and contents. */
export const Manifest = z.strictObject({
  format: z.literal(formatName),
  format_version: z.literal(formatVersion),
  program_version: z.string(),
  box_id: z.string().min(1),
  created_at: z.iso.datetime(),
  mail_domain: z.string(),
  database_version: z.int().min(1),
  /** The size of the unpacked database in bytes. */
  database_size: z.int().min(1),
  rows: z.record(z.string(), z.int().min(0)),
  keys: z.enum(['sealed', 'left out']),
  /** The last row of the audit log; none in a database from before there was one. */
  audit: z.strictObject({ seq: z.int().min(0), hash: z.string().regex(/^[0-9a-f]{64}$/) }).optional(),
  entries: z.array(Entry).min(2).max(3),
})
export type Manifest = z.output<typeof Manifest>
export type Entry = Manifest['entries'][number]

/** The last file, in the format of `sha256sum -c`. */
export function sums(manifestSha256: string, entries: readonly Entry[]): string {
  const lines = [{ name: 'manifest.json', sha256: manifestSha256 }, ...entries]
  return lines.map(({ sha256, name }) => `${sha256}  ${name}\n`).join('')
}
