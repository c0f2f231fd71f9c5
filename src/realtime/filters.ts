import { Fault } from '../core/fault.ts'
import type { PacedWork } from '../core/work/paced-work.ts'
import type { Grant } from './access.ts'
import { type Filter, readFilter } from './filter.ts'

/** The most that the distinct filters of one account may cost for each row; those of one key or session half of it. */
const maxCost = { steps: 2000, comparisons: 20_000 }

type Cost = Pick<Filter, 'steps' | 'comparisons'>

/** A shared filter, with the number of bindings of each key or session. */
interface Shared {
  filter: Filter
  holders: Map<string, number>
}

/** The filters of all sockets. Equal filters of an account are shared: compiled once and evaluated once for each row. */
export class Filters {
  readonly #paced: PacedWork
  /** By account and text. */
  readonly #accounts = new Map<string, Map<string, Shared>>()

  constructor(paced: PacedWork) {
    this.#paced = paced
  }

  /**
   * Acquires the filter of this text; the holder must release it. Throws Fault invalid_request for an invalid one, and rate_limited, code
   * `too_many_filters`, where those of the account or of the key would cost too much.
   */
  async hold({ account_id, holder_id }: Grant, text: string): Promise<Filter> {
    const known = this.#find(account_id, text)?.filter
    // parsing compiles its patterns
    const filter = known ?? (await this.#paced.run(account_id, () => readFilter(text)))
    const shared = this.#find(account_id, text) ?? { filter, holders: new Map<string, number>() }
    this.#require(account_id, holder_id, shared)
    const filters = this.#accounts.get(account_id) ?? new Map<string, Shared>()
    this.#accounts.set(account_id, filters.set(text, shared))
    shared.holders.set(holder_id, (shared.holders.get(holder_id) ?? 0) + 1)
    return shared.filter
  }

  /** Releases the filter for one binding. */
  release({ account_id, holder_id }: Grant, { text }: Filter): void {
    const filters = this.#accounts.get(account_id)
    const shared = filters?.get(text)
    if (!filters || !shared) return
    const left = (shared.holders.get(holder_id) ?? 0) - 1
    if (left > 0) shared.holders.set(holder_id, left)
    else shared.holders.delete(holder_id)
    if (shared.holders.size === 0) filters.delete(text)
    if (filters.size === 0) this.#accounts.delete(account_id)
  }

  #find(accountId: string, text: string): Shared | undefined {
    return this.#accounts.get(accountId)?.get(text)
  }

  #require(accountId: string, holderId: string, wanted: Shared): void {
    if (wanted.holders.has(holderId)) return
    const all = [...(this.#accounts.get(accountId)?.values() ?? [])]
    const own = all.filter(({ holders }) => holders.has(holderId))
    requireWithin('one key or session', { steps: maxCost.steps / 2, comparisons: maxCost.comparisons / 2 }, [...own, wanted])
    if (wanted.holders.size === 0) requireWithin('one account', maxCost, [...all, wanted])
  }
}

function requireWithin(whose: string, bound: Cost, filters: readonly Shared[]): void {
  const sum = (of: keyof Cost): number => filters.reduce((total, { filter }) => total + filter[of], 0)
  const over = (['steps', 'comparisons'] as const).find((of) => sum(of) > bound[of])
  if (over === undefined) return
  const what = over === 'steps' ? 'patterns of' : 'values to compare with,'
  throw new Fault(
    'rate_limited',
    `The filters of ${whose} would have ${what} ${sum(over)} ${over === 'steps' ? 'steps' : 'in all'}; the limit is ${bound[over]}. Use simpler ones, use the same on several sockets (equal filters count once), or leave a channel first.`,
    { code: 'too_many_filters', param: 'filter' },
  )
}
