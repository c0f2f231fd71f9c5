import { Substring } from './substring.ts'
import type { Event } from '../events/model.ts'
import type { WaitFilter } from './model.ts'

/** Characters of a name, an address or a subject that a filter looks at. */
export const examined = 1000

/** What filters look at in the event of a message, in lower case. */
export interface MessageBrief {
  seq: number
  type: string
  spam: boolean
  sender: string
  subject: string
}

/** The fields of a message, or of the event about one, that filters look at. */
export interface MessageFields {
  from?: unknown
  from_name?: unknown
  subject?: unknown
  spam?: boolean
}

/** Undefined for an event of a message that was deleted. */
export function briefOf({ seq, type, data }: Event): MessageBrief | undefined {
  const { deleted, ...fields } = data as MessageFields & { deleted?: boolean }
  return deleted ? undefined : briefFrom(seq, type, fields)
}

export function briefFrom(seq: number, type: string, { from, from_name, subject, spam = false }: MessageFields): MessageBrief {
  return { seq, type, spam, sender: `${examinedOf(from_name)} ${examinedOf(from)}`, subject: examinedOf(subject) }
}

function examinedOf(text: unknown): string {
  return typeof text === 'string' ? text.slice(0, examined).toLowerCase() : ''
}

/** The filter of waits, ready to be compared with many messages. */
export class MessageFilter {
  readonly types: readonly string[]
  /** Equal for filters that select the same messages. */
  readonly text: string
  readonly #spam: boolean
  readonly #sender: Substring | undefined
  readonly #subject: Substring | undefined

  constructor(
    { from, subject_contains, spam }: Pick<WaitFilter, 'from' | 'subject_contains' | 'spam'>,
    types: readonly string[],
  ) {
    const sender = from?.toLowerCase()
    const subject = subject_contains?.toLowerCase()
    this.types = types
    this.text = JSON.stringify([types, sender, subject, spam])
    this.#spam = spam
    this.#sender = sender === undefined ? undefined : new Substring(sender)
    this.#subject = subject === undefined ? undefined : new Substring(subject)
  }

  matches({ type, spam, sender, subject }: MessageBrief): boolean {
    if (!this.types.includes(type) || (spam && !this.#spam)) return false
    return (this.#sender?.isIn(sender) ?? true) && (this.#subject?.isIn(subject) ?? true)
  }
}
