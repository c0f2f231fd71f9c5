import { setTimeout as sleep } from 'node:timers/promises'
import type { Basis } from '../basis.ts'
import { ConcurrentWaits, type WaitingCall } from '../core/work/concurrent-waits.ts'
import { iso } from '../core/clock.ts'
import { invalid } from '../core/fault.ts'
import { type Caller, noLongerAdmitted, readerOf } from '../core/scopes.ts'
import { codeAt, timeLeft } from './codes.ts'
import type { Entries } from './entries.ts'
import { type TotpCode, totpRead } from './model.ts'
import type { Secrets, TotpRow } from './secrets.ts'

interface Deps extends Pick<Basis, 'database' | 'events' | 'clock'> {
  entries: Entries
  secrets: Secrets
  /** True if the caller's key or session is still valid: it may end while a call waits. */
  admitted: (caller: Caller) => Promise<boolean>
}

/** The longest sleep before the clock is read again, in milliseconds, as it may be set meanwhile. */
const longestSleep = 1000

/** Read in the transaction that records the access. */
interface Read {
  row: TotpRow
  secret: Buffer
}

/** Returns codes; each access is committed before the caller gets the code. */
export class CodeReader {
  readonly #deps: Deps
  readonly #waits = new ConcurrentWaits('the next code', 'leave out min_remaining: the present code is then returned at once')

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /**
   * A code that stays valid for at least `atLeast` milliseconds; waits for the next one if needed. Ends with the signal. Throws Fault rate_limited,
   * code `too_many_waits`.
   */
  async read(caller: Caller, identityId: string, id: string, atLeast: number, call: WaitingCall): Promise<TotpCode> {
    const { clock, entries } = this.#deps
    const { period } = await entries.row(caller, identityId, id)
    if (atLeast >= period * 1000) {
      throw invalid('min_remaining', `min_remaining must be below the period, which is ${period} seconds.`, 'invalid_value')
    }
    for (;;) {
      if (timeLeft(period, clock.now()) < atLeast) await this.#wait(caller, period, atLeast, call)
      const read = await this.#note(caller, identityId, id)
      // the clock is read once, so that the code and its end agree, and after the commit, which may be slow
      const now = clock.now()
      if (timeLeft(period, now) >= atLeast) return codeOf(read, now)
    }
  }

  async #wait(caller: Caller, period: number, atLeast: number, { signal, turn }: WaitingCall): Promise<void> {
    const leave = this.#waits.enter(caller)
    try {
      for (let left = 0; (left = timeLeft(period, this.#deps.clock.now())) < atLeast;) {
        await sleep(Math.min(left, longestSleep), undefined, { signal })
      }
      // all that wait for the next code end at the same time
      await turn()
    } finally {
      leave()
    }
    await this.#requireStill(caller)
  }

  async #requireStill(caller: Caller): Promise<void> {
    if (!(await this.#deps.admitted(caller))) throw noLongerAdmitted(caller)
  }

  #note(caller: Caller, identityId: string, id: string): Promise<Read> {
    const { database, events, entries, secrets } = this.#deps
    return database.transaction(async (tx) => {
      const row = await entries.row(caller, identityId, id, tx)
      const data = { id, identity_id: identityId, service_name: row.service_name, ...readerOf(caller) }
      await events.append(tx, totpRead, { account_id: row.account_id, identity_id: identityId, data })
      return { row, secret: await secrets.read(tx, row) }
    })
  }
}

function codeOf({ row, secret }: Read, now: number): TotpCode {
  const left = timeLeft(row.period, now)
  return {
    code: codeAt(secret, row, now),
    remaining_seconds: Math.ceil(left / 1000),
    period: row.period,
    expires_at: iso(now + left),
  }
}
