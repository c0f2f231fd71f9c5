import type { Basis } from '../basis.ts'
import * as z from 'zod'
import { Fault, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import { sql } from '../store/database.ts'
import { type AnyRoute, type RawRequest, routeOf } from '../http/route.ts'
import type { Inbound } from './inbound.ts'
import { InjectedSms, Sms } from './model.ts'
import type { Numbers } from './numbers.ts'
import type { CallbackContent, ProviderName, SmsProvider } from './provider.ts'
import { type SmsRow, whole } from './rows.ts'

interface Deps extends Pick<Basis, 'database' | 'log'> {
  provider: SmsProvider | undefined
  inbound: Inbound
  numbers: Numbers
}

const route = routeOf('SMS')

/** The largest message from a bridge in bytes, including its media. All other callbacks are small. */
const largest = 16 * 1024 * 1024

/** The callback endpoints of the providers; a call without a valid signature has no effect. */
export function callbacks(deps: Deps): AnyRoute[] {
  return [...twilioCallbacks(deps), ...jsonCallbacks(deps), injection(deps)]
}

function twilioCallbacks(deps: Deps): AnyRoute[] {
  const one = (kind: 'inbound' | 'status', summary: string): AnyRoute =>
    route('POST', `/sms/twilio/${kind}`, {
      root: true,
      scope: 'public',
      rate: 'callback',
      raw: true,
      errors: { 403: ['bad_signature'], 404: ['not_found'] },
      summary,
      description: 'For Twilio, with its signature for this URL below public_url. Returns empty TwiML.',
      download: 'text/xml',
      handle: async ({ raw, request_id }) => {
        await handleCallback(deps, 'twilio', kind, raw, request_id)
        return { type: 'text/xml', bytes: Buffer.from('<?xml version="1.0" encoding="UTF-8"?><Response></Response>') }
      },
    })
  return [one('inbound', 'Receive a message from Twilio'), one('status', 'Receive a status from Twilio')]
}

const CallbackResult = z.object({
  effect: z.boolean().meta({ description: 'false for a repeat, and for an unassigned number' }),
})

function jsonCallbacks(deps: Deps): AnyRoute[] {
  // an unconfigured provider has no key to verify with, so its bodies stay small
  const large = deps.provider?.name === 'http' ? { limit: largest } : {}
  const one = (name: 'http' | 'android', kind: string, summary: string, description: string, more: typeof large = {}): AnyRoute =>
    route('POST', `/sms/${name}/${kind}`, {
      root: true,
      scope: 'public',
      rate: 'callback',
      raw: true,
      ...more,
      idempotent: false,
      errors: { 403: ['bad_signature'], 404: ['not_found'] },
      summary,
      description,
      reply: CallbackResult,
      handle: async ({ raw, request_id }) => ({ effect: await handleCallback(deps, name, kind, raw, request_id) }),
    })
  const signed = 'Signed as described in docs/sms.md.'
  return [
    one('http', 'inbound', 'Receive a message from a bridge', signed, large),
    one('http', 'status', 'Receive a status from a bridge', signed),
    one(
      'android',
      'events',
      'Receive an event from a phone',
      'A webhook of SMS Gateway for Android, signed with its signing key.',
    ),
  ]
}

/** Parses and applies a callback. Returns whether it had an effect. */
async function handleCallback(
  deps: Deps,
  name: ProviderName,
  kind: string,
  raw: RawRequest,
  requestId: string,
): Promise<boolean> {
  const { provider, inbound, log } = deps
  if (provider?.name !== name || !provider.read) throw notFound(`provider; sms.provider is not ${name}`)
  let news: CallbackContent
  try {
    news = await provider.read(kind, raw)
  } catch (error) {
    if (error instanceof Fault)
      log.warn({ provider: name, kind, request_id: requestId, reason: error.message }, 'callback rejected')
    throw error
  }
  if (news === null) return false
  if ('update' in news) return inbound.update(name, news.update)
  return (await inbound.receive(name, news.sms)) === 'kept'
}

function injection({ database, provider, inbound, numbers }: Deps): AnyRoute {
  return route('POST', '/sms/loopback/inject', {
    scope: 'account:write',
    sdk: 'sms.inject',
    errors: { 400: ['sms_not_configured'], 404: ['not_found'] },
    summary: 'Send a message to the loopback provider',
    description: 'Simulates a message from a phone to a number of this account. Only if sms.provider is loopback.',
    body: InjectedSms,
    reply: Sms,
    status: 201,
    location: (sms) => `/v1/identities/${sms.identity_id}/sms/${sms.id}`,
    example: { body: { from: '+15550100199', to: '+15550100123', body: 'Your code is 493817.' } },
    handle: async ({ caller, body }) => {
      await requireOwn(numbers, caller, body.to)
      if (provider?.name !== 'loopback') {
        throw new Fault('invalid_request', 'sms.provider is not loopback on this box.', { code: 'sms_not_configured' })
      }
      const id = newId('sms')
      const media = (body.media ?? []).map(({ content_type, content }) => ({
        content_type,
        bytes: Buffer.from(content, 'base64'),
      }))
      await inbound.receive('loopback', { provider_id: id, from: body.from, to: body.to, body: body.body, media })
      const row = await database.get<SmsRow>(
        sql`SELECT * FROM sms WHERE provider = 'loopback' AND provider_id = ${id} AND direction = 'inbound'`,
      )
      if (!row) throw notFound('number on this box')
      return (await whole(database, [row]))[0]!
    },
  })
}

async function requireOwn(numbers: Numbers, caller: Caller, to: string): Promise<void> {
  const holder = await numbers.holder(to)
  const bound = caller.identity_id !== null && caller.identity_id !== holder?.identity_id
  if (holder?.account_id !== caller.account_id || bound) throw notFound('number on this box')
}
