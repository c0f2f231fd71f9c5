import { type Clock, day } from '../core/clock.ts'
import { mac, sameBytes } from '../core/seal/seal.ts'

/** The local part before the token; no identity can have it. */
const prefix = 'bounce'

/** Days for which a bounce is accepted: a period of attempts, and time for a slow receiver. */
const lifetime = 30

/** Days of attempts with the same address: more than those of the whole schedule. */
const period = 7

/**
 * The envelope sender of each recipient's copy, `bounce+<token>@domain`: what comes back to it belongs to exactly that
 * recipient. The token is base 32 in lower case, as some servers fold local parts: 3 bytes of expiry (days), 6 of the recipient's row, 9 of MAC.
 */
export class ReturnPaths {
  readonly #key: Buffer
  readonly #clock: Clock

  constructor(key: Buffer, clock: Clock) {
    this.#key = key
    this.#clock = clock
  }

  /**
   * The address for one recipient's row, in the domain of the sender. `planned` is when the message was to leave first, in milliseconds since the
   * Unix epoch: the address is the same in all attempts of each seven days from then on, as greylisting and duplicate detection use it.
   */
  addressFor(recipientSeq: number, domain: string, planned: number): string {
    const age = Math.max(0, this.#clock.now() - planned)
    const begun = planned + Math.floor(age / (period * day)) * period * day
    const head = Buffer.alloc(9)
    head.writeUIntBE(Math.floor(begun / day) + lifetime, 0, 3)
    head.writeUIntBE(recipientSeq, 3, 6)
    return `${prefix}+${encode(Buffer.concat([head, this.#mac(head)]))}@${domain}`
  }

  /** The recipient's row that a token names; undefined when it is unknown or expired. */
  read(tag: string): number | undefined {
    const bytes = decode(tag)
    if (bytes?.length !== 18) return undefined
    const head = bytes.subarray(0, 9)
    if (!sameBytes(bytes.subarray(9), this.#mac(head))) return undefined
    if (head.readUIntBE(0, 3) < Math.floor(this.#clock.now() / day)) return undefined
    return head.readUIntBE(3, 6)
  }

  #mac(head: Buffer): Buffer {
    return mac(this.#key, head.toString('hex')).subarray(0, 9)
  }
}

/** True if a local part is that of our return paths. */
export function isReturnPath(local: string): boolean {
  return local === prefix
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567'

function encode(bytes: Uint8Array): string {
  let bits = 0n
  for (const byte of bytes) bits = (bits << 8n) | BigInt(byte)
  const length = Math.ceil((bytes.length * 8) / 5)
  bits <<= BigInt(length * 5 - bytes.length * 8)
  return Array.from({ length }, (_, index) => alphabet[Number((bits >> BigInt((length - 1 - index) * 5)) & 31n)]).join('')
}

function decode(text: string): Buffer | undefined {
  if (text.length !== 29 || !/^[a-z2-7]+$/.test(text)) return undefined
  let bits = 0n
  for (const character of text) bits = (bits << 5n) | BigInt(alphabet.indexOf(character))
  // 29 characters are 145 bits: one more than 18 bytes
  if (bits & 1n) return undefined
  return Buffer.from((bits >> 1n).toString(16).padStart(36, '0'), 'hex')
}
