import * as z from 'zod'

export const ExportInput = z
  .strictObject({
    format: z
      .enum(['mbox', 'eml'])
      .default('mbox')
      .meta({ description: 'how messages are written: all in messages.mbox, or each in a file of its own below eml/' }),
  })
  .meta({ id: 'ExportWish' })
export type ExportInput = z.output<typeof ExportInput>

/** What an export answers when it is done, beside counts by file. */
export interface Exported {
  url: string
  expires_at: string
  size: number
  sha256: string
  messages: number
  sms: number
  files: string[]
}

/** What became of what was to be imported. */
export interface Tally {
  imported: number
  /** Already there: the same Message-ID and octets. */
  duplicates: number
  sms: number
  /** More octets than one message may have. */
  too_large: number
  /** A header of more octets than are taken of mail that comes by SMTP. */
  header_too_large: number
  /** Files of an archive that could not be read, or messages that its list names and it lacks. */
  unreadable: number
  /** Kept, but what the archive said of them was not understood. */
  not_understood: number
  /** Files that are neither messages nor of ours. */
  ignored: number
}

/** The kinds of these jobs. */
export const exportKind = 'export'
export const importKind = 'import'
