import { withoutControls } from '../../core/text.ts'
import { CollectedText, longestText, notText, TextIsFull } from './collected-text.ts'
import { OfficeFile } from './office-file.ts'
import { charsetInHtml, decodedText, textOfHtml } from './plain-text.ts'
import { readSheets, sheetsType } from './workbook.ts'
import { readWord, wordType } from './word.ts'

/** How a file was declared: only a hint, as its content decides. */
export interface FileHints {
  filename: string
  /** `text/csv` */
  content_type: string
  charset: string | null
}

export interface DocumentText {
  format: 'pdf' | 'docx' | 'xlsx' | 'html' | 'csv' | 'text'
  text: string
  /** Of a PDF; null for others. */
  pages: number | null
  /** True if the document has more text than was read. */
  truncated: boolean
}

/** Beginnings of files that are no text, as Latin-1, and what they are. */
const others: [string[], string][] = [
  [['\x89PNG', '\xff\xd8\xff', 'GIF8', 'II*\0', 'MM\0*'], 'It is an image'],
  [['\xd0\xcf\x11\xe0'], 'It is a document of an older format of Office, or one that is protected by a password'],
  [[String.raw`{\rtf`], 'It is an RTF document'],
  [['\x1f\x8b', '7z\xbc\xaf', 'Rar!\x1a', '\xfd7zXZ'], 'It is an archive'],
  [['%!PS'], 'It is a PostScript document'],
]

/**
 * The text of a file. It is for a thread that can be killed: documents choose how long it takes and how much memory. Throws Fault invalid_request, code
 * `attachment_not_text`, `attachment_unreadable` or `attachment_too_large_for_text`.
 */
export async function readDocument(bytes: Buffer, hints: FileHints): Promise<DocumentText> {
  const head = bytes.toString('latin1', 0, 1024)
  if (isPdf(head, hints)) return readAs('pdf', (text, onPages) => pdfInto(bytes, text, onPages))
  if (head.startsWith('PK\x03\x04')) return readOffice(bytes)
  const other = others.find(([starts]) => starts.some((start) => head.startsWith(start)))
  if (other) throw notText(other[1])
  return readText(bytes, hints)
}

/** Readers of PDF take something before its mark; in a file that is not declared as one it may be a text about PDF. */
function isPdf(head: string, hints: FileHints): boolean {
  return /^\s*%PDF-/.test(head) || (head.includes('%PDF-') && isNamed(hints, 'application/pdf', /\.pdf$/i))
}

/** Loaded when it is first needed: it is large. */
async function pdfInto(bytes: Buffer, text: CollectedText, onPages: (pages: number) => void): Promise<void> {
  const { readPdf } = await import('./pdf.ts')
  await readPdf(bytes, text, onPages)
}

async function readOffice(bytes: Buffer): Promise<DocumentText> {
  const file = await OfficeFile.open(bytes)
  const word = await file.mainOf(wordType)
  if (word !== undefined) return readAs('docx', (text) => readWord(file, word, text))
  const sheets = await file.mainOf(sheetsType)
  if (sheets !== undefined) return readAs('xlsx', (text) => readSheets(file, sheets, text))
  throw notText('It is a ZIP archive, and neither a DOCX nor an XLSX')
}

async function readAs(
  format: DocumentText['format'],
  read: (text: CollectedText, onPages: (pages: number) => void) => Promise<void>,
): Promise<DocumentText> {
  const collected = new CollectedText()
  let truncated = false
  let pages: number | null = null
  try {
    await read(collected, (count) => (pages = count))
  } catch (error) {
    if (!(error instanceof TextIsFull)) throw error
    truncated = true
  }
  return { format, text: cleaned(collected.toString()), pages, truncated }
}

function readText(bytes: Buffer, hints: FileHints): DocumentText {
  const isHtml = /^\s*(?:<!doctype html|<html)/i.test(bytes.toString('latin1', 0, 1024).replace(/^\xef\xbb\xbf/, ''))
  const format =
    isHtml || isNamed(hints, 'text/html', /\.html?$/i) ? 'html' : isNamed(hints, 'text/csv', /\.csv$/i) ? 'csv' : 'text'
  const decoded = decodedText(bytes, hints.charset ?? (format === 'html' ? charsetInHtml(bytes) : null))
  if (decoded === null) throw notText('Its content is no text')
  const { text, isCut } = format === 'html' ? textOfHtml(decoded.text) : decoded
  const kept = cleaned(text)
  return {
    format,
    text: kept.slice(0, longestText).toWellFormed(),
    pages: null,
    truncated: isCut || decoded.isCut || kept.length > longestText,
  }
}

function isNamed({ filename, content_type }: FileHints, type: string, extension: RegExp): boolean {
  return content_type === type || extension.test(filename)
}

function cleaned(text: string): string {
  const unix = withoutControls(text.replace(/\r\n?/g, '\n').replace(/\n{4,}/g, '\n\n\n'))
  return unix.trimEnd().replace(/^\n+/, '')
}
