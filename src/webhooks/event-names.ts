import { Fault, invalid } from '../core/fault.ts'
import { nearest } from '../core/text.ts'
import { type Caller, may, type Scope } from '../core/scopes.ts'
import type { EventTypes } from '../events/catalogue.ts'

/** The event names of webhooks, and the scopes they require. */
export class EventNames {
  readonly #types: EventTypes

  constructor(types: EventTypes) {
    this.#types = types
  }

  /** Throws Fault invalid_request with the list for an unknown name, and forbidden without its scope. */
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

  /** True if a caller with these scopes may read every event of a webhook with those: required to change it. */
  requireAll(caller: Pick<Caller, 'scopes'>, names: readonly string[], held: ReadonlySet<Scope>): void {
    for (const [name, scopes] of this.#types.published()) {
      const typesOf = (names.includes('*') && may({ scopes: held }, scopes)) || names.includes(name)
      if (typesOf && !may(caller, scopes)) throw lacks(name, scopes)
    }
  }

  /** The event types that match these names, with the scopes the webhook was created with. */
  typesOf(names: readonly string[], held: ReadonlySet<Scope>): Set<string> {
    const visible = this.#types.visibleTo({ scopes: held })
    return new Set(names.includes('*') ? visible : visible.filter((name) => names.includes(name)))
  }
}

function lacks(name: string, scopes: readonly Scope[]): Fault {
  return new Fault('forbidden', `A webhook for ${name} requires a key with the scope ${scopes.join(' or ')}.`, {
    code: 'missing_scope',
    param: 'events',
  })
}
