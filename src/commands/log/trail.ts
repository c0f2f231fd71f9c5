export type LogLine = Record<string, unknown>

/** The searched message; with several criteria a line must match all. */
interface TrailQuery {
  /** With or without angle brackets. */
  message_id?: string | undefined
  /** An address, or `@` and a domain. */
  to?: string | undefined
  from?: string | undefined
  ip?: string | undefined
}

interface Held {
  line: LogLine
  names: string[]
  /** The connection of a line about one of its transactions; empty for lines about the connection itself. */
  connection: string[]
  printed: boolean
}

/** The most buffered lines that may turn out to belong to the message, and followed ids; the oldest are dropped first. */
const maxHeld = 5000
const maxNames = 100_000

/**
 * Finds the lines of a message in one pass over a log: those that match the query, and those that share an id with one of them (Message-ID,
 * e-mail, delivery, transaction), before or after it. The buffer is bounded.
 */
export class LogTrail {
  readonly #wanted: [field: keyof TrailQuery, value: string][]
  readonly #names = new Set<string>()
  readonly #held: Held[] = []
  readonly #heldBy = new Map<string, Set<Held>>()

  constructor(wanted: TrailQuery) {
    const given = Object.entries(wanted).filter((entry): entry is [keyof TrailQuery, string] => entry[1] !== undefined)
    this.#wanted = given.map(([field, value]) => [field, field === 'message_id' ? bare(value) : value.toLowerCase()])
  }

  /** The lines to print after this one was read, in order: none, this one, or buffered ones and this one. */
  take(line: LogLine): LogLine[] {
    const names = namesIn(line)
    const connection = connectionOf(line)
    if (!this.#fits(line) && !names.some((name) => this.#names.has(name))) {
      if (names.length > 0) this.#hold({ line, names, connection, printed: false })
      return []
    }
    return [...this.#follow([...names, ...connection]), line]
  }

  #fits(line: LogLine): boolean {
    return this.#wanted.every(([field, value]) => [line[field]].flat().some((one) => isMeant(field, one, value)))
  }

  /** Follows these ids from now on; returns the buffered lines with them, transitively. */
  #follow(names: readonly string[]): LogLine[] {
    const found = new Set<Held>()
    const open = [...names]
    for (let name = open.pop(); name !== undefined; name = open.pop()) {
      if (this.#names.has(name)) continue
      this.#names.add(name)
      for (const held of this.#heldBy.get(name) ?? []) {
        if (held.printed) continue
        held.printed = true
        found.add(held)
        open.push(...held.names, ...held.connection)
      }
    }
    for (const oldest of this.#names) {
      if (this.#names.size <= maxNames) break
      this.#names.delete(oldest)
    }
    return this.#held.filter((held) => found.has(held)).map(({ line }) => line)
  }

  #hold(held: Held): void {
    this.#held.push(held)
    for (const name of held.names) this.#heldBy.set(name, (this.#heldBy.get(name) ?? new Set()).add(held))
    const gone = this.#held.length > maxHeld ? this.#held.shift() : undefined
    for (const name of gone?.names ?? []) {
      const others = this.#heldBy.get(name)
      others?.delete(gone!)
      if (others?.size === 0) this.#heldBy.delete(name)
    }
  }
}

function isMeant(field: keyof TrailQuery, given: unknown, value: string): boolean {
  if (typeof given !== 'string') return false
  if (field === 'message_id') return bare(given) === value
  const text = given.toLowerCase()
  return text === value || (value.startsWith('@') && text.endsWith(value))
}

/** The ids in a line. Ids differ by their prefix, so that one set holds all kinds. */
function namesIn(line: LogLine): string[] {
  const ids = [line['email_id'], line['email_ids'], line['queue_id'], line['delivery_id'], line['sms_id'], line['session']].flat()
  const names = ids.filter((id) => typeof id === 'string')
  const { message_id } = line
  if (typeof message_id === 'string') names.push(`<${bare(message_id)}>`)
  return names
}

/**
 * Lines of a connection belong to each of its transactions, but those of one transaction not to another: so a transaction includes its
 * connection, but not the other way round.
 */
function connectionOf({ session }: LogLine): string[] {
  return typeof session === 'string' && session.includes('.') ? [session.slice(0, session.indexOf('.'))] : []
}

function bare(id: string): string {
  return id.replace(/^<|>$/g, '')
}
