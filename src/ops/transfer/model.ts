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

/** The result of an import. */
export interface Tally {
  imported: number
  /** Already present: the same Message-ID and bytes. */
  duplicates: number
  sms: number
  /** Larger than one message may be. */
  too_large: number
  /** A larger header than SMTP accepts. */
  header_too_large: number
  /** Files of an archive that could not be read, or listed messages that are missing. */
  unreadable: number
  /** Imported, but their metadata in the archive was invalid. */
  not_understood: number
  /** Files that are neither messages nor metadata. */
  ignored: number
}

/** The kinds of these jobs. */
export const exportKind = 'export'
export const importKind = 'import'
