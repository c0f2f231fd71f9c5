import type { Page } from '../../core/shapes.ts'
import type { ReducedIdentity } from '../../identities/model.ts'
import type { Box } from './box.ts'
import { Failure } from './refuse.ts'

export async function everyOne<Item>(box: Box, path: string, max = Infinity): Promise<Item[]> {
  const all: Item[] = []
  const joint = path.includes('?') ? '&' : '?'
  for (let cursor = ''; ;) {
    const limit = Math.min(200, max - all.length)
    const { data, has_more, next_cursor } = await box.call<Page<Item>>('GET', `${path}${joint}limit=${limit}${cursor}`)
    all.push(...data)
    if (!has_more || next_cursor === null || all.length >= max) return all
    cursor = `&cursor=${encodeURIComponent(next_cursor)}`
  }
}

/** The identity of this id, name or address. Throws Failure when there is none. */
export async function identityNamed(box: Pick<Box, 'call'>, who: string): Promise<ReducedIdentity> {
  if (/^ident_[0-9a-z]{26}$/.test(who)) return box.call<ReducedIdentity>('GET', `/v1/identities/${who}`)
  const filters = who.includes('@') ? ['email', 'name'] : ['name']
  for (const filter of filters) {
    const { data } = await box.call<Page<ReducedIdentity>>('GET', `/v1/identities?limit=1&${filter}=${encodeURIComponent(who)}`)
    if (data[0]) return data[0]
  }
  throw new Failure(`The account has no identity ${who}. List the identities: pillarbox identity list`, 'not_found', 'identity')
}
