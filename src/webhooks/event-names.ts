import { Fault, invalid } from '../core/fault.ts'
import { nearest } from '../core/nearest.ts'
import { type Caller, may, type Scope } from '../core/scopes.ts'
import type { EventTypes } from '../events/catalogue.ts'

/** The names a webhook may ask for, and who may ask for them. */
export class EventNames {
  readonly #types: EventTypes

  constructor(types: EventTypes) {
    this.#types = types
  }

  /** Throws Fault invalid_request with the list for an unknown name, and forbidden for one whose scope the caller lacks. */
  require(caller: Pick<Caller, 'scopes'>, names: readonly string[]): void {
    const known = this.#types.published()
    for (const [index, name] of names.entries()) {
      if (name === '*') continue
      const scopes = known.get(name)
      if (!scopes) {
        const near = nearest(name, known.keys())
        const hint = near === undefined ? '' : ` Did you mean ${near}?`
        throw invalid(
          `events.${index}`,
          `There is no event ${name}.${hint} The events are ${[...known.keys()].join(', ')}, and *.`,
          'unknown_event',
        )
      }
      if (!may(caller, scopes)) throw lacks(name, scopes)
    }
  }

  /** Whether one who holds these scopes may read all that a webhook with those hears: what a caller needs to change it. */
  requireAll(caller: Pick<Caller, 'scopes'>, names: readonly string[], held: ReadonlySet<Scope>): void {
    for (const [name, scopes] of this.#types.published()) {
      const heard = (names.includes('*') && may({ scopes: held }, scopes)) || names.includes(name)
      if (heard && !may(caller, scopes)) throw lacks(name, scopes)
    }
  }

  /** The types of event that a webhook with these names, made with these scopes, hears. */
  heard(names: readonly string[], held: ReadonlySet<Scope>): Set<string> {
    const visible = this.#types.visibleTo({ scopes: held })
    return new Set(names.includes('*') ? visible : visible.filter((name) => names.includes(name)))
  }
}

function lacks(name: string, scopes: readonly Scope[]): Fault {
  return new Fault('forbidden', `A webhook that hears ${name} needs a key with the scope ${scopes.join(' or ')}.`, {
    code: 'missing_scope',
    param: 'events',
  })
}
