import type { Plan } from '../accounts/plan.ts'
import { sql, type Transaction } from '../store/database.ts'

type Owner = { account_id: string; identity_id: string }

/** Reserves bytes of the quota for media. Returns false when the account has no quota left, or the identity is deleted. */
export async function takeStorage(tx: Transaction, plan: Plan, owner: Owner, bytes: number): Promise<boolean> {
  if (bytes > (await plan.available(tx, owner.account_id))) return false
  return change(tx, plan, owner, bytes)
}

/** Bytes of a message's row besides its texts. */
const row = 256

/** Bytes of quota that a text message uses besides its media: its texts and its row. */
export function bytesOfTexts(...texts: (string | null)[]): number {
  return texts.reduce((sum, text) => sum + (text === null ? 0 : Buffer.byteLength(text)), row)
}

/** Counts a received text even above the quota: it may be a code that a caller is waiting for. */
export async function countTexts(tx: Transaction, plan: Plan, owner: Owner, bytes: number): Promise<void> {
  await change(tx, plan, owner, bytes)
}

/** Releases bytes of the quota. */
export async function releaseStorage(tx: Transaction, plan: Plan, owner: Owner, bytes: number): Promise<void> {
  if (bytes > 0) await change(tx, plan, owner, -bytes)
}

// the deletion of an identity released its whole usage
async function change(tx: Transaction, plan: Plan, { account_id, identity_id }: Owner, bytes: number): Promise<boolean> {
  const { changes } = await tx.run(
    sql`UPDATE identities SET media_bytes = CASE WHEN media_bytes + ${bytes} > 0 THEN media_bytes + ${bytes} ELSE 0 END
      WHERE id = ${identity_id} AND status <> 'deleted'`,
  )
  if (changes === 1) await plan.add(tx, account_id, 'storage_bytes', bytes)
  return changes === 1
}

/** Bytes of quota that a message uses, with its media. */
export async function bytesOf(tx: Transaction, { id, octets }: { id: string; octets: number }): Promise<number> {
  const kept = await tx.get<{ size: number }>(
    sql`SELECT coalesce(sum(size), 0) AS size FROM sms_media WHERE sms_id = ${id} AND status = 'kept'`,
  )
  return octets + kept!.size
}
