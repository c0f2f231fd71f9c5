import { conflict, type Fault } from '../core/fault.ts'
import { boxNames } from './role-names.ts'
import { join, type Reader, sql, type Transaction } from '../store/database.ts'
import type { IdentityRow } from './row.ts'

/** The owner an address is claimed for: an identity of the account, for its own address or an alias. */
interface AddressClaim {
  address: string
  account_id: string
  identity_id: string
  alias_id: string | null
}

/**
 * Claims an address unless it was assigned before; a former alias of the same account may be assigned again. Returns whether it was
 * claimed.
 */
export async function claim(tx: Transaction, { address, account_id, identity_id, alias_id }: AddressClaim): Promise<boolean> {
  const { changes } = await tx.run(
    sql`INSERT INTO addresses (address, identity_id, alias_id, alias_account_id)
      VALUES (${address}, ${identity_id}, ${alias_id}, ${alias_id === null ? null : account_id})
      ON CONFLICT (address) DO UPDATE SET identity_id = excluded.identity_id, alias_id = excluded.alias_id, alias_account_id = excluded.alias_account_id
      WHERE addresses.alias_id IS NULL AND addresses.alias_account_id = ${account_id}`,
  )
  return changes === 1
}

/** Throws Fault conflict, param email_username, when the account could not claim the address now. */
export async function requireFreeAddress(reader: Reader, address: string, accountId: string): Promise<void> {
  const taken = await reader.get(
    sql`SELECT 1 FROM addresses WHERE address = ${address} AND (alias_id IS NOT NULL OR coalesce(alias_account_id, '') <> ${accountId})`,
  )
  if (taken !== undefined) throw await notFree(reader, address, 'email_username')
}

/** The most chosen addresses at the box's own domain that stay reserved for deleted identities of one account. */
const maxFormer = 1000

/** True unless so many addresses of its deleted identities stay reserved at the box's own domain that the account gets generated ones only. */
export async function mayChoose(reader: Reader, accountId: string, domain: string): Promise<boolean> {
  const former = await reader.get<{ n: number }>(
    sql`SELECT count(*) AS n FROM (SELECT 1 FROM identities WHERE account_id = ${accountId} AND status = 'deleted'
      AND email NOT LIKE 'agent-__________@%' AND substr(email, instr(email, '@') + 1) = ${domain} LIMIT ${maxFormer}) AS former`,
  )
  return former!.n < maxFormer
}

/** The Fault conflict for an account for which `mayChoose` is false. */
export function notChosen(): Fault {
  return conflict(
    `${maxFormer} addresses of this account’s deleted identities stay reserved, which is the limit: leave email_username out for a generated address, or choose one at a domain of the account.`,
    { param: 'email_username', code: 'too_many_addresses' },
  )
}

/** Fault conflict for an address that cannot be assigned to any caller. */
export function notForYou(address: string, param: string): Fault {
  return conflict(`${address} is reserved for the operator.`, { param })
}

/** Fault conflict with the reason why an address cannot be assigned. */
export async function notFree(reader: Reader, address: string, param: string): Promise<Fault> {
  const alias = await reader.get(sql`SELECT 1 FROM aliases WHERE address = ${address}`)
  return conflict(`${address} is taken; ${alias ? 'it is an alias' : 'an address is never reused'}.`, { param })
}

/** The identity of a row of `addresses`; '' for a former alias, also one whose domain was deleted and that still has its row. */
const holder = sql`CASE WHEN alias_id IS NULL OR EXISTS (SELECT 1 FROM aliases JOIN domains ON domains.id = aliases.domain_id
  WHERE aliases.id = addresses.alias_id) THEN identity_id ELSE '' END`

/** The identity of this address or alias, active or deleted, ignoring catch-alls. The address is lower case and without a tag. */
export function named(reader: Reader, address: string): Promise<IdentityRow | undefined> {
  return reader.get(sql`SELECT * FROM identities WHERE id = (SELECT ${holder} FROM addresses WHERE address = ${address})`)
}

/** The identity that receives mail to an address, active or deleted; see `Identities.ownerOf`. */
export function reached(reader: Reader, address: string): Promise<IdentityRow | undefined> {
  const at = address.lastIndexOf('@')
  const caught = boxNames.has(address.slice(0, at)) ? '' : address.slice(at + 1)
  return reader.get<IdentityRow>(
    sql`SELECT * FROM identities WHERE id = coalesce((SELECT ${holder} FROM addresses WHERE address = ${address}),
      (SELECT catch_all FROM domains WHERE name = ${caught} AND receives = 1))`,
  )
}

/** Returns those of the addresses that are the identity's own or its aliases. */
export async function ownAmong(reader: Reader, id: string, addresses: string[]): Promise<string[]> {
  if (addresses.length === 0) return []
  const rows = await reader.all<{ address: string }>(
    sql`SELECT address FROM addresses WHERE identity_id = ${id} AND ${holder} <> '' AND address IN (${join(addresses)})`,
  )
  return rows.map(({ address }) => address)
}
