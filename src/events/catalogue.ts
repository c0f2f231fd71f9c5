import { type Caller, may, type Scope } from '../core/scopes.ts'
import { join, sql, type Sql } from '../store/database.ts'
import type { EventType } from './model.ts'

/** Names of the published catalogue that this version may not raise yet; clients can already subscribe to them. */
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

/** The event types of all modules. */
export class EventTypes {
  readonly #types = new Map<string, EventType>()

  add(types: readonly EventType[]): void {
    for (const type of types) this.#types.set(type.name, type)
  }

  all(): EventType[] {
    return [...this.#types.values()]
  }

  /** The names of the published catalogue, including types that this version does not raise, with the scopes that see each. */
  published(): Map<string, Scope[]> {
    const names = new Map(
      announced.map((name) => [name, narrower[name.split('.')[0]!] ?? (['identities:read'] satisfies Scope[])]),
    )
    for (const { name, scopes } of this.all()) names.set(name, scopes)
    return names
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
