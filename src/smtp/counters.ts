import type { CheckResults } from './delivery-target.ts'

/** What one receiver tells of what it does. */
export interface ListenerMetrics {
  /** Reply code and text as the client heard them, the text with its enhanced code in front. */
  refused(stage: Stage, code: number, text: string): void
  /** What the checks made of a message. */
  checked(results: CheckResults): void
  /** Seconds from the end of DATA to the reply. */
  answered(seconds: number): void
  /** A session is under TLS, or a handshake failed. */
  secured(version: string | null): void
}

/** Where a client stood when it was turned away. */
export type Stage = 'connection' | 'sender' | 'recipient' | 'message'
