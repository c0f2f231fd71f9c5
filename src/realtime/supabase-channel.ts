import { Fault } from '../core/fault.ts'
import type { Grant } from './access.ts'
import type { Binding } from './bindings.ts'
import type { Frames } from './frames.ts'
import type { Hub, Watcher } from './hub.ts'
import { channelNames } from './model.ts'
import type { Reference } from './phoenix.ts'

interface Joined {
  topic: string
  joinRef: Reference
  token: string
  grant: Grant
  bindings: readonly Binding[]
}

/** A topic somebody joined: which rows it hears, and under which token. */
export class SupabaseChannel implements Watcher {
  readonly topic: string
  readonly joinRef: Reference
  readonly account_id: string
  readonly bindings: readonly Binding[]
  token: string
  grant: Grant
  readonly #hub: Hub
  readonly #push: (ids: number[], row: string) => void
  #stops: (() => void)[] = []

  constructor(hub: Hub, joined: Joined, push: (ids: number[], row: string) => void) {
    this.topic = joined.topic
    this.joinRef = joined.joinRef
    this.token = joined.token
    this.grant = joined.grant
    this.account_id = joined.grant.account_id
    this.bindings = joined.bindings
    this.#hub = hub
    this.#push = push
    this.#watch()
  }

  /** Goes on under a fresh token. Throws Fault forbidden when that does not open a table that was asked for by name. */
  renew(token: string, grant: Grant): void {
    const lost = this.bindings.flatMap(({ tables }) => tables).find((table) => !grant.channels.has(table))
    if (lost !== undefined) throw new Fault('forbidden', `The fresh token does not open the table ${lost}.`)
    this.token = token
    this.grant = grant
    this.end()
    this.#watch()
  }

  hear(frames: Frames): void {
    const { type, identity_id } = frames.event
    // the token is what counts; filters only narrow it
    if (this.grant.identity_id !== null && this.grant.identity_id !== identity_id) return
    for (const table of channelNames) {
      if (!this.grant.channels.get(table)?.has(type)) continue
      const change = frames.change(table)
      const heard = this.bindings.filter(
        ({ tables, hears, filter }) =>
          (tables.length === 0 || tables.includes(table)) && hears(change) && (!filter || filter.passes(frames.record(table))),
      )
      if (heard.length > 0)
        this.#push(
          heard.map(({ id }) => id),
          frames.row(table),
        )
    }
  }

  end(): void {
    for (const stop of this.#stops) stop()
  }

  #watch(): void {
    this.#stops = placesOf(this.grant, this.bindings).map((place) => this.#hub.watch(place, this))
  }
}

/** Where to listen: at the identities that are asked for, if nothing else is; so others' events cost nothing. */
function placesOf(grant: Grant, bindings: readonly Binding[]): string[] {
  if (bindings.length === 0) return []
  const asked = bindings.map(({ filter }) => filter?.identity_id ?? grant.identity_id)
  return asked.includes(null) ? [grant.account_id] : [...new Set(asked.filter((id) => id !== null))]
}
