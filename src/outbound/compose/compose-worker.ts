import { parentPort } from 'node:worker_threads'
import { compose, type Draft, type Origin, type OutgoingAttachment } from './compose.ts'

/** A request to the thread: one message at a time; the buffers of its attachments are transferred. */
export interface ComposeJob {
  draft: Omit<Draft, 'attachments'> & {
    attachments: (Omit<OutgoingAttachment, 'content'> & { content: Uint8Array<ArrayBuffer> })[]
  }
  origin: Origin
}

/** The response of the thread: the message, transferred, or an error. */
export type ComposeResult = { head: string; whole: Uint8Array<ArrayBuffer> } | { failure: Error }

parentPort?.on('message', (job: ComposeJob) => void answer(job))

async function answer({ draft, origin }: ComposeJob): Promise<void> {
  try {
    const attachments = draft.attachments.map((one) => ({ ...one, content: Buffer.from(one.content.buffer) }))
    const { head, whole } = await compose({ ...draft, attachments }, origin)
    const bytes = new Uint8Array(whole)
    parentPort?.postMessage({ head, whole: bytes } satisfies ComposeResult, [bytes.buffer])
  } catch (error) {
    parentPort?.postMessage({ failure: error instanceof Error ? error : new Error(String(error)) } satisfies ComposeResult)
  }
}
