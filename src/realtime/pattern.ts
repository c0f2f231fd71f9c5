import { RE2JS } from 're2js'

/** Characters of a value a pattern looks at: many may watch, and one event is looked at for each. */
const looked = 1000

/** A test for texts. */
export type Pattern = (text: string) => boolean

/** A regular expression, found anywhere; in time linear in the text whatever the pattern. Undefined for one that is none. */
export function expression(pattern: string, ignoreCase: boolean): Pattern | undefined {
  try {
    const compiled = RE2JS.compile(pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0)
    return (text) => compiled.matcher(text.slice(0, looked)).find()
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
