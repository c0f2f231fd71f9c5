import { invalid } from '../core/fault.ts'
import { expression, like } from './pattern.ts'

type Row = Record<string, unknown>

/** Whether a value passes; null is SQL's unknown, which `not` leaves unknown. */
type Test = (value: unknown) => boolean | null

/** What a Supabase client wrote as `filter`: conditions on columns, all of which must hold. */
export interface Filter {
  columns: string[]
  /** The one identity it asks for, if it does. */
  identity_id: string | undefined
  passes(row: Row): boolean
}

/** Longest filter that is read. */
const longest = 2000

/** Reads `column=operator.value`, commas meaning AND. Throws Fault invalid_request, `param: filter`, for what cannot be read. */
export function readFilter(text: string): Filter {
  if (text.length > longest) throw wrong(`is longer than ${longest} characters`)
  const conditions = split(text).map((condition) => readCondition(condition))
  return {
    columns: conditions.map(({ column }) => column),
    identity_id: conditions.find(({ column, equals }) => column === 'identity_id' && equals !== undefined)?.equals,
    passes: (row) =>
      conditions.every(({ column, test }) => test(Object.hasOwn(row, column) ? (row[column] ?? null) : null) === true),
  }
}

function readCondition(text: string): { column: string; equals: string | undefined; test: Test } {
  const [, column, not, operator, value] = /^\s*([\w-]+)=(not\.)?([a-z]+)\.([^]*)$/.exec(text) ?? []
  if (column === undefined || operator === undefined)
    throw wrong(`${JSON.stringify(text.slice(0, 100))} is not column=operator.value`)
  const make = Object.hasOwn(operators, operator) ? operators[operator] : undefined
  if (!make) throw wrong(`has no operator ${operator}; there are ${Object.keys(operators).join(', ')}`)
  const test = make(value ?? '')
  if (!test) throw wrong(`cannot read ${JSON.stringify((value ?? '').slice(0, 100))} after ${operator}`)
  if (!not) return { column, equals: operator === 'eq' ? unquoted(value ?? '') : undefined, test }
  return {
    column,
    equals: undefined,
    test: (given) => {
      const passed = test(given)
      return passed === null ? null : !passed
    },
  }
}

/** Each operator of the protocol, made into a test; undefined for a value it cannot take. */
const operators: Readonly<Record<string, (value: string) => Test | undefined>> = {
  eq: (value) => comparing(value, (order) => order === 0),
  neq: (value) => comparing(value, (order) => order !== 0),
  lt: (value) => comparing(value, (order) => order < 0),
  lte: (value) => comparing(value, (order) => order <= 0),
  gt: (value) => comparing(value, (order) => order > 0),
  gte: (value) => comparing(value, (order) => order >= 0),
  in: (value) => {
    const listed = /^\(([^]*)\)$/.exec(value)?.[1]
    if (listed === undefined) return undefined
    const wanted = split(listed).map(unquoted)
    return (given) => (given === null ? null : wanted.some((one) => compare(given, one) === 0))
  },
  is: (value) => {
    const word = value.toLowerCase()
    if (word === 'null' || word === 'unknown') return (given) => given === null
    if (word === 'true' || word === 'false') return (given) => given === (word === 'true')
    return undefined
  },
  isdistinct: (value) => {
    if (value.toLowerCase() === 'null') return (given) => given !== null
    return (given) => given === null || compare(given, unquoted(value)) !== 0
  },
  like: (value) => matching(like(unquoted(value), false)),
  ilike: (value) => matching(like(unquoted(value), true)),
  match: (value) => matching(expression(unquoted(value), false)),
  imatch: (value) => matching(expression(unquoted(value), true)),
}

function comparing(value: string, holds: (order: number) => boolean): Test {
  const wanted = unquoted(value)
  return (given) => (given === null ? null : holds(compare(given, wanted)))
}

function matching(pattern: ((text: string) => boolean) | undefined): Test | undefined {
  return pattern && ((given) => (given === null ? null : pattern(textOf(given))))
}

/** Below, at or above 0 as the value is before, at or after the written one; NaN, which fits nothing, where they do not compare. */
function compare(given: unknown, written: string): number {
  if (typeof given === 'number') return written.trim() === '' ? Number.NaN : given - Number(written)
  if (typeof given === 'boolean') {
    const wanted = { true: 1, t: 1, false: 0, f: 0 }[written.toLowerCase()]
    return wanted === undefined ? Number.NaN : Number(given) - wanted
  }
  const text = textOf(given)
  return text === written ? 0 : text < written ? -1 : 1
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** At commas that stand neither in quotes nor in parentheses. */
function split(text: string): string[] {
  const parts = ['']
  let depth = 0
  let quoted = false
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index]!
    if (character === '\\' && quoted) {
      parts[parts.length - 1] += character + (text[(index += 1)] ?? '')
      continue
    }
    if (character === '"') quoted = !quoted
    else if (!quoted && character === '(') depth += 1
    else if (!quoted && character === ')') depth -= 1
    if (character === ',' && depth === 0 && !quoted) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts
}

function unquoted(text: string): string {
  const inner = /^"([^]*)"$/.exec(text.trim())?.[1]
  return inner === undefined ? text : inner.replace(/\\([^])/g, '$1')
}

function wrong(what: string): Error {
  return invalid('filter', `The filter ${what}.`, 'bad_filter')
}
