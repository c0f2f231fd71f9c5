import { PacedWork } from '../core/work/paced-work.ts'
import type { Event } from '../events/model.ts'
import { briefOf, type MessageBrief, type MessageFilter } from './message-filter.ts'

/** Filters compared with a message at a time: about a millisecond for the longest. */
const filtersAtOnce = 25

/** A call that waits for new messages of an identity. */
export interface Listener {
  readonly filter: MessageFilter
  /** A message that the filter selects. */
  onMessage(message: MessageBrief): void
  /** The identity was deleted. */
  onDeleted(): void
  onStopped(accountId: string): void
}

/**
 * Notifies waiting calls of new messages, in the order of the log: of each, all calls that waited when it arrived. Equal filters are compared
 * once, and filters of all accounts in turn, beside other work. No message is held, only what filters look at.
 */
export class Listeners {
  readonly #paced = new PacedWork()
  /** By identity and the text of the filter. No set is empty. */
  readonly #identities = new Map<string, Map<string, Set<Listener>>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Returns a function that removes it. */
  add(identityId: string, listener: Listener): () => void {
    const { text } = listener.filter
    const alike = this.#identities.get(identityId) ?? new Map<string, Set<Listener>>()
    const listeners = alike.get(text) ?? new Set()
    this.#identities.set(identityId, alike.set(text, listeners.add(listener)))
    this.#size += 1
    return () => {
      listeners.delete(listener)
      this.#size -= 1
      if (listeners.size > 0) return
      alike.delete(text)
      if (alike.size === 0) this.#identities.delete(identityId)
    }
  }

  /** True if calls wait for messages of this identity. */
  has(identityId: string | null): boolean {
    return this.#identities.has(identityId ?? '')
  }

  /** Compares a message with the filters of those who listen now. */
  tell(event: Event): void {
    const message = briefOf(event)
    const alike = this.#identities.get(event.identity_id ?? '')
    if (!message || !alike) return
    const all = Array.from(alike.values(), (listeners) => [...listeners])
    for (let at = 0; at < all.length; at += filtersAtOnce) {
      const some = all.slice(at, at + filtersAtOnce)
      // the account's queue keeps their order, and that of messages
      void this.#paced.run(event.account_id, () => tellSome(some, message))
    }
  }

  tellDeleted(identityId: string | null): void {
    for (const listeners of this.#identities.get(identityId ?? '')?.values() ?? []) for (const one of listeners) one.onDeleted()
  }

  tellStopped(accountId: string): void {
    for (const alike of this.#identities.values())
      for (const listeners of alike.values()) for (const one of listeners) one.onStopped(accountId)
  }
}

function tellSome(groups: readonly Listener[][], message: MessageBrief): void {
  for (const listeners of groups) {
    if (listeners[0]!.filter.matches(message)) for (const listener of listeners) listener.onMessage(message)
  }
}
