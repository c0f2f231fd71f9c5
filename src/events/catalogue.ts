import { may } from '../core/scopes.ts'
import type { Caller } from '../core/scopes.ts'
import { join, sql } from '../store/database.ts'
import type { Sql } from '../store/database.ts'
import type { EventType } from './model.ts'

/** Every event type of the box, gathered from its parts. */
export class EventTypes {
  readonly #types = new Map<string, EventType>()

  add(types: readonly EventType[]): void {
    for (const type of types) this.#types.set(type.name, type)
  }

  all(): EventType[] {
    return [...this.#types.values()]
  }

  /** The names of the types this caller's scopes let it see. */
  visibleTo(caller: Pick<Caller, 'scopes'>): string[] {
    return this.all()
      .filter((type) => may(caller, type.scopes))
      .map((type) => type.name)
  }
}

/** The condition that selects events of these types; nothing when there are none. */
export function ofTypes(names: readonly string[]): Sql {
  return names.length === 0 ? sql`0 = 1` : sql`type IN (${join([...names])})`
}
