import { Fault } from './fault.ts'

/** Limits of a JSON text. Tokens are `{`, `[`, `,` and `:` outside of strings: about one for each value and each name. */
export interface JsonBounds {
  depth: number
  tokens: number
  /** Bytes of a key as it is written; 1,024 by default. */
  key?: number
}

/** The default limits. A message to 100 recipients with 100 attachments has some 1,500 tokens. */
export const usualBounds: JsonBounds = { depth: 32, tokens: 10_000 }

/** Bytes of a key: error messages repeat it. */
const longestKey = 1024

/** Bytes outside of strings allowed for each allowed token. */
const padding = 100

/** Escapes in all strings: enough for 10 MiB of text in any script with everything but ASCII escaped. */
const maxEscapes = 6 * 1024 * 1024

const quote = 0x22
const backslash = 0x5c

/** Bytes of a string that are read one by one before its end or the next escape is searched for. */
const near = 256

/**
 * Counts depth, tokens, escapes and bytes outside of strings of a JSON text in UTF-8 (RFC 8259) while it arrives, and refuses a text that
 * exceeds a limit before it is parsed: `JSON.parse` takes 100 bytes of memory and a microsecond for a token, 20 nanoseconds for an escape, and
 * next to nothing for the other bytes of a string. Takes linear time and keeps only the ends of strings; 40 MiB of base64 take 4 ms. Invalid
 * JSON is left to the parser, which stops at the first wrong token.
 */
export class JsonScan {
  readonly #what: string
  readonly #bounds: JsonBounds
  /** For each open object or list, whether it is an object. */
  readonly #open: boolean[] = []
  /** The next string is a key. */
  #keyNext = false
  /** Bytes of the current key so far; null outside of a key. */
  #key: number | null = null
  #tokens = 0
  /** Bytes outside of strings. */
  #outsideBytes = 0
  #escapes = 0
  readonly #ends: number[] = []
  /** Bytes of the chunks before the current one. */
  #before = 0
  #inString = false
  /** The previous byte was a backslash that escapes the next. */
  #escaping = false

  /** `what` is the subject of error messages: `The body`. */
  constructor(what: string, bounds: JsonBounds = usualBounds) {
    this.#what = what
    this.#bounds = bounds
  }

  /** The end offsets of strings, after the closing quote. */
  get ends(): readonly number[] {
    return this.#ends
  }

  /** True if any string has an escape. */
  get escaped(): boolean {
    return this.#escapes > 0
  }

  /** True if the text so far ends inside a string. */
  get isInString(): boolean {
    return this.#inString
  }

  /**
   * Scans the next bytes. Throws Fault invalid_request, code `too_deep`, `too_many_tokens`, `too_long_key`,
   * `too_much_padding` or `too_many_escapes`.
   */
  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) at = this.#inString ? this.#string(bytes, at) : this.#outside(bytes, at)
    this.#before += bytes.length
  }

  /** Returns the offset where it stopped: after the quote that begins a string, or at the end. */
  #outside(bytes: Uint8Array, start: number): number {
    const { tokens: max } = this.#bounds
    let tokens = this.#tokens
    let at = start
    while (at < bytes.length && !this.#inString) {
      switch (bytes[at++]) {
        case quote:
          this.#inString = true
          this.#key = this.#keyNext ? 0 : null
          this.#keyNext = false
          break
        case 0x2c: // ,
          tokens += 1
          this.#keyNext = this.#open.at(-1) === true
          break
        case 0x3a: // :
          tokens += 1
          break
        case 0x5b: // [
          tokens += 1
          this.#enter(false)
          break
        case 0x7b: // {
          tokens += 1
          this.#enter(true)
          break
        case 0x5d: // ]
        case 0x7d: // }
          this.#open.pop()
          this.#keyNext = false
          break
      }
      if (tokens > max) throw this.#tooMany()
    }
    this.#tokens = tokens
    this.#outsideBytes += at - start
    if (this.#outsideBytes > max * padding) throw this.#tooSparse()
    return at
  }

  #enter(isObject: boolean): void {
    this.#open.push(isObject)
    this.#keyNext = isObject
    if (this.#open.length > this.#bounds.depth) throw this.#tooDeep()
  }

  /** Returns the offset where it stopped: after the quote that ends the string, or at the end of the bytes. */
  #string(bytes: Uint8Array, start: number): number {
    let escaping = this.#escaping
    let escapes = this.#escapes
    let at = start
    let end = start - 1
    let ended = false
    while (at < bytes.length && !ended) {
      for (const stop = Math.min(bytes.length, at + near); at < stop; at += 1) {
        const byte = bytes[at]
        if (escaping) escaping = false
        else if (byte === backslash) {
          escaping = true
          escapes += 1
        } else if (byte === quote) {
          ended = true
          at += 1
          break
        }
      }
      if (escapes > maxEscapes) throw this.#tooManyEscapes()
      if (escaping || ended) continue
      if (end < at) end = bytes.indexOf(quote, at)
      if (end === -1) end = bytes.length
      const escape = bytes.subarray(at, end).indexOf(backslash)
      at = escape === -1 ? end : at + escape
    }
    this.#escapes = escapes
    this.#inString = !ended
    this.#escaping = escaping
    if (this.#key !== null) this.#addToKey(at - start)
    // with more ends than tokens it is not JSON: nothing separates two strings
    if (ended && this.#ends.length <= this.#bounds.tokens) this.#ends.push(this.#before + at)
    return at
  }

  #addToKey(bytes: number): void {
    const { key: max = longestKey } = this.#bounds
    this.#key! += bytes
    // the closing quote is counted too
    if (this.#key! > max + 1) throw this.#tooLongKey(max)
  }

  #tooLongKey(max: number): Fault {
    return new Fault(
      'invalid_request',
      `${this.#what} has a key of more than ${max} bytes, not counting quotes. Send long text as a value.`,
      { code: 'too_long_key' },
    )
  }

  #tooDeep(): Fault {
    return new Fault(
      'invalid_request',
      `${this.#what} is nested deeper than ${this.#bounds.depth} levels. Flatten it, or send the inner part as a string.`,
      { code: 'too_deep' },
    )
  }

  #tooMany(): Fault {
    return new Fault(
      'invalid_request',
      `${this.#what} has more than ${this.#bounds.tokens} tokens ({ [ , and : outside of strings). Send less at a time, or send parts of it as strings.`,
      { code: 'too_many_tokens' },
    )
  }

  #tooSparse(): Fault {
    const max = this.#bounds.tokens * padding
    return new Fault(
      'invalid_request',
      `${this.#what} has more than ${max} bytes outside of strings, in white space and digits. Send it without indentation.`,
      { code: 'too_much_padding' },
    )
  }

  #tooManyEscapes(): Fault {
    return new Fault(
      'invalid_request',
      `${this.#what} has more than ${maxEscapes} escapes (\\n, \\u20ac and the like) in its strings. Send less at a time, in plain UTF-8.`,
      { code: 'too_many_escapes' },
    )
  }
}

/** Parses JSON from an untrusted source. Throws Fault as JsonScan does, before parsing, and SyntaxError for invalid JSON. */
export function parseForeign(text: string, what: string, bounds: JsonBounds = usualBounds): unknown {
  new JsonScan(what, bounds).add(Buffer.from(text))
  return JSON.parse(text)
}

/** RFC 7396: objects merge, null removes, anything else replaces. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = mergePatch(result[key], value)
  }
  return result
}

/** True for an object that is no list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The characters of all texts in a JSON value, its keys included. */
export function textLength(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + textLength(one), 0)
  return Object.entries(value).reduce((sum, [key, one]) => sum + key.length + textLength(one), 0)
}

/** The values in a JSON value, those of lists and objects included. */
export function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce<number>((sum, one) => sum + valuesIn(one), 1)
}
