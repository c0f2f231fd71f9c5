import type { Basis } from '../../basis.ts'
import type { Twilio } from 'twilio'
import type { MessageInstance } from 'twilio/lib/rest/api/v2010/account/message.js'
import type { Clock } from '../../core/clock.ts'
import { type Outside, Unreachable } from '../../net/outside.ts'
import { noSuchCountry } from '../numbers.ts'
import { type Arrived, Busy, type IncomingMedia, Lost, type ProviderNumber, Rejected, type SmsProvider } from '../provider.ts'
import { explained, inboundOf, signedForm, statusOf } from './twilio-callbacks.ts'
import { TwilioTransport } from './twilio-transport.ts'

export interface TwilioSettings {
  account_sid: string
  auth_token: string
  base_url: string
}

interface Deps extends Pick<Basis, 'clock' | 'publicUrl'> {
  settings: TwilioSettings
  /** The HTTP client that fetches media. */
  outside: Outside
  /** The largest media file in bytes. */
  mediaLimit: () => number
}

type Library = typeof import('twilio')

/** The most redirects of a media file: the API redirects to a store. */
const hops = 4
const timeout = 15_000
/** The minimum size limit in bytes, so that the bodies of redirects and errors can be read. */
const leastRead = 64 * 1024

/** Twilio, by its official library, which only this file uses. The library is large and loaded on first use. */
export function twilio({ settings, clock, outside, mediaLimit, publicUrl }: Deps): SmsProvider {
  const { account_sid, auth_token, base_url } = settings
  let loaded: Promise<{ library: Library; client: Twilio }> | undefined
  const load = (): Promise<{ library: Library; client: Twilio }> => (loaded ??= open(settings, clock))
  const callback = (kind: string): string => `${publicUrl()}/sms/twilio/${kind}`
  const basic = `Basic ${Buffer.from(`${account_sid}:${auth_token}`).toString('base64')}`

  return {
    name: 'twilio',
    capabilities: { send: true, receive: true, provision: true, receives_otp: false },
    idempotent: false,

    async send({ id, from, to, body }, signal) {
      const { library } = await load()
      const client = clientOf(library, settings, clock, signal)
      const statusCallback = `${callback('status')}?sms_id=${id}`
      const message = await heard(client.messages.create({ from, to, body, statusCallback }))
      if (!message.sid) throw new Lost('Twilio’s response names no message')
      return { provider_id: message.sid, ...(Number(message.numSegments) > 0 ? { segments: Number(message.numSegments) } : {}) }
    },

    async provision(country, name) {
      const { client } = await load()
      const offered = await heard(client.availablePhoneNumbers(country).local.list({ smsEnabled: true, limit: 5 })).catch(absent)
      const choice = offered.length > 0 ? offered : await mobile(client, country)
      const [first] = choice
      if (!first) throw noSuchCountry(country)
      const input = { phoneNumber: first.phoneNumber, friendlyName: name, smsUrl: callback('inbound'), smsMethod: 'POST' }
      return held(await heard(client.incomingPhoneNumbers.create(input)))
    },

    async release({ provider_id }) {
      if (provider_id === null) return
      const { client } = await load()
      await heard(client.incomingPhoneNumbers(provider_id).remove()).catch((error: unknown) => {
        // released already, which is the goal
        if (!(error instanceof Rejected) || error.code !== '20404') throw error
      })
    },

    async bought() {
      const { client } = await load()
      const numbers = await heard(client.incomingPhoneNumbers.list({ pageSize: 1000 }))
      const ours = callback('inbound')
      return new Map(
        numbers
          .filter(({ friendlyName }) => friendlyName.startsWith('phone_'))
          // the part after # configures Twilio's retries and is not sent
          .map((one) => [one.friendlyName, { ...held(one), astray: one.smsUrl.split('#')[0] !== ours }]),
      )
    },

    async redirect({ provider_id }) {
      const { client } = await load()
      await heard(client.incomingPhoneNumbers(provider_id!).update({ smsUrl: callback('inbound'), smsMethod: 'POST' }))
    },

    async missed(since) {
      const { client } = await load()
      const messages = await heard(client.messages.list({ dateSentAfter: new Date(since), pageSize: 1000 }))
      return messages
        .filter(({ direction, status }) => direction === 'inbound' && status !== 'receiving')
        .map((one) => arrived(one, async () => (await heard(client.messages(one.sid).media.list())).map(sourceIn(base_url))))
    },

    async read(kind, request) {
      const { library } = await load()
      const verify = (signature: string, url: string, form: Record<string, string>): boolean =>
        library.validateRequest(auth_token, signature, url, form)
      const form = signedForm(request, callback(kind), account_sid, verify)
      return kind === 'inbound' ? inboundOf(form) : statusOf(form, new URLSearchParams(request.search).get('sms_id'))
    },

    async fetch(source, signal, take) {
      let url = source
      for (let hop = 0; hop < hops; hop += 1) {
        // the token is for the API only, not for the store it redirects to
        const headers: Record<string, string> = url.startsWith(`${base_url}/2010-04-01/`) ? { Authorization: basic } : {}
        const answer = await outside
          .get(url, { headers, limit: Math.max(mediaLimit(), leastRead), deadline: timeout, signal, take })
          .catch((error: unknown) => {
            throw error instanceof Unreachable && error.tooLarge ? tooLarge() : error
          })
        const location = [answer.headers['location']].flat()[0]
        if (answer.status >= 300 && answer.status < 400 && location) url = new URL(location, url).href
        else if (answer.status === 404 || answer.status === 410)
          throw new Rejected(String(answer.status), 'Twilio no longer has it')
        else if (answer.status !== 200) throw new Busy(`Twilio answered ${answer.status}`)
        else if (answer.body.length > mediaLimit()) throw tooLarge()
        else return answer.body
      }
      throw new Rejected('too_many_redirects', 'too many redirects')
    },

    async check() {
      const { client } = await load()
      const { status } = await heard(client.api.v2010.accounts(account_sid).fetch())
      if (status !== 'active') throw new Rejected('account', `Twilio has made the account ${status}`)
    },

    async start() {
      await load()
    },
  }
}

function tooLarge(): Rejected {
  return new Rejected('too_large', 'it is larger than sms.media_limit')
}

/** Awaits an answer of the library and maps its errors to ours. */
async function heard<Answer>(answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer
  } catch (error) {
    throw asOurs(error)
  }
}

async function mobile(client: Twilio, country: string): Promise<{ phoneNumber: string }[]> {
  return heard(client.availablePhoneNumbers(country).mobile.list({ smsEnabled: true, limit: 5 })).catch(absent)
}

async function open(settings: TwilioSettings, clock: Clock): Promise<{ library: Library; client: Twilio }> {
  const { default: library } = await import('twilio')
  return { library, client: clientOf(library, settings, clock) }
}

function clientOf(
  library: Library,
  { account_sid, auth_token, base_url }: TwilioSettings,
  clock: Clock,
  signal?: AbortSignal,
): Twilio {
  const httpClient = new TwilioTransport(base_url, clock, signal)
  // the library uses one method of its HTTP client
  return library(account_sid, auth_token, { autoRetry: false, httpClient: httpClient as never })
}

/** Twilio answers 404 for a country or kind without numbers. */
function absent(error: unknown): { phoneNumber: string }[] {
  if (error instanceof Rejected && error.code === '20404') return []
  throw error
}

function held({ sid, phoneNumber }: { sid: string; phoneNumber: string }): ProviderNumber {
  return { provider_id: sid, number: phoneNumber }
}

/** A message of the account's list, which has only the number of its media. */
function arrived(
  { sid, from, to, body, dateSent, dateCreated, numMedia, errorCode, errorMessage }: MessageInstance,
  pictures: () => Promise<IncomingMedia[]>,
): Arrived {
  const error = errorCode ? { error: { code: String(errorCode), message: explained(String(errorCode), errorMessage) } } : {}
  return {
    provider_id: sid,
    to,
    sent: (dateSent ?? dateCreated).getTime(),
    whole: async () => ({ provider_id: sid, from, to, body, media: Number(numMedia) > 0 ? await pictures() : [], ...error }),
  }
}

function sourceIn(base: string): (media: { uri: string; contentType: string }) => IncomingMedia {
  return ({ uri, contentType }) => ({ source: `${base}${uri.replace(/\.json$/, '')}`, content_type: contentType })
}

/** Maps the library's errors for 4xx; others come from the transport. */
function asOurs(error: unknown): unknown {
  if (!(error instanceof Error) || !('status' in error)) return error
  const code = String('code' in error && typeof error.code === 'number' ? error.code : Number(error.status))
  return new Rejected(code, explained(code, error.message), code === '21610')
}
