import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { expect } from 'vitest'
import { appliance, type Appliance } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { HeldClock } from '../support/held-clock.ts'

/** A box with one identity, and where its cards are. */
export interface Settled {
  box: Appliance
  at: string
}

/** A box whose clock stands still at 10:05 on 20 November 2026. */
export async function settled(now?: number): Promise<Settled & { clock: HeldClock }> {
  const clock = new HeldClock(now)
  const box = await appliance({}, clock)
  return { box, clock, at: await cardsOf(box, 'Ada') }
}

/** Makes an identity; answers the path of its cards. */
export async function cardsOf(box: Appliance, name: string): Promise<string> {
  const { body } = await box.call('POST', '/v1/identities', { name })
  return `/v1/identities/${body.id}/cards`
}

/** Stores a card; answers its path. */
export async function stored({ box, at }: Settled, changes: Record<string, unknown> = {}): Promise<string> {
  const { status, body } = await box.call('POST', at, card(changes))
  expect([status, body.error]).toEqual([201, undefined])
  return `/v1/cards/${body.id}`
}

/** What lies in the store. */
export function inside<Row>(box: Appliance, query: string): Row[] {
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true, timeout: 60_000 })
  try {
    return database
      .prepare(query)
      .all()
      .map((row) => ({ ...row })) as Row[]
  } finally {
    database.close()
  }
}
