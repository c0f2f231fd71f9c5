import { invalid } from '../core/fault.ts'
import { expression, like, maxSteps, maxWork, type Pattern } from './pattern.ts'

/** The result of a condition; null is SQL's unknown, which `not` keeps. */
type Test = (value: unknown) => boolean | null

/** A compiled condition, with the cost of its pattern for each character and to compile, or the number of values it compares. */
interface Made {
  test: Test
  steps: number
  work: number
  comparisons: number
}

interface Condition extends Made {
  column: string
  equals: string | undefined
}

/** The `filter` of a Supabase client: conditions on columns, all of which must hold. */
export interface Filter {
  /** The filter as received. */
  text: string
  columns: string[]
  /** The one identity it selects, if so. */
  identity_id: string | undefined
  /** The cost of its patterns for each character. */
  steps: number
  /** The number of values it compares. */
  comparisons: number
  passes(row: Record<string, unknown>): boolean
}

/** The longest accepted filter. */
const longest = 2000

/** Parses `column=operator.value`, commas meaning AND. Throws Fault invalid_request, `param: filter`, for an invalid one. */
export function readFilter(text: string): Filter {
  if (text.length > longest) throw wrong(`is longer than ${longest} characters`)
  const conditions: Condition[] = []
  let steps = 0
  let work = 0
  for (const condition of split(text)) {
    const read = readCondition(condition)
    steps += read.steps
    work += read.work
    // stops at the first that exceeds the limit, as each takes time to compile
    if (steps > maxSteps) throw wrong(`has patterns of over ${maxSteps} steps together`)
    if (work > maxWork) throw wrong(`has patterns with too many characters in their classes together (over ${maxWork})`)
    conditions.push(read)
  }
  return {
    text,
    columns: conditions.map(({ column }) => column),
    identity_id: conditions.find(({ column, equals }) => column === 'identity_id' && equals !== undefined)?.equals,
    steps,
    comparisons: conditions.reduce((sum, { comparisons }) => sum + comparisons, 0),
    passes: (row) =>
      conditions.every(({ column, test }) => test(Object.hasOwn(row, column) ? (row[column] ?? null) : null) === true),
  }
}

function readCondition(text: string): Condition {
  const [, column, not, operator, value] = /^\s*([\w-]+)=(not\.)?([a-z]+)\.([^]*)$/.exec(text) ?? []
  if (column === undefined || operator === undefined)
    throw wrong(`${JSON.stringify(text.slice(0, 100))} is not column=operator.value`)
  const make = Object.hasOwn(operators, operator) ? operators[operator] : undefined
  if (!make) throw wrong(`has no operator ${operator}; there are ${Object.keys(operators).join(', ')}`)
  const made = make(value ?? '')
  if (!made) {
    const given = JSON.stringify((value ?? '').slice(0, 100))
    throw wrong(
      `cannot read ${given} after ${operator}: it is not a valid value for it, or a pattern of over ${maxSteps} steps or with too many characters in its classes (over ${maxWork})`,
    )
  }
  const { test, ...cost } = typeof made === 'function' ? { test: made, steps: 0, work: 0, comparisons: 1 } : made
  if (!not) return { column, equals: operator === 'eq' ? unquoted(value ?? '') : undefined, test, ...cost }
  return {
    column,
    equals: undefined,
    ...cost,
    test: (given) => {
      const passed = test(given)
      return passed === null ? null : !passed
    },
  }
}

/** The operators of the protocol, as compilers of a value; undefined for an invalid value. */
const operators: Readonly<Record<string, (value: string) => Test | Made | undefined>> = {
  eq: (value) => comparing(value, (order) => order === 0),
  neq: (value) => comparing(value, (order) => order !== 0),
  lt: (value) => comparing(value, (order) => order < 0),
  lte: (value) => comparing(value, (order) => order <= 0),
  gt: (value) => comparing(value, (order) => order > 0),
  gte: (value) => comparing(value, (order) => order >= 0),
  in: (value) => {
    const listed = /^\(([^]*)\)$/.exec(value)?.[1]
    if (listed === undefined) return undefined
    const wanted = split(listed).map((item) => unquoted(item.trim()))
    const test: Test = (given) => (given === null ? null : wanted.some((one) => compare(given, one) === 0))
    return { test, steps: 0, work: 0, comparisons: wanted.length }
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

function matching(pattern: Pattern | undefined): Made | undefined {
  if (!pattern) return undefined
  const test: Test = (given) => (given === null ? null : pattern.matches(textOf(given)))
  return { test, steps: pattern.steps, work: pattern.work, comparisons: 1 }
}

/** Below, at or above 0 as the value sorts before, equal to or after the given one; NaN where they are not comparable. */
function compare(given: unknown, written: string): number {
  if (typeof given === 'number') return written.trim() === '' ? Number.NaN : given - Number(written)
  if (typeof given === 'boolean') {
    const wanted = { true: 1, t: 1, false: 0, f: 0 }[written.toLowerCase()]
    return wanted === undefined ? Number.NaN : Number(given) - wanted
  }
  const text = textOf(given)
  return text === written ? 0 : text < written ? -1 : 1
}

/** Caches the JSON of objects, as one event may be large and matched many times. */
const texts = new WeakMap<object, string>()

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const known = texts.get(value) ?? JSON.stringify(value)
  texts.set(value, known)
  return known
}

/** Splits at commas outside of quotes and parentheses. */
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
