const mebibyte = 1024 * 1024

/**
 * Bytes at once: of all, of one account, of everybody without a key together, and those that an account has whatever others hold. All limits of the kinds
 * together would be three times as much, and the process beyond 600 MiB.
 */
const limits = { all: 112 * mebibyte, account: 64 * mebibyte, strangers: 24 * mebibyte, own: mebibyte }

/** The holder that all networks count for. */
const strangers = ''

/**
 * The memory that is held for others, of all kinds: bodies that arrive, answers and frames that are not read, messages on their way to slow servers. Each
 * kind has limits of its own besides. A holder is an account, or the network of those without a key.
 */
class MemoryPool {
  readonly #held = new Map<string, number>()
  #all = 0

  /** False if the holder must not hold so much more. */
  hasRoom(holder: string, bytes: number): boolean {
    const owner = ownerOf(holder)
    const held = (this.#held.get(owner) ?? 0) + bytes
    if (held > (owner === strangers ? limits.strangers : limits.account)) return false
    return this.#all + bytes <= limits.all || held <= limits.own
  }

  /** Bytes that all hold. */
  get bytes(): number {
    return this.#all
  }

  /** True if all hold too much. */
  get isOver(): boolean {
    return this.#all > limits.all
  }

  /** Counts bytes, or takes them back when they are negative. */
  add(holder: string, bytes: number): void {
    const owner = ownerOf(holder)
    this.#all += bytes
    const held = (this.#held.get(owner) ?? 0) + bytes
    if (held > 0) this.#held.set(owner, held)
    else this.#held.delete(owner)
  }
}

function ownerOf(holder: string): string {
  return holder.startsWith('acct_') ? holder : strangers
}

/** That of this process. */
export const memoryPool = new MemoryPool()
