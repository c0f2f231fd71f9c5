import type { Value } from '../database.ts'

/** Object ids of types: pg_type.dat of PostgreSQL. */
const types = { bool: 16, bytea: 17, int8: 20, json: 114, jsonb: 3802, text: 25, varchar: 1043, numeric: 1700 }

/** Begins an escape: a noncharacter of Unicode, that no text is meant to contain. */
const escape = '\uFDD0'

/** Reads values as they are in SQLite: numbers, 0 and 1 for conditions, bytes, JSON as text. Undefined where the driver's own parser does. */
export function parserOf(type: number): ((text: string) => unknown) | undefined {
  if (type === types.int8 || type === types.numeric) return Number
  if (type === types.bool) return (text) => (text === 't' ? 1 : 0)
  if (type === types.bytea) return bytes
  if (type === types.text || type === types.varchar || type === types.json || type === types.jsonb) return unescaped
  return undefined
}

/** The value as a parameter. PostgreSQL cannot store U+0000 in a text: it is escaped, without loss. */
export function parameter(value: Value): unknown {
  return typeof value === 'string' && /[\0\uFDD0]/.test(value) ? escaped(value) : value
}

export function escaped(text: string): string {
  return text.replaceAll(escape, `${escape}1`).replaceAll('\0', `${escape}0`)
}

function unescaped(text: string): string {
  return text.includes(escape) ? text.replaceAll(/\uFDD0([01])/g, (_all, which) => (which === '0' ? '\0' : escape)) : text
}

/** Of the hexadecimal form, `\x00ff`. */
function bytes(text: string): Uint8Array {
  const buffer = Buffer.from(text.slice(2), 'hex')
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength)
}
