import * as z from 'zod'
import type { Scope } from '../core/scopes.ts'
import { HoldState, Id, Line, Timestamp } from '../core/shapes.ts'
import { eventType } from '../events/model.ts'

/** Any text of at most so many bytes. */
function secret(longest: number) {
  const text = z.string().min(1).max(longest)
  return text.refine((given) => Buffer.byteLength(given) <= longest, { error: `must have at most ${longest} bytes` })
}

const Place = Line(2048).refine(isPlace, { error: 'must be an http or https URL without a user name or password' })

function isPlace(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
}

/** Which login it is, with nothing that is sealed. */
const LoginHead = {
  id: Id('login'),
  identity_id: Id('ident'),
  label: z.string(),
  url: z.string().nullable(),
}

const LoginFacts = {
  ...LoginHead,
  has_password: z.boolean(),
  has_api_key: z.boolean(),
  has_notes: z.boolean(),
  totp_id: Id('totp').nullable().meta({ description: 'the one-time password that goes with it' }),
  created_at: Timestamp,
  updated_at: Timestamp,
}

/** As events have it: they keep nothing that is sealed. */
export const LoginNoted = z.object(LoginFacts).meta({ id: 'LoginNoted', description: 'a login without its user name' })
export type LoginNoted = z.output<typeof LoginNoted>

export const Login = z.object({ ...LoginFacts, username: z.string().nullable() }).meta({ id: 'Login' })
export type Login = z.output<typeof Login>

const Secret = secret(4096)

/** What is sealed beside the user name. */
export interface LoginSecrets {
  password: string | null
  api_key: string | null
  notes: string | null
}

const LoginFields = {
  url: Place.nullable().meta({ description: 'http or https; its host is the place that a person approves' }),
  username: Line(256).nullable(),
  password: Secret.nullable(),
  api_key: Secret.nullable(),
  notes: secret(16_384).nullable(),
  totp_id: Id('totp').nullable().meta({ description: 'of the same identity' }),
}

export const NewLogin = z
  .strictObject({
    label: Line(128).meta({ description: 'the name of the place, such as GitHub' }),
    ...z.object(LoginFields).partial().shape,
  })
  .meta({ id: 'NewLogin' })
export type NewLogin = z.output<typeof NewLogin>

export const LoginChange = NewLogin.partial().meta({ id: 'LoginChange', description: 'null removes a value' })
export type LoginChange = z.output<typeof LoginChange>

export const LoginPurpose = z
  .strictObject({ purpose: Line(500).optional().meta({ description: 'the purpose; recorded' }) })
  .meta({ id: 'LoginPurpose' })
export type LoginPurpose = z.output<typeof LoginPurpose>

export const RevealedLogin = z
  .object({
    username: z.string().nullable(),
    password: z.string().nullable(),
    api_key: z.string().nullable(),
    notes: z.string().nullable(),
  })
  .meta({ id: 'RevealedLogin' })
export type RevealedLogin = z.output<typeof RevealedLogin>

/** A reveal that a person must approve. */
export const HeldLogin = z
  .object({
    ...LoginFacts,
    host: z.string().nullable().meta({ description: 'of the url' }),
    purpose: z.string().nullable(),
    used_at: Timestamp.nullable().meta({ description: 'when the approved reveal took place' }),
    hold: HoldState,
  })
  .meta({ id: 'HeldLogin' })
export type HeldLogin = z.output<typeof HeldLogin>

const LoginRevealed = z.object({
  ...LoginHead,
  purpose: z.string().nullable(),
  key_id: Id('key').nullable(),
  ip: z.string(),
  user_agent: z.string(),
})

const scopes: Scope[] = ['identities:read']
export const loginCreated = eventType('login.created', scopes, 'A login was stored.', LoginNoted)
export const loginUpdated = eventType('login.updated', scopes, 'A login was changed.', LoginNoted)
export const loginDeleted = eventType('login.deleted', scopes, 'A login was deleted.', LoginNoted)
export const loginRevealed = eventType(
  'login.revealed',
  scopes,
  'A login was revealed. Contains the reader and its address, and nothing of what was revealed.',
  LoginRevealed,
)
export const loginHeld = eventType('login.held', scopes, 'A reveal of a login waits for a person.', HeldLogin)
export const loginApproved = eventType(
  'login.approved',
  scopes,
  'A held reveal of a login was approved: the same call succeeds once, within an hour.',
  HeldLogin,
)
export const loginRejected = eventType('login.rejected', scopes, 'A held reveal of a login was rejected.', HeldLogin)
export const loginExpired = eventType('login.expired', scopes, 'Nobody approved a held reveal of a login in time.', HeldLogin)
