import { argon2, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { Fault } from '../../core/fault.ts'
import { sameBytes } from '../../core/seal/seal.ts'

/** The cost of one guess: 19 MiB twice over (OWASP, argon2id). */
const usualCost = { memory: 19_456, passes: 2, parallelism: 1 }

const length = 32

/** Concurrent hashes: each takes 19 MiB and a thread of the pool that also runs fsync. */
const maxConcurrent = 2

/** The highest cost accepted from a stored hash, so that a hand-written one cannot exhaust memory. */
const ceiling = { memory: 1_048_576, passes: 64, parallelism: 16 }

export type PasswordCost = typeof usualCost

interface Kept {
  cost: PasswordCost
  nonce: Buffer
  tag: Buffer
}

const compute = promisify(argon2)

/** Passwords as argon2id hashes in PHC strings (RFC 9106), computed in the thread pool, few at a time. */
export class PasswordHashes {
  readonly #longestQueue: number
  readonly #cost: PasswordCost
  readonly #queue: (() => void)[] = []
  #busy = 0
  /** The hash compared for unknown logins, so that the time is the same. */
  readonly #dummyHash: string

  constructor({ longestQueue = 32, cost = usualCost }: { longestQueue?: number; cost?: PasswordCost | undefined } = {}) {
    this.#longestQueue = longestQueue
    this.#cost = cost
    this.#dummyHash = write({ cost, nonce: randomBytes(16), tag: randomBytes(length) })
  }

  /** Throws Fault rate_limited, code `busy`, when too many are waiting; so does `fits`. */
  async hash(password: string): Promise<string> {
    const nonce = randomBytes(16)
    return write({ cost: this.#cost, nonce, tag: await this.#tag(password, nonce, this.#cost) })
  }

  /** True if the password matches this hash; without a hash it is false after the same time. */
  async fits(password: string, kept: string | undefined): Promise<boolean> {
    const known = read(kept ?? this.#dummyHash)
    const tag = await this.#tag(password, known.nonce, known.cost)
    return sameBytes(tag, known.tag) && kept !== undefined
  }

  /** True if a hash was made with another cost than the current one. */
  isOutdated(kept: string): boolean {
    const { memory, passes, parallelism } = read(kept).cost
    return memory !== this.#cost.memory || passes !== this.#cost.passes || parallelism !== this.#cost.parallelism
  }

  async #tag(password: string, nonce: Buffer, { memory, passes, parallelism }: PasswordCost): Promise<Buffer> {
    await this.#turn()
    try {
      // keyboards may enter the same characters as different code points
      const message = Buffer.from(password.normalize('NFC'))
      return await compute('argon2id', { message, nonce, parallelism, tagLength: length, memory, passes })
    } finally {
      const next = this.#queue.shift()
      if (next) next()
      else this.#busy -= 1
    }
  }

  /** Waits for a slot; a finished hash passes its slot to the next in the queue. */
  async #turn(): Promise<void> {
    if (this.#busy < maxConcurrent) {
      this.#busy += 1
      return
    }
    if (this.#queue.length >= this.#longestQueue) {
      throw new Fault('rate_limited', 'Too many sign-ins are in progress. Try again shortly.', {
        code: 'busy',
        retryAfter: 2,
      })
    }
    await new Promise<void>((resolve) => this.#queue.push(resolve))
  }
}

function write({ cost: { memory, passes, parallelism }, nonce, tag }: Kept): string {
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(nonce)}$${base64(tag)}`
}

/** Throws when the text is no such hash, or its cost is too high. */
function read(text: string): Kept {
  const parts = /^\$argon2id\$v=19\$m=(\d{1,9}),t=(\d{1,3}),p=(\d{1,3})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(text)
  const [memory, passes, parallelism] = [Number(parts?.[1]), Number(parts?.[2]), Number(parts?.[3])]
  const nonce = Buffer.from(parts?.[4] ?? '', 'base64')
  const tag = Buffer.from(parts?.[5] ?? '', 'base64')
  const bearable = memory <= ceiling.memory && passes <= ceiling.passes && parallelism <= ceiling.parallelism
  if (!parts || !bearable || nonce.length < 8 || tag.length !== length)
    throw new Error('A stored password is not an argon2id hash')
  return { cost: { memory, passes, parallelism }, nonce, tag }
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
