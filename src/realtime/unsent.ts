import { memoryPool } from '../core/memory-pool.ts'

/**
 * Bytes of frames that wait in memory for clients that do not read. Above `one`, of one account or, without a token, one network, its sockets with
 * the most are closed. Above `all` sockets are cut: those that are being closed first, then of the account with the most.
 */
const maxUnsent = { one: 32 * 1024 * 1024, all: 64 * 1024 * 1024 }

/** Bytes of all that are let be while other kinds of memory fill the process. */
const spared = 16 * 1024 * 1024

/** Bytes that a waiting frame takes besides its contents, about: many short ones take more than their contents. */
const frameOverhead = 1024

/** The socket that frames wait for. */
export interface UnsentClient {
  /** Bytes that wait, those that other sockets wait for too included. */
  readonly waiting: number
  /** Closes it because its client does not read. Calls `closing` of its frames. */
  tooSlow(): void
  cut(): void
}

/** Bytes of frames; the contents that several sockets wait for count once, as they are in memory once. */
class Memory {
  bytes = 0
  readonly #holders = new Map<Buffer, number>()

  add(frame: readonly Buffer[]): void {
    this.bytes += frameOverhead
    for (const part of frame) {
      const holders = this.#holders.get(part) ?? 0
      if (holders === 0) this.bytes += part.length
      this.#holders.set(part, holders + 1)
    }
  }

  remove(frame: readonly Buffer[]): void {
    this.bytes -= frameOverhead
    for (const part of frame) {
      const others = this.#holders.get(part)! - 1
      if (others > 0) this.#holders.set(part, others)
      else {
        this.#holders.delete(part)
        this.bytes -= part.length
      }
    }
  }
}

interface Owner {
  memory: Memory
  unsent: Set<UnsentFrames>
}

/** Limits the memory of frames until they are written to their connections. */
export class UnsentLimiter {
  readonly all = new Memory()
  readonly owners = new Map<string, Owner>()
  /** Of sockets that are being closed, in that order: they count for the whole box only. */
  readonly closing = new Set<UnsentFrames>()

  /** Closes sockets until both limits hold. */
  enforce({ memory, unsent }: Owner): void {
    if (memory.bytes > maxUnsent.one) {
      for (const { client } of byWaiting(unsent)) {
        client.tooSlow()
        if (memory.bytes <= maxUnsent.one) break
      }
    }
    while (this.all.bytes > maxUnsent.all || (memoryPool.isOver && this.all.bytes > spared)) this.#cutOne()
  }

  #cutOne(): void {
    let [one] = this.closing
    if (!one) {
      let [largest] = this.owners.values()
      for (const owner of this.owners.values()) if (owner.memory.bytes > largest!.memory.bytes) largest = owner
      one = byWaiting(largest!.unsent)[0]!
      one.client.tooSlow()
    }
    one.clear()
    one.client.cut()
  }
}

/** The frames of one socket that are not written yet, in their order. */
export class UnsentFrames {
  readonly client: UnsentClient
  readonly #limiter: UnsentLimiter
  readonly #ownerOf: () => string
  readonly #frames: (readonly Buffer[])[] = []
  /** The account or network it counts for while frames wait. */
  #owner: string | undefined
  #closing = false

  constructor(client: UnsentClient, limiter: UnsentLimiter, ownerOf: () => string) {
    this.client = client
    this.#limiter = limiter
    this.#ownerOf = ownerOf
  }

  /** Counts a frame that was given to the connection, which may close this socket or others. */
  add(frame: readonly Buffer[]): void {
    const { all, owners } = this.#limiter
    this.#owner ??= this.#ownerOf()
    const owner = owners.get(this.#owner) ?? { memory: new Memory(), unsent: new Set() }
    owners.set(this.#owner, owner)
    owner.unsent.add(this)
    this.#frames.push(frame)
    const before = owner.memory.bytes
    owner.memory.add(frame)
    memoryPool.add(this.#owner, owner.memory.bytes - before)
    all.add(frame)
    this.#limiter.enforce(owner)
  }

  /** The first frame was written. */
  sent(): void {
    const frame = this.#frames.shift()
    if (!frame) return
    this.#limiter.all.remove(frame)
    this.#release([frame])
    if (this.#frames.length === 0) this.#leave()
  }

  /** The socket is being closed: nothing is added any more. */
  closing(): void {
    if (this.#closing) return
    this.#closing = true
    if (this.#frames.length === 0) return
    this.#release(this.#frames)
    this.#leave()
    this.#limiter.closing.add(this)
  }

  /** The socket has closed: nothing waits any more. */
  clear(): void {
    for (const frame of this.#frames) this.#limiter.all.remove(frame)
    this.#release(this.#frames)
    this.#frames.length = 0
    this.#leave()
  }

  #release(frames: readonly (readonly Buffer[])[]): void {
    const owner = this.#owner === undefined ? undefined : this.#limiter.owners.get(this.#owner)
    if (this.#owner === undefined || !owner) return
    const before = owner.memory.bytes
    for (const frame of frames) owner.memory.remove(frame)
    memoryPool.add(this.#owner, owner.memory.bytes - before)
  }

  #leave(): void {
    this.#limiter.closing.delete(this)
    if (this.#owner === undefined) return
    const { unsent } = this.#limiter.owners.get(this.#owner)!
    unsent.delete(this)
    if (unsent.size === 0) this.#limiter.owners.delete(this.#owner)
    this.#owner = undefined
  }
}

function byWaiting(unsent: Iterable<UnsentFrames>): UnsentFrames[] {
  const known = Array.from(unsent, (one) => ({ one, waiting: one.client.waiting }))
  return known.toSorted((a, b) => b.waiting - a.waiting).map(({ one }) => one)
}
