interface Row {
  id: string
  type: string
  amount_cents: number
  allowed: boolean
  reason: string | null
  spent_cents: number
}

export type Ask = (method: string, path: string, body?: unknown, key?: string) => Promise<{ status: number; body: Any }>
type Any = ReturnType<typeof JSON.parse>

/** All transactions of a card, oldest first. */
export async function ledger(ask: Ask, path: string): Promise<Row[]> {
  const rows: Row[] = []
  for (let cursor = ''; ;) {
    const { body } = await ask('GET', `${path}/transactions?limit=200${cursor}`)
    rows.push(...(body.data as Row[]))
    if (!body.has_more) return rows.toReversed()
    cursor = `&cursor=${body.next_cursor}`
  }
}

/** Resolves when it is so. */
export async function until(happened: () => boolean): Promise<void> {
  while (!happened()) await new Promise((resolve) => setTimeout(resolve, 1))
}
