import * as z from 'zod'
import { Fault, invalid, placeOf } from '../core/fault.ts'
import { nearest } from '../core/text.ts'

type RawIssue = z.core.$ZodRawIssue
type Issue = z.core.$ZodIssue

const nothing = z.strictObject({})

/**
 * Validates input by a schema. Throws Fault 400 for the first error; an unknown field comes first, as it usually explains a missing one. `word` is
 * the name for fields in messages: `field` or `parameter`.
 */
export function validate(schema: z.ZodType | undefined, value: unknown, word: 'field' | 'parameter'): unknown {
  if (!schema && isEmpty(value)) return {}
  const result = (schema ?? nothing).safeParse(value, { error: (issue) => explain(issue, word) })
  if (result.success) return result.data
  const issues = result.error.issues.map((issue) => innermost(issue))
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0]!
  if (issue.code === 'unrecognized_keys') {
    throw invalid(placeOf([...issue.path, issue.keys[0]!]), issue.message, `unknown_${word}`)
  }
  if (issue.message === '') throw new Fault('invalid_request', 'The request is not valid.')
  const place = placeOf(issue.path)
  throw issue.path.length === 0
    ? new Fault('invalid_request', sentence('The request', issue.message), { code: 'invalid_body' })
    : invalid(place, sentence(place, issue.message), issue.message === missing ? 'missing' : 'invalid_value')
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

const missing = 'is required'

/** The error of the union member that matched furthest. */
function innermost(issue: Issue): Issue {
  if (issue.code !== 'invalid_union') return issue
  const firsts = issue.errors.flatMap((branch) => branch.slice(0, 1)).map((inner) => innermost(inner))
  const meant =
    firsts.find((inner) => inner.code !== 'invalid_type' && inner.code !== 'invalid_value') ??
    firsts.find((inner) => inner.path.length > 0)
  if (meant) return { ...meant, path: [...issue.path, ...meant.path] }
  if (issue.message !== '') return issue
  const choices = [...new Set(firsts.map((inner) => inner.message.replace(/^must be /, '')))]
  return { ...issue, message: choices.length === 0 ? 'has a value that is not allowed' : `must be ${choices.join(', or ')}` }
}

/** The expected value, to follow the name of the field. A schema may override it by its own `error`. */
function explain(issue: RawIssue, word: 'field' | 'parameter'): string {
  switch (issue.code) {
    case 'unrecognized_keys':
      return unknownKey(issue, word)
    case 'invalid_type':
      return issue.input === undefined ? missing : `must be ${named[issue.expected] ?? `of type ${issue.expected}`}`
    case 'invalid_value':
      return issue.input === undefined ? missing : `must be ${oneOf(issue.values)}`
    case 'too_big':
      return `must ${size(issue.origin, issue.maximum, issue.exact ? 'exactly' : 'at most')}`
    case 'too_small':
      return `must ${size(issue.origin, issue.minimum, issue.exact ? 'exactly' : 'at least')}`
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'invalid_format':
      return `must be ${formats[issue.format] ?? 'of the documented form'}`
    case 'invalid_key':
      return 'has a key that is not allowed'
    case 'invalid_union':
      return issue.input === undefined ? missing : ''
    default:
      return 'is not valid'
  }
}

function unknownKey(issue: RawIssue, word: string): string {
  const key = String((issue as { keys?: unknown[] }).keys?.[0]).slice(0, 128)
  const known = issue.inst instanceof z.ZodObject ? Object.keys(issue.inst.shape) : []
  const close = nearest(key, known)
  if (close !== undefined) return `Unknown ${word} ${JSON.stringify(key)}. Did you mean ${JSON.stringify(close)}?`
  const list = known.length === 0 ? `No ${word}s are allowed here` : `The allowed ${word}s are ${known.slice(0, 30).join(', ')}`
  return `Unknown ${word} ${JSON.stringify(key)}. ${list}.`
}

function size(origin: string, bound: number | bigint, how: string): string {
  if (origin === 'string') return `have ${how} ${bound} character${bound === 1 ? '' : 's'}`
  if (origin === 'array' || origin === 'set') return `have ${how} ${bound} entr${bound === 1 ? 'y' : 'ies'}`
  if (origin === 'object' || origin === 'record' || origin === 'map') return `have ${how} ${bound} field${bound === 1 ? '' : 's'}`
  return `be ${how} ${bound}`
}

function oneOf(values: readonly unknown[]): string {
  const shown = values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
  return shown.length === 1 ? shown[0]! : `one of ${shown.join(', ')}`
}

function sentence(subject: string, message: string): string {
  if (/^[A-Z]/.test(message)) return message
  return `${subject} ${message}${/[.?!]$/.test(message) ? '' : '.'}`
}

const named: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
  undefined: 'left out',
  never: 'left out',
}

const formats: Record<string, string> = {
  email: 'an e-mail address',
  url: 'a URL',
  datetime: 'an ISO 8601 time such as 2026-11-20T10:05:00Z',
  date: 'a date such as 2026-11-20',
  base64: 'base64',
  uuid: 'a UUID',
  ipv4: 'an IPv4 address',
  ipv6: 'an IPv6 address',
  e164: 'a phone number such as +15550001111',
  safeint: 'a whole number',
}
