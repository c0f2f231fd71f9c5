import { separateTurn } from '../core/work/paced-work.ts'
import type { EventLog } from '../events/log.ts'
import type { Event } from '../events/model.ts'
import { envelopeOf } from '../timeline/model.ts'

/** An envelope as signed and sent. */
interface Body {
  octets: Buffer
  event: Pick<Event, 'type' | 'identity_id'>
  /** The subject of the event, for the log. */
  subject: Record<string, unknown>
}

/** The account of an event, and about how many bytes it has. */
type Size = NonNullable<Awaited<ReturnType<EventLog['sizeOf']>>>

/** How long an event is cached for the other webhooks that get it, in milliseconds. */
const lifetime = 1000

/** Events as they are posted. One that many webhooks get is read once; what is deleted is not posted any more. */
export class EventBodies {
  readonly #events: Pick<EventLog, 'sizeOf' | 'find' | 'knowsRedactions'>
  readonly #sizes = new Map<string, Promise<Size | undefined>>()
  readonly #bodies = new Map<string, Promise<Body | undefined>>()
  /** The only large event among the bodies. */
  #lastLarge = ''

  constructor(events: Pick<EventLog, 'sizeOf' | 'find' | 'onRedaction' | 'knowsRedactions'>) {
    this.#events = events
    events.onRedaction(() => {
      this.#sizes.clear()
      this.#bodies.clear()
    })
  }

  /** Undefined when the event is not, or no longer, in the log. */
  sizeOf(id: string): Promise<Size | undefined> {
    return this.#briefly(this.#sizes, id, () => this.#events.sizeOf(id))
  }

  /** The same; a large event is made in a turn of its own. */
  get(id: string, isLarge: boolean): Promise<Body | undefined> {
    if (isLarge && this.#lastLarge !== id) {
      this.#bodies.delete(this.#lastLarge)
      this.#lastLarge = id
    }
    return this.#briefly(this.#bodies, id, async () => {
      if (isLarge) await separateTurn()
      const event = await this.#events.find(id)
      return event && bodyOf(event)
    })
  }

  /** What was read within `lifetime`, or reads it. */
  #briefly<Value>(known: Map<string, Promise<Value>>, id: string, read: () => Promise<Value>): Promise<Value> {
    const kept = this.#events.knowsRedactions ? known.get(id) : undefined
    if (kept) return kept
    const made = read()
    known.set(id, made)
    setTimeout(() => known.delete(id), lifetime).unref()
    return made
  }
}

function bodyOf(event: Event): Body {
  const { type, identity_id } = event
  return { octets: Buffer.from(JSON.stringify(envelopeOf(event))), event: { type, identity_id }, subject: subjectOf(event) }
}

function subjectOf({ type, data }: Event): Body['subject'] {
  const { id, message_id } = data as { id?: unknown; message_id?: unknown }
  if (type.startsWith('email.')) return { email_id: id, message_id }
  return type.startsWith('sms.') ? { sms_id: id } : {}
}
