import { parentPort, workerData } from 'node:worker_threads'
import { Fault } from '../../core/fault.ts'
import { unreadable } from '../../message/documents/collected-text.ts'
import { type DocumentText, type FileHints, readDocument } from '../../message/documents/document.ts'

/** What the thread is started with: one file, its bytes transferred. */
export interface DocumentStart {
  bytes: Uint8Array<ArrayBuffer>
  hints: FileHints
}

/** What the thread answers before it ends. */
export type DocumentAnswer = { document: DocumentText } | { refusal: { message: string; code: string } }

// No reader fetches anything; if one tried, it should find nothing to do it with.
for (const name of ['fetch', 'WebSocket', 'EventSource', 'XMLHttpRequest']) Reflect.deleteProperty(globalThis, name)

// pdf.js leaves promises of damaged parts behind that nobody waits for; what it can read is read nevertheless.
process.on('unhandledRejection', () => undefined)

const { bytes, hints }: DocumentStart = workerData
// The thread listens to nothing, so that it ends when a reader waits for what never comes.
parentPort?.postMessage(await answer())

async function answer(): Promise<DocumentAnswer> {
  try {
    return { document: await readDocument(Buffer.from(bytes.buffer), hints) }
  } catch (error) {
    // an error that no reader expected, such as that of XML that nests too deep
    const { message, code = '' } = error instanceof Fault ? error : unreadable('it is damaged, or too intricate', error)
    return { refusal: { message, code } }
  }
}
