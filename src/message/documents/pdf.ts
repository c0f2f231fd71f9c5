import { getDocument } from 'unpdf/pdfjs'
import { type CollectedText, TextIsFull, unreadable } from './collected-text.ts'

/** Pages that are read; the rest is left out. */
const maxPages = 5000

/**
 * The text of a PDF, with a line `[Page 2]` before each page but the first that has some. Nothing in it is run or fetched: fonts are read for their characters only. Returns the number of pages.
 */
export async function readPdf(bytes: Buffer, text: CollectedText, onPages: (pages: number) => void): Promise<void> {
  const data = new Uint8Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length)
  const loading = getDocument({
    data,
    disableAutoFetch: true,
    disableFontFace: true,
    disableRange: true,
    disableStream: true,
    enableXfa: false,
    isImageDecoderSupported: false,
    isOffscreenCanvasSupported: false,
    useSystemFonts: false,
    useWasm: false,
    useWorkerFetch: false,
    verbosity: 0,
  })
  const document = await loading.promise.catch((error: unknown) => {
    throw unreadable(isEncrypted(error) ? 'the PDF is protected by a password' : 'the PDF is damaged', error)
  })
  onPages(document.numPages)
  let failure: unknown
  let isRead = false
  for (let number = 1; number <= document.numPages; number += 1) {
    if (number > maxPages) throw new TextIsFull()
    try {
      const page = await document.getPage(number)
      const heading = number > 1 ? `\n\n[Page ${number}]\n` : ''
      await readPage(page.streamTextContent() as AsyncIterable<TextChunk>, heading, text)
      page.cleanup()
      isRead = true
    } catch (error) {
      if (error instanceof TextIsFull) throw error
      failure = error
      text.add(`\n\n[Page ${number} cannot be read]\n`)
    }
  }
  if (!isRead && failure !== undefined) throw unreadable('no page of the PDF can be read', failure)
}

/** Text in the order of the file; markers have none. */
interface TextChunk {
  items: { str?: string; hasEOL?: boolean }[]
}

/** A page without text, such as a scanned one, has no heading. */
async function readPage(chunks: AsyncIterable<TextChunk>, heading: string, text: CollectedText): Promise<void> {
  let before = heading
  for await (const { items } of chunks) {
    for (const { str = '', hasEOL = false } of items) {
      if (before !== '' && str.trim() === '') continue
      text.add(before + str + (hasEOL ? '\n' : ''))
      before = ''
    }
  }
}

function isEncrypted(error: unknown): boolean {
  return error instanceof Error && error.name === 'PasswordException'
}
