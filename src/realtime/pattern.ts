import { RE2JS } from 're2js'

/** Characters of a value a pattern looks at: many may watch, and one event is looked at for each. */
const looked = 1000

/** Steps of the largest pattern. Matching takes time in proportion to steps × characters. */
export const mostSteps = 500

/** A test for texts. */
export interface Pattern {
  /** Instructions it was compiled to: what a character costs. */
  steps: number
  matches: (text: string) => boolean
}

/**
 * A regular expression, found anywhere; in time linear in the text whatever the pattern. Undefined for one that is none, or that is larger
 * than `mostSteps`: repetitions such as `(a?){1000}` make a short text a long program.
 */
export function expression(pattern: string, ignoreCase: boolean): Pattern | undefined {
  if (sizeOf(pattern) > mostSteps) return undefined
  try {
    const compiled = RE2JS.compile(pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
    const steps = compiled.programSize()
    if (steps > mostSteps) return undefined
    return { steps, matches: (text) => compiled.matcher(text.slice(0, looked)).find() }
  } catch {
    return undefined
  }
}

/** SQL's LIKE: `%` any text, `_` one character, `\` takes the next as it is; `*` is `%`, as PostgREST has it in addresses. */
export function like(pattern: string, ignoreCase: boolean): Pattern | undefined {
  const parts = pattern.matchAll(/\\([^])|([%*])|(_)|([^])/g)
  const source = [...parts].map(([, escaped, many, one, plain]) =>
    many ? '.*' : one ? '.' : RE2JS.quote(escaped ?? plain ?? ''),
  )
  return expression(`(?s)^${source.join('')}$`, ignoreCase)
}

/** How large a pattern becomes, at least nearly, told before it is compiled: compiling is what would take the time and the memory. */
function sizeOf(pattern: string): number {
  // between \Q and \E nothing is what it looks like
  if (pattern.includes('\\Q')) return Infinity
  const groups = [0]
  let last = 0
  for (const [token, most, more] of pattern.matchAll(tokens)) {
    if (token === '(') groups.push(0)
    else if (most !== undefined || more !== undefined) {
      const repeated = last * (Math.max(1, Number(more || most)) - 1)
      groups[groups.length - 1]! += repeated
      last += repeated
    } else {
      last = token === ')' && groups.length > 1 ? groups.pop()! : 1
      groups[groups.length - 1]! += last
    }
  }
  return groups.reduce((sum, size) => sum + size, 0)
}

/** An escape, a class, a repetition with its numbers, or one character. */
const tokens = /\\x\{[^}]*\}|\\[^]|\[\^?\]?(?:\\[^]|\[:\^?\w+:\]|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|[^]/g
