import * as z from 'zod'

export const ExportInput = z
  .strictObject({
    format: z
      .enum(['mbox', 'eml'])
      .default('mbox')
      .meta({ description: 'format of the messages: all in messages.mbox, or each in a separate file below eml/' }),
  })
  .meta({ id: 'ExportWish' })
export type ExportInput = z.output<typeof ExportInput>

/** The result of an export, besides counts by file. */
export interface Exported {
  url: string
  expires_at: string
  size: number
  sha256: string
  messages: number
  sms: number
  files: string[]
}

/** The counts of an import. */
export const tallied = [
  'imported',
  // already present: the same Message-ID and bytes
  'duplicates',
  'sms',
  'too_large',
  'header_too_large',
  // files of an archive that could not be read, or listed messages that are missing
  'unreadable',
  // imported, but their metadata in the archive was invalid
  'not_understood',
  // files that are neither messages nor metadata
  'ignored',
] as const
export type Tally = Record<(typeof tallied)[number], number>

export const exportKind = 'export'
export const importKind = 'import'
