import * as z from 'zod'
import type { Clock } from '../../core/clock.ts'
import { mac, sameBytes } from '../../core/seal/seal.ts'
import { Line } from '../../core/shapes.ts'
import type { RawRequest } from '../../http/route.ts'
import { normalized } from '../phone-codes.ts'
import { type CallbackContent, Rejected, type SmsProvider } from '../provider.ts'
import { ask } from './inside.ts'
import { readJson, refused, requireRecent } from './signed-json.ts'

export interface HttpBridgeSettings {
  url: string
  secret: string
  numbers: readonly string[]
}

interface Deps {
  settings: HttpBridgeSettings
  clock: Clock
  /** The country of numbers without a country code. */
  country: () => string
}

const Id = z.string().regex(/^[\x21-\x7e]{1,200}$/, { error: 'must have 1 to 200 printable ASCII characters' })
const Party = Line(64)
const ours = /^sms_[0-9a-z]{26}$/
const mediaType = /^[\w!#$&^.+-]{1,63}\/[\w!#$&^.+-]{1,63}$/
const Failure = z.object({ code: z.string().max(64), message: z.string().max(500) })

const InboundBody = z.object({
  // both directions are signed alike: what the box sent must not come back as received
  id: Id.refine((id) => !ours.test(id), { error: 'must be an id of the bridge, not one of a message that this box sent' }),
  from: Party,
  to: Party,
  body: z.string().max(20_000),
  media: z
    .array(
      z.object({
        content_type: z
          .string()
          .max(127)
          .transform((type) => (mediaType.test(type) ? type : 'application/octet-stream')),
        content: z.base64(),
      }),
    )
    .max(10)
    .default([]),
})

const StatusBody = z.object({
  id: z.string().regex(ours, { error: 'must be the id with which the message was sent' }),
  status: z.enum(['sent', 'delivered', 'failed']),
  error: Failure.optional(),
})

/** A bridge that implements the protocol of docs/sms.md: a modem, Kannel, a script. Both directions are signed as in Standard Webhooks. */
export function httpBridge({ settings, clock, country }: Deps): SmsProvider {
  const key = settings.secret.startsWith('whsec_')
    ? Buffer.from(settings.secret.slice(6), 'base64')
    : Buffer.from(settings.secret)
  const sign = (id: string, timestamp: string, body: string | Buffer): Buffer => mac(key, `${id}.${timestamp}.`, body)
  return {
    name: 'http',
    capabilities: { send: true, receive: true, provision: false, receives_otp: true },
    // the bridge must skip what it has sent under the same id
    idempotent: true,
    pool: settings.numbers,

    async send(message, signal) {
      const body = JSON.stringify(message)
      const timestamp = String(Math.floor(clock.now() / 1000))
      const headers = {
        'webhook-id': message.id,
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${sign(message.id, timestamp, body).toString('base64')}`,
      }
      const said = await ask(
        settings.url,
        { method: 'POST', headers, body, signal },
        { who: 'The bridge', clock, secrets: [settings.secret] },
      )
      const failure = Failure.safeParse(said['error'])
      if (said['status'] === 'failed') {
        const { code, message: reason } = failure.data ?? { code: 'failed', message: 'The bridge could not send it.' }
        throw new Rejected(code, reason)
      }
      const id = Id.safeParse(said['provider_id'])
      return { provider_id: id.data ?? null, status: said['status'] === 'delivered' ? 'delivered' : 'sent' }
    },

    async check(signal) {
      // the protocol has no health request: any answer means it is reachable
      await ask(
        settings.url,
        { method: 'GET', headers: {}, signal },
        { who: 'The bridge', clock, secrets: [settings.secret] },
      ).catch((error: unknown) => {
        if (!(error instanceof Rejected)) throw error
      })
    },

    async read(kind, request) {
      requireSigned(request, sign, clock)
      if (kind === 'status') {
        const { id, status, error } = readJson(StatusBody, request.bytes)
        const reason = status === 'failed' ? (error ?? { code: 'failed', message: 'The bridge could not send it.' }) : undefined
        return { update: { sms_id: id, status, error: reason } }
      }
      const { id, from, to, body, media } = readJson(InboundBody, request.bytes)
      const files = media.map(({ content_type, content }) => ({ content_type, bytes: Buffer.from(content, 'base64') }))
      // normalized as modems write numbers: a STOP must match the number that messages are sent to
      const [sender, recipient] = [normalized(from, country()), normalized(to, country())]
      return { sms: { provider_id: id, from: sender, to: recipient, body, media: files } } satisfies CallbackContent
    },
  }
}

function requireSigned(
  { headers, bytes }: RawRequest,
  sign: (id: string, timestamp: string, body: Buffer) => Buffer,
  clock: Clock,
): void {
  const [id, time, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => [headers[name]].flat()[0])
  if (id === undefined || signatures === undefined) throw refused('it has no signature')
  const timestamp = requireRecent(time, clock.now())
  const expected = sign(id, timestamp, bytes)
  const matches = signatures
    .slice(0, 2000)
    .split(' ')
    .some((one) => one.startsWith('v1,') && sameBytes(Buffer.from(one.slice(3), 'base64'), expected))
  if (!matches) throw refused('its signature does not match sms.http.secret')
}
