import type { Sql, Value } from './database.ts'

/** The parameters of a query. Throws for values that an engine would silently misread. */
export function parameters(query: Sql): Value[] {
  for (const value of query.values) {
    // SQLite would read an object in the first position as named parameters, and store NaN as NULL
    if (typeof value === 'object' ? value !== null && !(value instanceof Uint8Array) : Number.isNaN(value))
      throw new TypeError(`${String(value)} cannot be stored: only text, numbers, null and bytes can.`)
  }
  return query.values as Value[]
}
