import { invalid, notFound } from '../../core/fault.ts'
import type { Page } from '../../core/shapes.ts'
import { nearest, upToLength } from '../../core/text.ts'
import type { Identity, WhoAmI } from '../../identities/model.ts'
import type { Login, RevealedLogin } from '../../logins/model.ts'
import { hostOf } from '../../logins/row.ts'
import type { EmailRow } from '../../mail/model.ts'
import type { IdentityToken } from '../../tokens/model.ts'
import type { TotpCode, TotpEntry } from '../../totp/model.ts'
import { AnswerText } from '../answer-text.ts'
import { tool, type Tool, type ToolAnswer, type ToolContext } from '../tool.ts'

const caller = 'GET /whoami'
const identity = 'GET /identities/:id'
const unread = 'GET /identities/:id/emails'
const passwords = 'GET /identities/:id/totp'
const code = 'GET /identities/:id/totp/:totp_id/code'
const logins = 'GET /identities/:id/logins'
const reveal = 'POST /logins/:id/reveal'
const token = 'POST /identities/:id/token'
const sendEmail = 'POST /identities/:id/emails'
const sendSms = 'POST /identities/:id/sms'

/** Seconds for which a code must still be valid: a model needs some to use it. */
const least = 5

/** The most unread messages that are counted. */
const counted = 50

export const identityTools: Tool[] = [
  tool('whoami', {
    description: 'Who you are: address, number, unread mail, what you may send, logins, one-time passwords.',
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
      const stored = allowed(logins) ? await call<Page<Login>>(logins) : undefined
      for (const login of stored?.data ?? []) text.foreign('Login: ', placeOf(login), 200)
      text.line(`scopes: ${scopes.join(' ')}`)
      return {
        text: text.toString(),
        data: { identity_id: context.identity, email: me?.email ?? null, phone_number: me?.phone_number ?? null },
      }
    },
  }),
  tool('read_login', {
    description: 'A stored login: user name, password, API key, notes.',
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    routes: [reveal],
    example: { service: 'GitHub', purpose: 'to open an issue' },
    run: async ({ call, allowed }, { service, purpose, offset }) => {
      if (!allowed(logins)) throw invalid('service', 'This key may not list logins.')
      const login = one('login', service, await all<Login>(call, logins), placeOf, ({ id, label, url }) => [
        id,
        label,
        hostOf(url) ?? '',
      ])
      const secrets = await call<RevealedLogin>(reveal, {
        params: { id: login.id },
        body: purpose === undefined ? {} : { purpose },
      })
      return loginFrom(offset, login, secrets)
    },
  }),
  tool('one_time_password', {
    description: 'The present code of a one-time password (TOTP).',
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    routes: [code],
    example: { service: 'GitHub' },
    run: async ({ call, allowed }, { service }) => {
      if (!allowed(passwords)) throw invalid('service', 'This key may not list one-time passwords.')
      const entries = await all<TotpEntry>(call, passwords)
      const entry = one('one-time password', service, entries, labelOf, ({ id, service_name }) => [id, service_name])
      const found = await call<TotpCode>(code, {
        params: { totp_id: entry.id },
        query: { min_remaining: String(Math.min(least, entry.period - 1)) },
      })
      const { code: digits, remaining_seconds: seconds } = found
      return { text: `code: ${digits}, for ${seconds} s`, data: { code: digits, seconds } }
    },
  }),
  tool('identity_token', {
    description: 'A short-lived token that proves to an audience who you are.',
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    routes: [token],
    example: { audience: 'https://shop.example.com' },
    run: async ({ call }, { audience }) => {
      const { token: jwt, expires_at } = await call<IdentityToken>(token, { body: { audience } })
      return { text: `token (until ${expires_at}): ${jwt}`, data: { expires_at } }
    },
  }),
]

/** What fits of a login from `offset` on, which counts the characters of its lines, and then of its notes. */
function loginFrom(offset: number, { id, totp_id }: Login, secrets: RevealedLogin): ToolAnswer {
  const given = (['username', 'password', 'api_key'] as const).filter((name) => secrets[name] !== null)
  const lines = given.map((name) => `${name} (in JSON): ${JSON.stringify(secrets[name])}`)
  if (totp_id !== null) lines.push(`one-time password: one_time_password ${JSON.stringify({ service: totp_id })}`)
  const [head, notes] = [lines.join('\n'), secrets.notes ?? '']
  const text = new AnswerText()
  const shown = upToLength(head.slice(offset), text.left)
  if (shown !== '') text.line(shown)
  let next_offset: number | null = offset + shown.length
  if (next_offset >= head.length) {
    const next = notes === '' ? null : text.page(notes, next_offset - head.length)
    next_offset = next === null ? null : head.length + next
  }
  return {
    text: text.toString(next_offset === null ? [] : [`More: offset ${next_offset} of ${head.length + notes.length}`]),
    data: { id, next_offset },
  }
}

/** All entries of a list, of which an identity has few. */
async function all<Entry>(call: ToolContext['call'], route: string): Promise<Entry[]> {
  const entries: Entry[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const query: Record<string, string> = { limit: '200', ...(cursor === '' ? {} : { cursor }) }
    const { data, next_cursor } = await call<Page<Entry>>(route, { query })
    entries.push(...data)
    cursor = next_cursor
  }
  return entries
}

/** The entry that has this name or shown name. Throws Fault, with the names that there are, unless there is exactly one. */
function one<Entry>(
  what: string,
  wanted: string,
  entries: Entry[],
  shown: (entry: Entry) => string,
  names: (entry: Entry) => string[],
): Entry {
  const sought = wanted.toLowerCase()
  const found = entries.filter((entry) => [shown(entry), ...names(entry)].some((name) => name.toLowerCase() === sought))
  if (found.length === 1) return found[0]!
  if (found.length > 1) throw invalid('service', `Several are named so. Send one of: ${shortList(found.map(shown))}.`)
  if (entries.length === 0) throw notFound(`${what}: this identity has none. Whoever made the key can store one`)
  const there = entries.map(shown)
  const close = nearest(wanted, there)
  throw invalid(
    'service',
    `There is no such ${what}. ${close === undefined ? '' : `Did you mean ${JSON.stringify(close)}? `}There are: ${shortList(there)}.`,
  )
}

function placeOf({ label, url, username }: Login): string {
  const parts = [hostOf(url), username].filter((part) => part !== null)
  return [label, ...parts.map((part) => `(${part})`)].join(' ')
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
