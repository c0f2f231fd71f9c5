import type { AttemptAnswer } from '../../mail/deliveries.ts'
import type { TlsFailure } from './tls-result.ts'

/** How an attempt went, with what is drawn from it. */
export interface TransportAnswer extends AttemptAnswer {
  /** There is nobody at this address: it is not written to again. */
  hard?: true
  /** The next attempt comes sooner than planned. */
  soon?: boolean
  /** The sender is gone, so the message was taken back. */
  cancelled?: true
}

/** How a connection is encrypted. */
export interface Security {
  version: string
  cipher: string
  /** Whether the certificate was checked, and good. */
  verified: boolean
}

/** A server that was spoken to, or at least connected to. */
export interface Server {
  hostname: string
  address: string | null
  /** `security` in words; null in the clear. */
  tls: string | null
  security: Security | null
}

/** Which step of reaching a server failed, where that decides what is tried next. */
export type Step = 'connect' | 'loop' | 'tls' | 'require_tls' | 'policy'

/** Why a message was not handed over, and whether another attempt makes sense. */
export class Undelivered extends Error {
  readonly answer: TransportAnswer & Unhappy
  readonly step: Step | undefined
  /** How the connection was secured, if there was one. */
  security: Security | null = null
  /** Soonest and latest time of the next attempt, in milliseconds from now. */
  readonly maxDelay: number | undefined
  /** What a report says of the step `tls`. */
  readonly tlsFailure: TlsFailure | undefined

  constructor(
    answer: Partial<TransportAnswer> & Unhappy & { response: string },
    {
      within,
      step,
      tlsFailure,
    }: { within?: number | undefined; step?: Step | undefined; tlsFailure?: TlsFailure | undefined } = {},
  ) {
    super(answer.response)
    this.name = 'Undelivered'
    this.step = step
    this.answer = { smtp_code: null, enhanced_code: null, mx: null, ip: null, tls: null, ...answer }
    this.maxDelay = within
    this.tlsFailure = tlsFailure
  }

  /** Whether the destination itself said no for good. */
  get permanent(): boolean {
    return this.answer.outcome !== 'deferred'
  }

  /** The same, with who was spoken to. */
  at({ hostname: mx, address: ip, tls, security }: Server): Undelivered {
    const said = new Undelivered({ ...this.answer, mx, ip, tls }, this)
    said.security = security
    return said
  }
}

interface Unhappy {
  outcome: 'deferred' | 'bounced' | 'failed'
}

/** Another attempt later; `why` is a sentence without an SMTP reply behind it. */
export function later(why: string, enhanced: string | null = null, step?: Step): Undelivered {
  return new Undelivered({ outcome: 'deferred', response: why, enhanced_code: enhanced }, { step })
}

/** Why a message waits whose identity is suspended; by these words it is found again when that is over. */
export const suspended = 'the identity that wrote it is suspended'

/** No further attempt: the destination cannot take it. */
export function never(why: string, enhanced: string, step?: Step): Undelivered {
  return new Undelivered({ outcome: 'bounced', response: why, enhanced_code: enhanced }, { step })
}

/** No further attempt: the box itself refuses. */
export function refused(why: string, more: Partial<Omit<TransportAnswer, 'outcome'>> = {}): Undelivered {
  return new Undelivered({ outcome: 'failed', response: why, ...more })
}
