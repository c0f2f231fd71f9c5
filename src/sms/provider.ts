import type { RawRequest } from '../http/route.ts'
import { TemporaryFailure } from '../queue/courier.ts'
import type { SmsError } from './model.ts'

const providerNames = ['loopback', 'twilio', 'android', 'http'] as const
export type ProviderName = (typeof providerNames)[number]

/** The capabilities of a provider. */
interface Capabilities {
  send: boolean
  receive: boolean
  /** True if numbers are bought and released; otherwise the configured numbers are used. */
  provision: boolean
  /** True if one-time codes of other services arrive. */
  receives_otp: boolean
}

/** A message to send. */
interface OutgoingSms {
  id: string
  from: string
  to: string
  body: string
}

/** The provider's answer to an accepted message. */
export interface Taken {
  provider_id: string | null
  /** `sent`, or `delivered` if known at once. */
  status?: 'sent' | 'delivered'
  segments?: number
}

/** A number at the provider. */
export interface ProviderNumber {
  /** Null where the provider identifies a number by itself only. */
  provider_id: string | null
  number: string
  /** The provider calls another URL than ours for this number. */
  astray?: boolean
}

/** A message that the provider received for one of its numbers, whether its callback succeeded or not. */
export interface Arrived {
  provider_id: string
  to: string
  /** The time of arrival in milliseconds since 1970. */
  sent: number
  whole: () => Promise<IncomingSms>
}

/** A media file: its URL, or its bytes. */
export type IncomingMedia = { content_type: string } & ({ source: string } | { bytes: Buffer })

export interface IncomingSms {
  /** The provider's id of the message, used to detect repeats. */
  provider_id: string
  from: string
  to: string
  body: string
  media: IncomingMedia[]
  error?: SmsError
  /** An opt-out or opt-in that the provider detected itself. */
  input?: 'stop' | 'start'
}

/** The delivery status of a message, by our id or the provider's. */
export interface StatusUpdate {
  sms_id?: string | undefined
  provider_id?: string | undefined
  status: 'sent' | 'delivered' | 'failed'
  error?: SmsError | undefined
}

/** The content of a callback; null when it is irrelevant. */
export type CallbackContent = { sms: IncomingSms } | { update: StatusUpdate } | null

/** An SMS provider. Every method throws Rejected, Busy or Lost for errors of the remote side. */
export interface SmsProvider {
  name: ProviderName
  capabilities: Capabilities
  /** True if sending the same message twice delivers it once. */
  idempotent: boolean
  send(message: OutgoingSms, signal: AbortSignal): Promise<Taken>
  /** The configured numbers, where none can be bought. */
  pool?: readonly string[]
  /** Buys a number under the name of an intent. Throws Fault invalid_request for a country without numbers. */
  provision?(country: string, name: string): Promise<ProviderNumber>
  /** Releases a number; resolves as well when it was released before. */
  release?(held: ProviderNumber): Promise<void>
  /** Points the callbacks of an `astray` number here. */
  redirect?(held: ProviderNumber): Promise<void>
  /** Messages received since that time (milliseconds since 1970), also those whose callback failed. */
  missed?(since: number): Promise<Arrived[]>
  /** The numbers bought under our names, by name. */
  bought?(): Promise<Map<string, ProviderNumber>>
  /** Parses a callback. Throws Fault forbidden without a valid signature. */
  read?(kind: string, request: RawRequest): Promise<CallbackContent>
  /** Fetches one media file; calls `take` with the number of bytes received so far, and throws what that throws. */
  fetch?(source: string, signal: AbortSignal, take: (octets: number) => void): Promise<Buffer>
  /** Registers our callback URLs. Runs at every start and hourly, as the remote side may be offline or lose them. */
  subscribe?(): Promise<void>
  /** Checks the connection and the credentials; throws the provider's error. Not needed for a provider inside the box. */
  check?(signal: AbortSignal): Promise<void>
  start?(): Promise<void>
  stop?(): Promise<void>
}

/** The provider refused for good. */
export class Rejected extends Error {
  readonly code: string
  /** The recipient opted out at the provider. */
  readonly optedOut: boolean

  constructor(code: string, message: string, optedOut = false) {
    super(message)
    this.name = 'Rejected'
    this.code = code
    this.optedOut = optedOut
  }
}

/** The provider did nothing and may accept later; `retryAfter` is the minimum wait in milliseconds. */
export class Busy extends Error {
  readonly retryAfter: number | undefined

  constructor(message: string, retryAfter?: number) {
    super(message)
    this.name = 'Busy'
    this.retryAfter = retryAfter
  }
}

/** Has a failed attempt repeated: not earlier than a busy provider says. */
export function toTemporaryFailure(error: unknown): TemporaryFailure {
  return new TemporaryFailure(
    error instanceof Error ? error.message : 'it failed',
    error instanceof Busy ? error.retryAfter : undefined,
  )
}

/** It is unknown whether the provider did it. */
export class Lost extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Lost'
  }
}
