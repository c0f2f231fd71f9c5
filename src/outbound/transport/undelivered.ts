import type { AttemptAnswer } from '../../mail/deliveries.ts'
import type { TlsFailure } from './tls-result.ts'

/** The answer of an attempt, with its consequences. */
export interface TransportAnswer extends AttemptAnswer {
  /** The address does not exist: it is suppressed. */
  hard?: true
  /** The next attempt comes earlier than planned. */
  soon?: boolean
  /** The message was cancelled, as its sender was deleted. */
  cancelled?: true
  /** Its sender is suspended: it is tried again when that ends. */
  suspended?: true
}

/** How a connection is encrypted. */
export interface Security {
  version: string
  cipher: string
  /** True if the certificate was checked and valid. */
  verified: boolean
}

/** A server that was connected to. */
export interface Server {
  hostname: string
  address: string | null
  /** `security` as text; null in the clear. */
  tls: string | null
  security: Security | null
}

/** The step that failed, when it decides what is tried next. */
export type Step = 'connect' | 'loop' | 'tls' | 'require_tls' | 'policy'

/** Why a message was not delivered, and whether it is retried. */
export class Undelivered extends Error {
  readonly answer: TransportAnswer & FailedOutcome
  readonly step: Step | undefined
  /** How the connection was secured, if there was one. */
  security: Security | null = null
  /** The longest wait until the next attempt, in milliseconds. */
  readonly maxDelay: number | undefined
  /** The result of the step `tls` for reports. */
  readonly tlsFailure: TlsFailure | undefined

  constructor(
    answer: Partial<TransportAnswer> & FailedOutcome & { response: string },
    {
      maxDelay,
      step,
      tlsFailure,
    }: { maxDelay?: number | undefined; step?: Step | undefined; tlsFailure?: TlsFailure | undefined } = {},
  ) {
    super(answer.response)
    this.name = 'Undelivered'
    this.step = step
    this.answer = { smtp_code: null, enhanced_code: null, mx: null, ip: null, tls: null, ...answer }
    this.maxDelay = maxDelay
    this.tlsFailure = tlsFailure
  }

  /** True if the failure is permanent. */
  get permanent(): boolean {
    return this.answer.outcome !== 'deferred'
  }

  /** The same, with the server. */
  at({ hostname: mx, address: ip, tls, security }: Server): Undelivered {
    const copy = new Undelivered({ ...this.answer, mx, ip, tls }, this)
    copy.security = security
    return copy
  }
}

interface FailedOutcome {
  outcome: 'deferred' | 'bounced' | 'failed'
}

/** Whether REQUIRETLS could be met is not known before the MTA-STS policy of the domain is. */
export function policyUnknown(domain: string): Undelivered {
  return later(`the MTA-STS policy of ${domain} could not be determined`, '4.7.5')
}

/** The identity that wrote the message is suspended. */
export function suspended(): Undelivered {
  return new Undelivered({ outcome: 'deferred', response: 'the identity that sent it is suspended', suspended: true })
}

/** A temporary failure without an SMTP reply. */
export function later(why: string, enhanced: string | null = null, step?: Step): Undelivered {
  return new Undelivered({ outcome: 'deferred', response: why, enhanced_code: enhanced }, { step })
}

/** A permanent failure of the destination. */
export function never(why: string, enhanced: string, step?: Step): Undelivered {
  return new Undelivered({ outcome: 'bounced', response: why, enhanced_code: enhanced }, { step })
}

/** A permanent failure on our side. */
export function refused(why: string, more: Partial<Omit<TransportAnswer, 'outcome'>> = {}): Undelivered {
  return new Undelivered({ outcome: 'failed', response: why, ...more })
}
