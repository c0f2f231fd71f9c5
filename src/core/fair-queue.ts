/**
 * What waits for something that is shared, by account: accounts take turns, and what waits for one account keeps its order. However much one
 * account has waiting, another's first item is next but one. The box's own work counts as the account ''.
 */
export class FairQueue<Item> {
  /** By account, the one whose turn is next first. None is empty. */
  readonly #lines = new Map<string, Item[]>()
  #size = 0

  /** Items that wait. */
  get size(): number {
    return this.#size
  }

  /** Items of one account that wait. */
  sizeOf(account: string): number {
    return this.#lines.get(account)?.length ?? 0
  }

  push(account: string, item: Item): void {
    const line = this.#lines.get(account)
    if (line) line.push(item)
    else this.#lines.set(account, [item])
    this.#size += 1
  }

  /** Puts an item before those of its account; the account keeps its turn. */
  unshift(account: string, item: Item): void {
    const line = this.#lines.get(account)
    if (line) line.unshift(item)
    else this.#lines.set(account, [item])
    this.#size += 1
  }

  /** The next item, left where it is; accounts for which, with their first item, `may` is false keep their turn, and are passed over. */
  peek(may: (account: string, first: Item) => boolean = always): Item | undefined {
    const account = this.#next(may)
    return account === undefined ? undefined : this.#lines.get(account)![0]
  }

  /** Takes the next item, of the same account as `peek`: it is then the turn of the others. */
  shift(may: (account: string, first: Item) => boolean = always): Item | undefined {
    const account = this.#next(may)
    if (account === undefined) return undefined
    const line = this.#lines.get(account)!
    const item = line.shift()
    this.#lines.delete(account)
    if (line.length > 0) this.#lines.set(account, line)
    this.#size -= 1
    return item
  }

  /** Takes an item out of the middle. Answers whether it was there. */
  remove(account: string, item: Item): boolean {
    const line = this.#lines.get(account)
    const place = line?.indexOf(item) ?? -1
    if (!line || place === -1) return false
    line.splice(place, 1)
    if (line.length === 0) this.#lines.delete(account)
    this.#size -= 1
    return true
  }

  /** Takes all that waits. */
  clear(): Item[] {
    const items = [...this.#lines.values()].flat()
    this.#lines.clear()
    this.#size = 0
    return items
  }

  #next(may: (account: string, first: Item) => boolean): string | undefined {
    for (const [account, line] of this.#lines) if (may(account, line[0]!)) return account
    return undefined
  }
}

function always(): boolean {
  return true
}
