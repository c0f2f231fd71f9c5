import { day, hour, minute, second } from '../core/clock.ts'
import { hostNameOf } from '../core/domain-names.ts'
import { parsePostgresUrl } from './database/postgres-url.ts'
import type { PostgresTarget } from '../store/postgres/target.ts'
import { isIP } from 'node:net'
import type { Endpoint } from '../net/listen.ts'
import * as z from 'zod'

/** A group of settings; an unknown name in it is refused. */
export function Group<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape, { error: 'must be a group of settings' })
}

/** A group whose members are all of one sort; an unknown name is refused with all that there are. */
export function Named<Shape extends z.ZodRawShape>(shape: Shape) {
  return Group(shape).meta({ enumerated: true })
}

/** A check of a group: it has both of these members or neither; `why` describes the missing one. */
export function both(one: string, other: string, why: string) {
  return (group: Record<string, unknown>, context: z.core.$RefinementCtx): void => {
    if ((group[one] === undefined) === (group[other] === undefined)) return
    context.addIssue({ code: 'custom', path: [group[one] === undefined ? one : other], message: why, input: undefined })
  }
}

/** A whole number within bounds. */
export function Whole(minimum: number, maximum: number) {
  const error = `must be a whole number from ${minimum} to ${maximum}`
  return z.int({ error }).min(minimum, { error }).max(maximum, { error })
}

export const Switch = z.boolean({ error: 'must be true or false' })

/** One of a few words. */
export function Choice<const Words extends readonly [string, ...string[]]>(words: Words) {
  return z.enum(words, { error: `must be one of ${words.join(', ')}` })
}

/** Text that is not empty, on one line. */
export function Text(what: string) {
  const error = `must be ${what}`
  return z
    .string({ error })
    .min(1, { error })
    .max(1000, { error })
    .refine((text) => !/\p{Cc}/u.test(text), { error })
}

/** A list of what `item` accepts. */
export function List<Item extends z.ZodType>(item: Item, what: string) {
  return z.array(item, { error: `must be a list of ${what}, such as [a, b]` })
}

/** A number of bytes, or a text such as `25 MiB`; gives bytes. */
export function Size(minimum: number) {
  const least = minimum > 0 ? ` of at least ${spell(minimum, sizeUnits)}` : ''
  return quantity(sizeUnits, minimum, 2 ** 50, `must be a size${least} such as 25 MiB, or a number of bytes`)
}

/** A number of milliseconds, or a text such as `2 s`; gives milliseconds. */
export function Duration(minimum: number, maximum: number) {
  const range = `from ${spell(minimum, timeUnits)} to ${spell(maximum, timeUnits)}`
  return quantity(timeUnits, minimum, maximum, `must be a time ${range} such as 500 ms, 15 s or 5 min, or milliseconds`)
}

/** `host:port`, `[::1]:port` or `:port`. */
export const Listen = checked(
  'must be host:port such as 127.0.0.1:8080, [::1]:8080 or :8080',
  (text): Endpoint | Wrong | undefined => {
    const parts = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d+)$/.exec(text)
    const port = Number(parts?.[3])
    if (!parts) return undefined
    if (port > 65535) return new Wrong('must have a port from 0 to 65535')
    if (parts[1] !== undefined) return isIP(parts[1]) === 6 ? { host: parts[1], port } : undefined
    if (!parts[2]) return { host: undefined, port }
    return isIP(parts[2]) === 4 || hostNameOf(parts[2]) ? { host: parts[2], port } : undefined
  },
)

/** The name of a host, as A-labels in lower case (RFC 1123 2.1). */
export const HostName = checked('must be a host name such as mx.example.com', hostNameOf)

/** A host by its name, as A-labels in lower case, or by its address. */
export const Host = checked('must be a host name such as smtp.example.net, or an address such as 192.168.1.25', (text) =>
  isIP(text) > 0 && !text.includes('%') ? text : hostNameOf(text),
)

/** A domain that mail can be sent to, as A-labels in lower case; it has a dot. */
export const MailDomain = checked('must be a domain such as example.com', (text) => {
  const name = hostNameOf(text)
  return name?.includes('.') ? name : undefined
})

/** An address that mail can be sent to; its domain as A-labels in lower case. */
export const MailAddress = checked('must be an address such as admin@example.net', (text) => {
  const at = text.lastIndexOf('@')
  const domain = hostNameOf(text.slice(at + 1))
  return at > 0 && at <= 64 && domain?.includes('.') && /^[^\s<>@",;:()[\]\\]+$/.test(text.slice(0, at))
    ? `${text.slice(0, at)}@${domain}`
    : undefined
})

/** The scheme, host and port of a site, without a slash at the end. */
export const Origin = checked('must be a URL without a path, such as https://box.example.com', (text) => {
  const url = webAddress(text)
  return url?.pathname === '/' && !url.search && !text.includes('?') && !text.includes('#') ? url.origin : undefined
})

/** An http or https URL, perhaps with a path, without a slash at the end. */
export const WebAddress = checked('must be an http or https URL such as http://127.0.0.1:11334', (text) => {
  return webAddress(text)?.href.replace(/\/$/, '')
})

/** An https URL, as it was written. */
export const SecureAddress = checked('must be an https URL such as https://ca.example.net/directory', (text) => {
  return webAddress(text)?.protocol === 'https:' ? text : undefined
})

/** A database of PostgreSQL. */
export const PostgresUrl = checked('must be a URL such as postgres://user@host/database', (text): PostgresTarget | Wrong => {
  try {
    return parsePostgresUrl(text)
  } catch (error) {
    return new Wrong((error as Error).message)
  }
})

/** An address block; a bare address stands for itself alone. */
export const AddressBlock = checked('must be an address block such as 10.0.0.0/8 or fd00::/8', (text) => {
  const [address = '', length, ...rest] = text.split('/')
  const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  if (bits < 0 || address.includes('%') || rest.length > 0) return undefined
  if (length === undefined) return `${address}/${bits}`
  return /^\d{1,3}$/.test(length) && Number(length) <= bits ? `${address}/${Number(length)}` : undefined
})

/** An address of a machine. */
export const Address = checked('must be an address such as 192.0.2.25 or 2001:db8::25', (text) =>
  isIP(text) > 0 && !text.includes('%') ? text : undefined,
)

/** A name server: an address, perhaps with a port. */
export const NameServer = checked('must be an address such as 127.0.0.1:5353 or [::1]:53', (text) => {
  if (isIP(text) && !text.includes('%')) return text
  const parts = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text)
  const port = Number(parts?.[3])
  const family = isIP(parts?.[1] ?? parts?.[2] ?? '')
  return parts && port >= 1 && port <= 65535 && family === (parts[1] === undefined ? 4 : 6) ? text : undefined
})

/** A secret that callers present: 20 to 128 printable ASCII characters without spaces. */
export const Secret = z
  .string({ error: 'must be 20 to 128 printable ASCII characters without spaces' })
  .regex(/^[\x21-\x7e]{20,128}$/, { error: 'must be 20 to 128 printable ASCII characters without spaces' })

const sizeUnits = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 }
const timeUnits = { ms: 1, s: second, min: minute, h: hour, d: day }

function quantity(units: Record<string, number>, minimum: number, maximum: number, error: string) {
  const form = new RegExp(`^(\\d{1,16}(?:\\.\\d{1,6})?)(?: ?(${Object.keys(units).join('|')}))?$`)
  return z.union([z.number(), z.string().regex(form, { error })], { error }).transform((given, context) => {
    const [, amount, unit] = form.exec(String(given)) ?? []
    const value = amount === undefined ? Number.NaN : Math.round(Number(amount) * (unit === undefined ? 1 : (units[unit] ?? 1)))
    if (value >= minimum && value <= maximum) return value
    context.issues.push({ code: 'custom', message: error, input: given })
    return z.NEVER
  })
}

/** The specific fault of an invalid text, if one can be named. */
class Wrong {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

function checked<T>(error: string, read: (text: string) => T | Wrong | undefined) {
  return z.string({ error }).transform((text, context): T => {
    const value = text.length <= 1000 ? read(text) : undefined
    if (value !== undefined && !(value instanceof Wrong)) return value
    context.issues.push({ code: 'custom', message: value instanceof Wrong ? value.message : error, input: text })
    return z.NEVER
  })
}

function webAddress(text: string): URL | undefined {
  const url = /^https?:\/\/[^\s]+$/i.test(text) ? URL.parse(text) : null
  return url && !url.username && !url.password && !url.hash ? url : undefined
}

function spell(value: number, units: Record<string, number>): string {
  const [unit, one] = Object.entries(units).findLast(([, size]) => value >= size && value % size === 0) ??
    Object.entries(units)[0] ?? ['', 1]
  return `${value / one} ${unit}`
}

const File = Text('the path of a file')

/** A setting. */
export const certificateFile = File.meta({
  description: 'PEM file with the certificate, followed by the intermediate certificates',
  file: true,
  example: 'tls/cert.pem',
})
/** A setting. */
export const keyFile = File.meta({
  description: 'PEM file with the private key of the certificate',
  file: true,
  example: 'tls/key.pem',
})

/** How sizes may be written. */
export const bytes = 'bytes, or with a unit such as kB, MiB or GiB'
/** How times may be written. */
export const time = 'milliseconds, or with a unit: ms, s, min, h or d'
