import type { Plan } from '../accounts/plan.ts'
import { sql, type Transaction } from '../store/database.ts'

type Owner = { account_id: string; identity_id: string }

/** Takes room for what came with a message, in octets. Answers false when its account has none left, or its identity is gone. */
export async function takeStorage(tx: Transaction, plan: Plan, owner: Owner, octets: number): Promise<boolean> {
  if (octets > (await plan.available(tx, owner.account_id))) return false
  return change(tx, plan, owner, octets)
}

/** Octets of the row of a message beside its texts. */
const row = 256

/** Octets of room that a text message takes beside its media: its texts, and what its row takes. */
export function octetsOfTexts(...texts: (string | null)[]): number {
  return texts.reduce((sum, text) => sum + (text === null ? 0 : Buffer.byteLength(text)), row)
}

/** Takes room for a text that came, whether there is any or not: it may be a code that somebody waits for. */
export async function countTexts(tx: Transaction, plan: Plan, owner: Owner, octets: number): Promise<void> {
  await change(tx, plan, owner, octets)
}

/** Gives it back. */
export async function releaseStorage(tx: Transaction, plan: Plan, owner: Owner, octets: number): Promise<void> {
  if (octets > 0) await change(tx, plan, owner, -octets)
}

// what an identity kept was given back whole when it was deleted
async function change(tx: Transaction, plan: Plan, { account_id, identity_id }: Owner, octets: number): Promise<boolean> {
  const { changes } = await tx.run(
    sql`UPDATE identities SET media_bytes = max(0, media_bytes + ${octets}) WHERE id = ${identity_id} AND status <> 'deleted'`,
  )
  if (changes === 1) await plan.add(tx, account_id, 'storage_bytes', octets)
  return changes === 1
}
