import { Fault, invalid } from '../core/fault.ts'
import { nearest } from '../core/nearest.ts'
import { may } from '../core/scopes.ts'
import type { Caller, Scope } from '../core/scopes.ts'
import type { EventTypes } from '../events/catalogue.ts'

/** Names of the published catalogue that a box may not raise yet: a webhook that asks for one hears it from the day it does. */
const announced = `identity.created identity.updated identity.deleted
  email.received email.queued email.sent email.delivered email.deferred email.bounced email.complained email.failed email.cancelled
  sms.received sms.sent sms.delivered sms.failed phone.provisioned phone.released
  card.created card.revealed card.frozen card.unfrozen card.cancelled card.limits_updated totp.created totp.deleted totp.read
  domain.verified domain.failed webhook.disabled webhook.test reputation.updated`.split(/\s+/)

const narrower: Record<string, Scope[]> = {
  email: ['messages:read', 'emails:read'],
  sms: ['messages:read', 'sms:read'],
  card: ['cards:read'],
}

/** The names a webhook may ask for, and who may ask for them. */
export class EventNames {
  readonly #types: EventTypes

  constructor(types: EventTypes) {
    this.#types = types
  }

  /** Throws Fault invalid_request with the list for an unknown name, and forbidden for one whose scope the caller lacks. */
  require(caller: Pick<Caller, 'scopes'>, names: readonly string[]): void {
    const known = this.#known()
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
    for (const [name, scopes] of this.#known()) {
      const heard = (names.includes('*') && may({ scopes: held }, scopes)) || names.includes(name)
      if (heard && !may(caller, scopes)) throw lacks(name, scopes)
    }
  }

  /** The types of event that a webhook with these names, made with these scopes, hears. */
  heard(names: readonly string[], held: ReadonlySet<Scope>): Set<string> {
    const visible = this.#types.visibleTo({ scopes: held })
    return new Set(names.includes('*') ? visible : visible.filter((name) => names.includes(name)))
  }

  #known(): Map<string, Scope[]> {
    const known = new Map(
      announced.map((name) => [name, narrower[name.split('.')[0]!] ?? (['identities:read'] satisfies Scope[])]),
    )
    for (const { name, scopes } of this.#types.all()) known.set(name, scopes)
    return known
  }
}

function lacks(name: string, scopes: readonly Scope[]): Fault {
  return new Fault('forbidden', `A webhook that hears ${name} needs a key with the scope ${scopes.join(' or ')}.`, {
    code: 'missing_scope',
    param: 'events',
  })
}
