import { Fault } from '../../core/fault.ts'
import type { Grant } from '../access.ts'
import { type Binding, releaseBindings } from './bindings.ts'
import type { Filters } from '../filters.ts'
import type { Frames } from '../frames.ts'
import type { Hub, Watcher } from '../hub.ts'
import { channelNames } from '../model.ts'
import type { Matcher, PatternQueue } from '../pattern-queue.ts'
import type { Reference } from './phoenix.ts'

interface Joined {
  topic: string
  joinRef: Reference
  token: string
  grant: Grant
  bindings: readonly Binding[]
}

interface Deps {
  hub: Hub
  filters: Filters
  patterns: PatternQueue
}

/** The connection to its client. */
interface Client {
  push: (ids: number[], row: Buffer) => void
  /** The channel cannot keep up and must be closed. */
  overrun: () => void
}

/** A joined topic: the rows it receives, and its token. */
export class SupabaseChannel implements Watcher, Matcher {
  readonly topic: string
  readonly joinRef: Reference
  readonly account_id: string
  readonly bindings: readonly Binding[]
  token: string
  grant: Grant
  readonly #deps: Deps
  readonly #client: Client
  /** The key or session that holds the filters of its bindings. */
  readonly #holder: Grant
  readonly #hasPatterns: boolean
  #over = false
  #stops: (() => void)[] = []

  /** Takes over the bindings, and releases their filters at its end. */
  constructor(deps: Deps, joined: Joined, client: Client) {
    this.topic = joined.topic
    this.joinRef = joined.joinRef
    this.token = joined.token
    this.grant = joined.grant
    this.account_id = joined.grant.account_id
    this.bindings = joined.bindings
    this.#holder = joined.grant
    this.#hasPatterns = joined.bindings.some(({ filter }) => (filter?.steps ?? 0) > 0)
    this.#deps = deps
    this.#client = client
    this.#watch()
  }

  /** Continues with a new token. Throws Fault forbidden when that does not grant a table that was requested by name. */
  renew(token: string, grant: Grant): void {
    const lost = this.bindings.flatMap(({ tables }) => tables).find((table) => !grant.channels.has(table))
    if (lost !== undefined) throw new Fault('forbidden', `The new token does not allow the table ${lost}.`)
    this.token = token
    this.grant = grant
    this.#unwatch()
    this.#watch()
  }

  /** Filters with patterns are evaluated later, in the order of events. */
  receive(frames: Frames): void {
    if (this.#hasPatterns) this.#deps.patterns.add(this, frames)
    else this.match(frames)
  }

  missed(): void {
    if (!this.#over) this.#client.overrun()
  }

  match(frames: Frames): void {
    if (this.#over) return
    const { type, identity_id } = frames.event
    // the token decides; filters only narrow it
    if (this.grant.identity_id !== null && this.grant.identity_id !== identity_id) return
    for (const table of channelNames) {
      if (!this.grant.channels.get(table)?.has(type)) continue
      const change = frames.change(table)
      const heard = this.bindings.filter(
        ({ tables, matches: hears, filter }) =>
          (tables.length === 0 || tables.includes(table)) && hears(change) && (!filter || frames.passes(table, filter)),
      )
      if (heard.length > 0)
        this.#client.push(
          heard.map(({ id }) => id),
          frames.row(table),
        )
    }
  }

  end(): void {
    if (this.#over) return
    this.#over = true
    this.#unwatch()
    releaseBindings(this.bindings, this.#holder, this.#deps.filters)
  }

  #unwatch(): void {
    for (const stop of this.#stops) stop()
  }

  #watch(): void {
    this.#stops = placesOf(this.grant, this.bindings).map((place) => this.#deps.hub.watch(place, this))
  }
}

/** The places to watch: the requested identities if the bindings name them, so that other events cost nothing. */
function placesOf(grant: Grant, bindings: readonly Binding[]): string[] {
  if (bindings.length === 0) return []
  const asked = bindings.map(({ filter }) => filter?.identity_id ?? grant.identity_id)
  return asked.includes(null) ? [grant.account_id] : [...new Set(asked.filter((id) => id !== null))]
}
