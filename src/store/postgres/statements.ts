import { createHash } from 'node:crypto'
import { lruMap } from '../../core/memory.ts'
import { parameters, type Sql, type Value } from '../database.ts'
import { parameter } from './values.ts'

/** A statement as the driver takes it: prepared under its name once for each connection. */
export interface Statement {
  name: string
  text: string
  values: unknown[]
}

interface Numbered {
  name: string
  text: string
  writes: boolean
  /** True if it adds to the log of events. */
  appends: boolean
}

/** The statements of this process, by their text for both engines. */
const kept = lruMap<Numbered>(1000)

export function statement(query: Sql): Statement & Pick<Numbered, 'writes' | 'appends'> {
  return statementOf(query.sql, parameters(query))
}

export function statementOf(text: string, values: readonly Value[]): Statement & Pick<Numbered, 'writes' | 'appends'> {
  let numbered = kept.get(text)
  if (!numbered) kept.set(text, (numbered = number(text)))
  return { ...numbered, values: values.map(parameter) }
}

/** Numbers the parameters: `?` becomes `$1`, except in literals and quoted names. */
function number(text: string): Numbered {
  let count = 0
  let quote = ''
  const withNumbers = text.replaceAll(/['"?]/g, (sign) => {
    if (sign === '?') return quote === '' ? `$${(count += 1)}` : sign
    // a doubled quote ends the text and begins it again
    if (quote === '') quote = sign
    else if (quote === sign) quote = ''
    return sign
  })
  const name = createHash('sha256').update(text).digest('base64url').slice(0, 24)
  return { name, text: withNumbers, writes: !/^\s*SELECT\b/i.test(text), appends: /^\s*INSERT INTO events\b/.test(text) }
}
