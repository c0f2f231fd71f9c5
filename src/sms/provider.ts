import type { RawRequest } from '../http/route.ts'
import type { SmsError } from './model.ts'

export const providerNames = ['loopback', 'twilio', 'android', 'http'] as const
export type ProviderName = (typeof providerNames)[number]

/** What a provider can do. */
export interface Capabilities {
  send: boolean
  receive: boolean
  /** Numbers are bought and given back; otherwise it has those of the settings. */
  provision: boolean
  /** Whether one-time codes of other services arrive. */
  receives_otp: boolean
}

/** One message on its way out. */
export interface OutgoingSms {
  id: string
  from: string
  to: string
  body: string
}

/** What the provider said when it took a message. */
export interface Taken {
  provider_id: string | null
  /** `sent` unless it is known to have arrived already. */
  status?: 'sent' | 'delivered'
  segments?: number
}

/** A number the provider has for us. */
export interface ProviderNumber {
  /** Null where the provider knows a number by nothing else. */
  provider_id: string | null
  number: string
  /** The provider hands its messages in at another address than ours. */
  astray?: boolean
}

/** A message that the provider has taken for one of its numbers, whether it was handed in or not. */
export interface Arrived {
  provider_id: string
  to: string
  /** When it came, in milliseconds since 1970. */
  sent: number
  whole: () => Promise<IncomingSms>
}

/** One picture or file: where to fetch it, or its octets. */
export type IncomingMedia = { content_type: string } & ({ source: string } | { bytes: Buffer })

export interface IncomingSms {
  /** The provider's name of the message: what has it twice is a repeat. */
  provider_id: string
  from: string
  to: string
  body: string
  media: IncomingMedia[]
  error?: SmsError
  /** What the provider understood of a wish, where it reads them itself. */
  input?: 'stop' | 'start'
}

/** What became of a message, by our id or the provider's. */
export interface StatusUpdate {
  sms_id?: string | undefined
  provider_id?: string | undefined
  status: 'sent' | 'delivered' | 'failed'
  error?: SmsError | undefined
}

/** What a callback says; null when it says nothing that concerns us. */
export type News = { sms: IncomingSms } | { update: StatusUpdate } | null

/** Somebody who carries text messages. Every method throws Rejected, Busy or Lost for what the far side did. */
export interface SmsProvider {
  name: ProviderName
  capabilities: Capabilities
  /** Whether the same message handed over twice goes out once. */
  idempotent: boolean
  send(message: OutgoingSms, signal: AbortSignal): Promise<Taken>
  /** The numbers of the settings, where none can be bought. */
  pool?: readonly string[]
  /** Buys a number under the name of our intent. Throws Fault invalid_request for a country it has none of. */
  provision?(country: string, name: string): Promise<ProviderNumber>
  /** Gives a number back; resolves too when it is ours no more. */
  release?(held: ProviderNumber): Promise<void>
  /** Has the messages of a number that is astray handed in here. */
  redirect?(held: ProviderNumber): Promise<void>
  /** What came since that time (milliseconds since 1970), also what could not be handed in. */
  missed?(since: number): Promise<Arrived[]>
  /** The numbers bought under names of ours, by name. */
  bought?(): Promise<Map<string, ProviderNumber>>
  /** Reads what the provider calls us with. Throws Fault forbidden for what it did not sign. */
  read?(kind: string, request: RawRequest): Promise<News>
  /** The octets of one picture or file; calls `take` with the number of those that have come, and throws what that throws. */
  fetch?(source: string, signal: AbortSignal, take: (octets: number) => void): Promise<Buffer>
  /** Tells the far side where to report. Called at every start and hourly: it may be off, or forget. */
  subscribe?(): Promise<void>
  /** Asks whether it is there and takes our credentials. Throws what it said; none of a provider that is inside the box. */
  check?(signal: AbortSignal): Promise<void>
  start?(): Promise<void>
  stop?(): Promise<void>
}

/** It said no, and would again. */
export class Rejected extends Error {
  readonly code: string
  /** The recipient has told the provider that it wants nothing. */
  readonly optedOut: boolean

  constructor(code: string, message: string, optedOut = false) {
    super(message)
    this.name = 'Rejected'
    this.code = code
    this.optedOut = optedOut
  }
}

/** It did nothing, and may do it later; `retryAfter` is the least wait in milliseconds. */
export class Busy extends Error {
  readonly retryAfter: number | undefined

  constructor(message: string, retryAfter?: number) {
    super(message)
    this.name = 'Busy'
    this.retryAfter = retryAfter
  }
}

/** Whether it did it is not known. */
export class Lost extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Lost'
  }
}
