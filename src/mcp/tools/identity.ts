import { invalid, notFound } from '../../core/fault.ts'
import type { Page } from '../../core/shapes.ts'
import { nearest } from '../../core/text.ts'
import type { Identity, WhoAmI } from '../../identities/model.ts'
import type { EmailRow } from '../../mail/model.ts'
import type { IdentityToken } from '../../tokens/model.ts'
import type { TotpCode, TotpEntry } from '../../totp/model.ts'
import { AnswerText } from '../answer-text.ts'
import { tool, type Tool, type ToolContext } from '../tool.ts'

const caller = 'GET /whoami'
const identity = 'GET /identities/:id'
const unread = 'GET /identities/:id/emails'
const passwords = 'GET /identities/:id/totp'
const code = 'GET /identities/:id/totp/:totp_id/code'
const token = 'POST /identities/:id/token'
const sendEmail = 'POST /identities/:id/emails'
const sendSms = 'POST /identities/:id/sms'

/** Seconds for which a code must still be valid: a model needs some to use it. */
const least = 5

/** The most unread messages that are counted. */
const counted = 50

export const identityTools: Tool[] = [
  tool('whoami', {
    description: 'Who you are here: address, number, unread mail, what you may send, your one-time passwords.',
    annotations: { readOnlyHint: true, openWorldHint: false },
    routes: [caller],
    run: async (context) => {
      const { call, allowed } = context
      const { scopes, identity: bound } = await call<WhoAmI>(caller)
      const me = bound ?? (allowed(identity) ? await call<Identity>(identity) : undefined)
      const text = new AnswerText()
      text.line(
        `identity: ${context.identity}${me ? `, e-mail ${me.email}, ${me.phone_number ?? 'no number'}, ${me.status}${me.expires_at === null ? '' : `, deleted at ${me.expires_at}`}` : ''}`,
      )
      if (me) text.foreign('Name: ', me.name)
      const mails = allowed(unread)
        ? await call<Page<EmailRow>>(unread, { query: { unread: 'true', limit: String(counted) } })
        : undefined
      if (mails) text.line(`unread e-mails: ${mails.has_more ? `more than ${counted}` : mails.data.length}`)
      const sends = [allowed(sendEmail) ? ['e-mail'] : [], allowed(sendSms) && me?.phone_number ? ['SMS'] : []].flat()
      text.line(`may send: ${sends.length === 0 ? 'nothing; ask whoever made the key' : sends.join(', ')}`)
      if (allowed(sendEmail) && me?.can_send_outside === false)
        text.line(`only to addresses on this box: ${me.cannot_send_outside_reason ?? ''}`)
      const entries = allowed(passwords) ? await call<Page<TotpEntry>>(passwords) : undefined
      for (const entry of entries?.data ?? []) text.foreign('One-time password: ', labelOf(entry), 200)
      text.line(`scopes: ${scopes.join(' ')}`)
      return {
        text: text.toString(),
        data: { identity_id: context.identity, email: me?.email ?? null, phone_number: me?.phone_number ?? null },
      }
    },
  }),
  tool('one_time_password', {
    description: 'The present code of a one-time password (TOTP), for logging in. Reading is recorded.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    routes: [code],
    example: { service: 'GitHub' },
    run: async ({ call, allowed }, { service }) => {
      if (!allowed(passwords)) throw invalid('service', 'This key may not list one-time passwords.')
      const entry = await entryNamed(call, service)
      const found = await call<TotpCode>(code, {
        params: { totp_id: entry.id },
        query: { min_remaining: String(Math.min(least, entry.period - 1)) },
      })
      const { code: digits, remaining_seconds: seconds } = found
      return { text: `code: ${digits}, for ${seconds} s`, data: { code: digits, seconds } }
    },
  }),
  tool('identity_token', {
    description: 'A short-lived signed token that proves to one audience who you are.',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    routes: [token],
    example: { audience: 'https://shop.example.com' },
    run: async ({ call }, { audience }) => {
      const { token: jwt, expires_at } = await call<IdentityToken>(token, { body: { audience } })
      return { text: `token (until ${expires_at}): ${jwt}`, data: { expires_at } }
    },
  }),
]

async function entryNamed(call: ToolContext['call'], service: string): Promise<TotpEntry> {
  const { data } = await call<Page<TotpEntry>>(passwords, { query: { limit: '200' } })
  const wanted = service.toLowerCase()
  const named = data.filter((entry) =>
    [entry.id, entry.service_name, labelOf(entry)].some((name) => name.toLowerCase() === wanted),
  )
  if (named.length === 1) return named[0]!
  const names = data.map(labelOf)
  if (named.length > 1) throw invalid('service', `Several are named so. Send one of: ${shortList(named.map(labelOf))}.`)
  if (names.length === 0) throw notFound('one-time password: this identity has none. Whoever made the key can store one')
  const close = nearest(service, names)
  throw invalid(
    'service',
    `There is no such one-time password. ${close === undefined ? '' : `Did you mean ${JSON.stringify(close)}? `}There are: ${shortList(names)}.`,
  )
}

function labelOf({ service_name, account_name }: TotpEntry): string {
  return account_name === null ? service_name : `${service_name} (${account_name})`
}

function shortList(names: string[]): string {
  return names
    .slice(0, 20)
    .map((name) => JSON.stringify(name))
    .join(', ')
}
