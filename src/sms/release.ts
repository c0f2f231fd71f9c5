import type { Basis } from '../basis.ts'
import { hour, iso, minute } from '../core/clock.ts'
import { conflict } from '../core/fault.ts'
import { type Courier, TemporaryFailure, type Outcome } from '../queue/courier.ts'
import type { Queue } from '../queue/queue.ts'
import { sql, type Transaction } from '../store/database.ts'
import { phoneReleased } from './model.ts'
import { type NumberRow, releaseKind, type ReleaseLoad, toPhoneNumber } from './rows.ts'
import { type SmsProvider, toTemporaryFailure } from './provider.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock'> {
  queue: Queue
  provider: SmsProvider | undefined
}

/** Releases numbers at the provider, and retries until it succeeds: an unreleased number is billed indefinitely. */
export class ReleaseCourier implements Courier<ReleaseLoad> {
  readonly kind = releaseKind
  readonly schedule = [0, minute, 5 * minute, 30 * minute, ...Array.from({ length: 48 }, () => hour)]
  readonly jitter = 0.1
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async deliver({ phone_id }: ReleaseLoad): Promise<string> {
    const { database, provider } = this.#deps
    const row = await database.get<NumberRow>(sql`SELECT * FROM phone_numbers WHERE id = ${phone_id}`)
    if (row?.status !== 'releasing' || row.number === null) return 'nothing to release'
    if (provider?.name !== row.provider) throw new TemporaryFailure(`${row.provider} is not configured`)
    try {
      await provider.release?.({ number: row.number, provider_id: row.provider_id })
      return 'released'
    } catch (error) {
      // releasing a number twice is harmless, so any try may be repeated
      throw toTemporaryFailure(error)
    }
  }

  async cancel(): Promise<never> {
    throw conflict('number could not be released and still incurs cost; retried until the provider accepts', {
      code: 'not_droppable',
    })
  }

  async settle(tx: Transaction, { phone_id }: ReleaseLoad, outcome: Outcome): Promise<void> {
    const { events, clock, queue } = this.#deps
    const now = clock.now()
    if (outcome === 'failed') {
      const row = await tx.get<NumberRow>(sql`SELECT * FROM phone_numbers WHERE id = ${phone_id}`)
      if (row) await queue.enqueue(tx, { kind: this.kind, lane: row.provider, load: { phone_id }, due: iso(now + hour) })
    }
    if (outcome !== 'done') return
    const row = await tx.get<NumberRow>(
      sql`UPDATE phone_numbers SET status = 'released', released_at = ${iso(now)} WHERE id = ${phone_id} AND status = 'releasing' RETURNING *`,
    )
    if (!row) return
    const { account_id, identity_id } = row
    await events.append(tx, phoneReleased, { account_id, identity_id, data: toPhoneNumber(row) })
  }
}
