import { createHash } from 'node:crypto'
import * as z from 'zod'
import type { Basis } from '../../basis.ts'
import type { Clock } from '../../core/clock.ts'
import { mac, sameBytes } from '../../core/seal/seal.ts'
import type { RawRequest } from '../../http/route.ts'
import { normalized } from '../phone-codes.ts'
import type { CallbackContent, SmsProvider } from '../provider.ts'
import { ask } from './inside.ts'
import { readJson, refused, requireRecent } from './signed-json.ts'

export interface AndroidSettings {
  url: string
  user: string
  password: string
  signing_key: string
  /** In the order of the SIM slots. */
  numbers: readonly string[]
}

interface Deps extends Pick<Basis, 'clock' | 'log' | 'publicUrl'> {
  settings: AndroidSettings
  /** The country of senders without a country code. */
  country: () => string
}

/** The events to receive, each as a webhook of its own. */
const wanted = ['sms:received', 'sms:sent', 'sms:delivered', 'sms:failed'] as const

const Event = z.object({
  event: z.string(),
  payload: z.object({
    messageId: z.string().max(200).optional(),
    message: z.string().max(20_000).optional(),
    phoneNumber: z.string().max(64).optional(),
    simNumber: z.int().nullish(),
    receivedAt: z.string().max(64).optional(),
    reason: z.string().max(500).optional(),
  }),
})

/** A phone with SMS Gateway for Android (capcom6): a real SIM card, which receives one-time codes that other providers block. */
export function android({ settings, clock, log, country, publicUrl }: Deps): SmsProvider {
  const { url, user, password, signing_key, numbers } = settings
  const basic = Buffer.from(`${user}:${password}`).toString('base64')
  const authorization = { Authorization: `Basic ${basic}` }
  const who = { who: 'The phone', clock, secrets: [password, basic, signing_key] }
  return {
    name: 'android',
    capabilities: { send: true, receive: true, provision: false, receives_otp: true },
    // the app does not promise what a repeated id does
    idempotent: false,
    pool: numbers,

    async send({ id, from, to, body }, signal) {
      const slot = numbers.indexOf(from) + 1
      const text = {
        id,
        textMessage: { text: body },
        phoneNumbers: [to],
        withDeliveryReport: true,
        ...(slot > 0 ? { simNumber: slot } : {}),
      }
      const said = await ask(
        `${url}/messages`,
        { method: 'POST', headers: authorization, body: JSON.stringify(text), signal },
        who,
      )
      return { provider_id: typeof said['id'] === 'string' ? said['id'] : id }
    },

    async read(_kind, request) {
      requireSigned(request, signing_key, clock)
      const { event, payload } = readJson(Event, request.bytes)
      if (event !== 'sms:received') return outcome(event, payload)
      const { messageId = '', message = '', phoneNumber = '', simNumber, receivedAt = '' } = payload
      const to = numbers[(simNumber ?? 1) - 1]
      if (to === undefined) {
        log.warn({ slot: simNumber }, 'message received by a SIM card that is not in sms.android.numbers; discarded')
        return null
      }
      // the app derives its message id from the text, so a code sent twice would look like a repeat
      const provider_id = createHash('sha256')
        .update(JSON.stringify([messageId, phoneNumber, message, receivedAt, to]))
        .digest('hex')
      return {
        sms: { provider_id, from: normalized(phoneNumber, country()), to, body: message, media: [] },
      } satisfies CallbackContent
    },

    subscribe: register,

    async check(signal) {
      await ask(`${url}/webhooks`, { method: 'GET', headers: authorization, signal }, who)
    },
  }

  /** Registers a webhook for each event under a fixed id, so that repeating it changes nothing. */
  async function register(): Promise<void> {
    for (const event of wanted) {
      const hook = { id: `pillarbox-${event.replace(':', '-')}`, url: `${publicUrl()}/sms/android/events`, event }
      await ask(`${url}/webhooks`, { method: 'POST', headers: authorization, body: JSON.stringify(hook) }, who)
    }
  }
}

function outcome(
  event: string,
  { messageId, reason }: { messageId?: string | undefined; reason?: string | undefined },
): CallbackContent {
  if (messageId === undefined) return null
  if (event === 'sms:sent') return { update: { provider_id: messageId, status: 'sent' } }
  if (event === 'sms:delivered') return { update: { provider_id: messageId, status: 'delivered' } }
  if (event !== 'sms:failed') return null
  return {
    update: {
      provider_id: messageId,
      status: 'failed',
      error: { code: 'failed', message: reason ?? 'The phone could not send it.' },
    },
  }
}

/** Verifies the app's signature, over the body followed by the time. */
function requireSigned({ headers, bytes }: RawRequest, key: string, clock: Clock): void {
  const [signature, time] = ['x-signature', 'x-timestamp'].map((name) => [headers[name]].flat()[0])
  if (signature === undefined) throw refused('it has no signature')
  const timestamp = requireRecent(time, clock.now())
  const expected = mac(Buffer.from(key), bytes, timestamp)
  if (!/^[0-9a-f]{64}$/i.test(signature) || !sameBytes(Buffer.from(signature, 'hex'), expected)) {
    throw refused('its signature does not match sms.android.signing_key')
  }
}
