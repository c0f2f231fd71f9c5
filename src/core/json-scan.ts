import { Fault } from './fault.ts'

/** What JSON may cost its reader. Tokens are `{`, `[`, `,` and `:` outside of strings: about one for each value and each name. */
export interface JsonBounds {
  depth: number
  tokens: number
  /** Octets of a key as it is written; 1,024 unless said. */
  key?: number
}

/** Far above what honest callers send: a message to 100 recipients with 100 attachments has some 1,500 tokens. */
export const usualBounds: JsonBounds = { depth: 32, tokens: 10_000 }

/** Octets of a key: a name is short, and is repeated where something is wrong with what it names. */
const longestKey = 1024

/** Octets outside of strings, for each token there may be. */
const padding = 100

/** Escapes in all strings: 10 MiB of text in any script has no more, also where everything but ASCII is escaped. */
const maxEscapes = 6 * 1024 * 1024

const quote = 0x22
const backslash = 0x5c

/** Octets of a string that are looked at one by one before the end of it or the next escape is searched for. */
const near = 256

/**
 * Counts depth, tokens, escapes and what else stands outside of strings of a JSON text in UTF-8 (RFC 8259) while it arrives, and refuses it
 * before anything is built of it: `JSON.parse` takes 100 octets of memory and a microsecond for a token, 20 nanoseconds for an escape, and next
 * to nothing for the other octets of a string. Linear, keeps only where strings end; 40 MiB of base64 take 4 ms. What is no JSON at all is for the parser to
 * say, which stops at the first wrong token.
 */
export class JsonScan {
  readonly #what: string
  readonly #bounds: JsonBounds
  /** For each object or list that is open, whether it is an object. */
  readonly #open: boolean[] = []
  /** The next string is a key. */
  #keyNext = false
  /** Octets of the key that it is in; null elsewhere. */
  #key: number | null = null
  #tokens = 0
  /** Octets outside of strings. */
  #bare = 0
  #escapes = 0
  readonly #ends: number[] = []
  /** Octets before those that are looked at. */
  #before = 0
  #inString = false
  /** The octet before was a backslash that escapes the next. */
  #escaping = false

  /** `what` begins the message of the refusal: `The body`. */
  constructor(what: string, bounds: JsonBounds = usualBounds) {
    this.#what = what
    this.#bounds = bounds
  }

  /** Where the strings end, each behind its quote. */
  get ends(): readonly number[] {
    return this.#ends
  }

  /** Whether any string has an escape. */
  get escaped(): boolean {
    return this.#escapes > 0
  }

  /** Whether a string has begun that has not ended. */
  get isInString(): boolean {
    return this.#inString
  }

  /** Takes the next octets. Throws Fault invalid_request, code `too_deep`, `too_many_tokens`, `too_long_key`, `too_much_padding` or `too_many_escapes`. */
  add(octets: Uint8Array): void {
    for (let at = 0; at < octets.length;) at = this.#inString ? this.#string(octets, at) : this.#outside(octets, at)
    this.#before += octets.length
  }

  /** Answers where it stopped: behind the quote that begins a string, or at the end. */
  #outside(octets: Uint8Array, start: number): number {
    const { tokens: most } = this.#bounds
    let tokens = this.#tokens
    let at = start
    while (at < octets.length && !this.#inString) {
      switch (octets[at++]) {
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
      if (tokens > most) throw this.#tooMany()
    }
    this.#tokens = tokens
    this.#bare += at - start
    if (this.#bare > most * padding) throw this.#tooSparse()
    return at
  }

  #enter(isObject: boolean): void {
    this.#open.push(isObject)
    this.#keyNext = isObject
    if (this.#open.length > this.#bounds.depth) throw this.#tooDeep()
  }

  /** Answers where it stopped: behind the quote that ends the string, or somewhere in it. */
  #string(octets: Uint8Array, start: number): number {
    let escaping = this.#escaping
    let escapes = this.#escapes
    let at = start
    let end = start - 1
    let ended = false
    while (at < octets.length && !ended) {
      for (const stop = Math.min(octets.length, at + near); at < stop; at += 1) {
        const octet = octets[at]
        if (escaping) escaping = false
        else if (octet === backslash) {
          escaping = true
          escapes += 1
        } else if (octet === quote) {
          ended = true
          at += 1
          break
        }
      }
      if (escapes > maxEscapes) throw this.#tooManyEscapes()
      if (escaping || ended) continue
      if (end < at) end = octets.indexOf(quote, at)
      if (end === -1) end = octets.length
      const escape = octets.subarray(at, end).indexOf(backslash)
      at = escape === -1 ? end : at + escape
    }
    this.#escapes = escapes
    this.#inString = !ended
    this.#escaping = escaping
    if (this.#key !== null) this.#keyGrows(at - start)
    // with more it is no JSON: something stands between two strings
    if (ended && this.#ends.length <= this.#bounds.tokens) this.#ends.push(this.#before + at)
    return at
  }

  #keyGrows(octets: number): void {
    const { key: most = longestKey } = this.#bounds
    this.#key! += octets
    // one of them is the quote that ends it
    if (this.#key! > most + 1) throw this.#tooLongKey(most)
  }

  #tooLongKey(most: number): Fault {
    return new Fault(
      'invalid_request',
      `${this.#what} has a key of more than ${most} octets, the quotes not counted. Send what is so long as a value.`,
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
    const most = this.#bounds.tokens * padding
    return new Fault(
      'invalid_request',
      `${this.#what} has more than ${most} octets outside of strings, in white space and digits. Send it without indentation.`,
      { code: 'too_much_padding' },
    )
  }

  #tooManyEscapes(): Fault {
    return new Fault(
      'invalid_request',
      `${this.#what} has more than ${maxEscapes} escapes (\\n, \\u20ac and the like) in its strings. Send less at a time, in UTF-8 as it is.`,
      { code: 'too_many_escapes' },
    )
  }
}

/** JSON that somebody else wrote and that is here as a whole. Throws Fault as JsonScan does before it is parsed, SyntaxError when it is none. */
export function parseForeign(text: string, what: string, bounds: JsonBounds = usualBounds): unknown {
  new JsonScan(what, bounds).add(Buffer.from(text))
  return JSON.parse(text)
}
