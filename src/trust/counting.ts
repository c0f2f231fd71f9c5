import type { Basis } from '../basis.ts'
import type { EventHeader } from '../events/model.ts'
import { ofTypes } from '../events/catalogue.ts'
import { type Reader, sql, type Transaction } from '../store/database.ts'
import { countedTypes, factOf } from './facts.ts'
import { reputationReported, type Tier } from './model.ts'
import { countersOf, type Reputations, same, saveReputation } from './reputations.ts'
import { type Counters, nothing } from './score.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'log'> {
  reputations: Reputations
}

interface Tally {
  counters: Counters
  /** The time of the last event that counted. */
  at: string
  reported: boolean
}

const bookmark = 'reputation'
const page = 1000

/** Counts the events of identities: each event once, in the transaction of the bookmark. */
export class Counting {
  readonly #deps: Deps
  #stop: (() => Promise<void>) | undefined

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async start(): Promise<void> {
    const { database, events, log } = this.#deps
    // from the first event on, also those during the first start of the box
    await database.transaction((tx) =>
      tx.run(sql`INSERT INTO bookmarks (name, seq) VALUES (${bookmark}, 0) ON CONFLICT DO NOTHING`),
    )
    this.#stop = events.follow(bookmark, (tx, batch) => this.#count(tx, batch), log, { types: countedTypes, filter: concerns })
  }

  async stop(): Promise<void> {
    await this.#stop?.()
  }

  /**
   * Recounts from the event log alone, up to the bookmark; returns how many identities there are, and how many had other counters. Requires
   * a stopped box. Throws a sentence when the beginning of the log was pruned.
   */
  async recount(): Promise<{ identities: number; corrected: number }> {
    const { database, events } = this.#deps
    const first = await database.get<{ seq: number | null }>(sql`SELECT min(seq) AS seq FROM events`)
    if ((first?.seq ?? 1) > 1) {
      throw new Error('The first events of the log have been deleted, so the counts cannot be recomputed. They were not changed.')
    }
    const end = await this.#end(database)
    const tallies = new Map<string, Tally>()
    for (let seq = 0; ;) {
      const batch = await events.headers(seq, page, sql`seq <= ${end} AND ${ofTypes(countedTypes)}`)
      tally(batch, tallies)
      if (batch.length < page) break
      seq = batch.at(-1)!.seq
    }
    const corrected = await database.transaction(async (tx) => {
      if ((await this.#end(tx)) !== end) throw new Error('The log was followed during the recount; stop the box first.')
      return correct(tx, tallies)
    })
    return { identities: tallies.size, corrected }
  }

  async #count(tx: Transaction, batch: EventHeader[]): Promise<void> {
    for (const [id, { counters, at, reported }] of tally(batch, new Map())) {
      await this.#deps.reputations.add(tx, id, counters, at, reported)
    }
  }

  async #end(reader: Reader): Promise<number> {
    const row = await reader.get<{ seq: number }>(sql`SELECT seq FROM bookmarks WHERE name = ${bookmark}`)
    return row?.seq ?? 0
  }
}

/** Most mail does not count, and then costs no write. */
async function concerns(batch: EventHeader[]): Promise<EventHeader[]> {
  return batch.filter((event) => factOf(event) !== undefined)
}

async function correct(tx: Transaction, tallies: Map<string, Tally>): Promise<number> {
  const rows = await tx.all<{ identity_id: string; tier: Tier; updated_at: string } & Counters>(sql`SELECT * FROM reputations`)
  const known = new Map(rows.map((row) => [row.identity_id, row]))
  let corrected = 0
  for (const id of new Set([...tallies.keys(), ...known.keys()])) {
    const row = known.get(id)
    const { counters, at } = tallies.get(id) ?? { counters: nothing, at: row!.updated_at }
    if (same(counters, countersOf(row))) continue
    corrected += 1
    await saveReputation(tx, id, counters, row?.tier ?? 'bronze', at)
  }
  return corrected
}

function tally(batch: EventHeader[], tallies: Map<string, Tally>): Map<string, Tally> {
  for (const event of batch) {
    const fact = factOf(event)
    if (!fact) continue
    const before = tallies.get(fact.identity_id) ?? { counters: { ...nothing }, at: '', reported: false }
    before.counters[fact.counter] += fact.amount
    before.at = event.created_at
    before.reported ||= event.type === reputationReported.name
    tallies.set(fact.identity_id, before)
  }
  return tallies
}
