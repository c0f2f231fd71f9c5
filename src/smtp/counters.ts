import type { CheckResults } from './delivery-target.ts'

/** The metrics that one listener updates. */
export interface ListenerMetrics {
  /** Reply code and text as sent to the client. The text starts with the enhanced code. */
  refused(stage: Stage, code: number, text: string): void
  /** The results of the checks of one message. */
  checked(results: CheckResults): void
  /** Seconds from the end of DATA to the reply. */
  answered(seconds: number): void
  /** A session is under TLS, or a handshake failed. */
  secured(version: string | null): void
}

/** The stage of a session at which a refusal was sent. */
export type Stage = 'connection' | 'sender' | 'recipient' | 'message'
