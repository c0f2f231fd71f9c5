import { parentPort } from 'node:worker_threads'
import { compose, type Draft, type Origin, type OutgoingAttachment } from './compose.ts'

/** To the thread: one message at a time; the octets of its attachments are moved. */
export interface ComposeJob {
  draft: Omit<Draft, 'attachments'> & {
    attachments: (Omit<OutgoingAttachment, 'content'> & { content: Uint8Array<ArrayBuffer> })[]
  }
  origin: Origin
}

/** From the thread: the message, moved, or what went wrong. */
export type ComposeResult = { head: string; whole: Uint8Array<ArrayBuffer> } | { failure: Error }

parentPort?.on('message', (order: ComposeJob) => void answer(order))

async function answer({ draft, origin }: ComposeJob): Promise<void> {
  try {
    const attachments = draft.attachments.map((one) => ({ ...one, content: Buffer.from(one.content.buffer) }))
    const { head, whole } = await compose({ ...draft, attachments }, origin)
    const octets = new Uint8Array(whole)
    parentPort?.postMessage({ head, whole: octets } satisfies ComposeResult, [octets.buffer])
  } catch (error) {
    parentPort?.postMessage({ failure: error instanceof Error ? error : new Error(String(error)) } satisfies ComposeResult)
  }
}
