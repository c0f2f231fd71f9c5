/**
 * A round-robin queue over accounts: accounts take turns, and the items of one account keep their order. However many items one account has
 * queued, the first item of another account waits for one of them at most. Work of the box itself belongs to the account ''.
 */
export class FairQueue<Item> {
  /** Items by account, in the order of turns. No list is empty. */
  readonly #lists = new Map<string, Item[]>()
  #size = 0

  /** Queued items. */
  get size(): number {
    return this.#size
  }

  /** Queued items of one account. */
  sizeOf(account: string): number {
    return this.#lists.get(account)?.length ?? 0
  }

  push(account: string, item: Item): void {
    const list = this.#lists.get(account)
    if (list) list.push(item)
    else this.#lists.set(account, [item])
    this.#size += 1
  }

  /** Puts an item before those of its account; the account keeps its turn. */
  unshift(account: string, item: Item): void {
    const list = this.#lists.get(account)
    if (list) list.unshift(item)
    else this.#lists.set(account, [item])
    this.#size += 1
  }

  /** The next item, without removing it. Accounts for whose first item `may` is false are skipped and keep their turn. */
  peek(may: (account: string, first: Item) => boolean = always): Item | undefined {
    const account = this.#next(may)
    return account === undefined ? undefined : this.#lists.get(account)![0]
  }

  /** Removes the next item, the one that `peek` returns; its account then goes last. */
  shift(may: (account: string, first: Item) => boolean = always): Item | undefined {
    const account = this.#next(may)
    if (account === undefined) return undefined
    const list = this.#lists.get(account)!
    const item = list.shift()
    this.#lists.delete(account)
    if (list.length > 0) this.#lists.set(account, list)
    this.#size -= 1
    return item
  }

  /** Removes an item wherever it is queued. Returns whether it was there. */
  remove(account: string, item: Item): boolean {
    const list = this.#lists.get(account)
    const index = list?.indexOf(item) ?? -1
    if (!list || index === -1) return false
    list.splice(index, 1)
    if (list.length === 0) this.#lists.delete(account)
    this.#size -= 1
    return true
  }

  /** Removes all items. */
  clear(): Item[] {
    const items = [...this.#lists.values()].flat()
    this.#lists.clear()
    this.#size = 0
    return items
  }

  #next(may: (account: string, first: Item) => boolean): string | undefined {
    for (const [account, list] of this.#lists) if (may(account, list[0]!)) return account
    return undefined
  }
}

function always(): boolean {
  return true
}
