import { parentPort } from 'node:worker_threads'
import { compose } from './compose.ts'
import type { Draft, Enclosure, Origin } from './compose.ts'

/** To the thread: one message at a time; the octets of its attachments are moved. */
export interface Order {
  draft: Omit<Draft, 'attachments'> & { attachments: (Omit<Enclosure, 'content'> & { content: Uint8Array<ArrayBuffer> })[] }
  origin: Origin
}

/** From the thread: the message, moved, or what went wrong. */
export type Answer = { head: string; whole: Uint8Array<ArrayBuffer> } | { failure: Error }

parentPort?.on('message', (order: Order) => void answer(order))

async function answer({ draft, origin }: Order): Promise<void> {
  try {
    const attachments = draft.attachments.map((one) => ({ ...one, content: Buffer.from(one.content.buffer) }))
    const { head, whole } = await compose({ ...draft, attachments }, origin)
    const octets = new Uint8Array(whole)
    parentPort?.postMessage({ head, whole: octets } satisfies Answer, [octets.buffer])
  } catch (error) {
    parentPort?.postMessage({ failure: error instanceof Error ? error : new Error(String(error)) } satisfies Answer)
  }
}
