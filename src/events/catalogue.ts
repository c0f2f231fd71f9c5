import { type Caller, may, type Scope } from '../core/scopes.ts'
import { join, sql, type Sql } from '../store/database.ts'
import type { EventType } from './model.ts'

/** The event types of all modules. */
export class EventTypes {
  readonly #types = new Map<string, EventType>()

  add(types: readonly EventType[]): void {
    for (const type of types) this.#types.set(type.name, type)
  }

  all(): EventType[] {
    return [...this.#types.values()]
  }

  /** The names of all types, with the scopes that see each. */
  published(): Map<string, Scope[]> {
    return new Map(this.all().map(({ name, scopes }) => [name, scopes]))
  }

  /** The names of the types that the caller's scopes can see. */
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
