import type * as z from 'zod'
import { percentDecoded } from '../core/text.ts'
import { invalid } from '../core/fault.ts'
import { longestSecret, readBase32, type Recipe } from './codes.ts'
import { AccountName, Algorithm, Digits, type NewTotpEntry, Period, ServiceName } from './model.ts'

/** The parsed data of a new entry. */
interface NewEntry extends Recipe {
  secret: Buffer
  service_name: string
  account_name: string | null
}

type Named = Partial<NewEntry>

/**
 * Combines the caller's fields with the URI. The caller's names take precedence; a secret, algorithm, digits or period that differs from
 * the URI is refused. Throws Fault 400 naming the field, without any part of the secret.
 */
export function readSetup(input: NewTotpEntry): NewEntry {
  const fromUri = input.uri === undefined ? {} : readUri(input.uri)
  const given = input.secret === undefined ? undefined : readSecret(input.secret, 'secret', 'secret')
  const secret = given ?? fromUri.secret
  if (!secret) throw invalid('secret', 'Send the secret in base32, or the uri that contains it.', 'missing')
  if (given && fromUri.secret && !given.equals(fromUri.secret)) throw contradiction('secret')
  const service_name = input.service_name ?? fromUri.service_name
  if (service_name === undefined) {
    const reason = input.uri === undefined ? 'service_name is required.' : 'service_name is required: the uri names no issuer.'
    throw invalid('service_name', reason, 'missing')
  }
  return {
    secret,
    service_name,
    account_name: input.account_name ?? fromUri.account_name ?? null,
    algorithm: agreed('algorithm', input, fromUri) ?? 'SHA1',
    digits: agreed('digits', input, fromUri) ?? 6,
    period: agreed('period', input, fromUri) ?? 30,
  }
}

function agreed<Name extends keyof Recipe>(name: Name, input: NewTotpEntry, fromUri: Named): Recipe[Name] | undefined {
  const [given, read] = [input[name] as Recipe[Name] | undefined, fromUri[name] as Recipe[Name] | undefined]
  if (given !== undefined && read !== undefined && given !== read) throw contradiction(name)
  return given ?? read
}

function contradiction(name: string): Error {
  return invalid(name, `${name} differs from the uri; omit one of the two.`, 'contradiction')
}

/** Parses `otpauth://totp/Issuer:account?secret=…&issuer=…&algorithm=…&digits=…&period=…`: the key URI format of authenticator apps. */
function readUri(text: string): Named {
  const url = URL.parse(text.trim())
  if (url?.protocol !== 'otpauth:') throw badUri('must be an otpauth:// URI, as in the QR code of the service')
  if (url.host.toLowerCase() === 'hotp')
    throw badUri('must be of the type otpauth://totp/; counter-based codes (hotp) are not supported')
  if (url.host.toLowerCase() !== 'totp') throw badUri('must be of the type otpauth://totp/')
  const values = parametersOf(url)
  const { issuer, account } = labelOf(url)
  const secret = values.get('secret')
  if (secret === undefined) throw badUri('must have a secret')
  return {
    secret: readSecret(secret, 'uri', 'The secret of the uri'),
    ...named('service_name', values.get('issuer')?.trim() || issuer, ServiceName, 'issuer'),
    ...named('account_name', account, AccountName, 'account'),
    ...named('algorithm', values.get('algorithm'), Algorithm, 'algorithm'),
    ...named('digits', number(values.get('digits')), Digits, 'digits'),
    ...named('period', number(values.get('period')), Period, 'period'),
  }
}

/** By lower-case name; known parameters may occur once. */
function parametersOf(url: URL): Map<string, string> {
  const values = new Map<string, string>()
  for (const [name, value] of url.searchParams) {
    const known = name.toLowerCase()
    if (values.has(known) && known !== 'image') throw badUri('must not have a parameter twice')
    values.set(known, value)
  }
  return values
}

function labelOf(url: URL): { issuer?: string; account?: string } {
  const label = percentDecoded(url.pathname.replace(/^\//, ''))
  if (label === undefined) throw badUri('must have a label in percent-encoded UTF-8')
  const colon = label.indexOf(':')
  const [issuer, account] = colon === -1 ? ['', label] : [label.slice(0, colon), label.slice(colon + 1)]
  return { ...(issuer.trim() && { issuer }), ...(account.trim() && { account }) }
}

function number(text: string | undefined): number | undefined {
  return text === undefined ? undefined : /^\d{1,9}$/.test(text) ? Number(text) : NaN
}

function named<Name extends keyof NewEntry>(
  name: Name,
  value: unknown,
  schema: z.ZodType<NewEntry[Name]>,
  called: string,
): { [K in Name]?: NewEntry[K] } {
  const found: { [K in Name]?: NewEntry[K] } = {}
  if (value === undefined || value === '') return found
  const result = schema.safeParse(value)
  if (!result.success) throw badUri(`has a wrong ${called}: it ${result.error.issues[0]!.message}`)
  found[name] = result.data
  return found
}

function readSecret(text: string, param: string, called: string): Buffer {
  const secret = readBase32(text)
  if (!secret) {
    const rule = `${called} must be base32: the letters A to Z and the digits 2 to 7, and no character may be missing.`
    throw invalid(param, rule, 'invalid_value')
  }
  if (secret.length > longestSecret) {
    throw invalid(param, `${called} must have at most ${longestSecret} bytes when decoded.`, 'invalid_value')
  }
  return secret
}

function badUri(rule: string): Error {
  return invalid('uri', `uri ${rule}.`, 'invalid_value')
}
