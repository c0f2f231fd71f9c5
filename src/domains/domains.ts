import { createPrivateKey } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { iso } from '../core/clock.ts'
import type { Clock } from '../core/clock.ts'
import type { Cursors } from '../core/cursor.ts'
import { conflict } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import type { Seal } from '../core/seal.ts'
import type { EventLog } from '../events/log.ts'
import { sql } from '../store/database.ts'
import type { Database } from '../store/database.ts'

/** A row of `domains`. */
export interface DomainRow {
  seq: number
  id: string
  account_id: string
  name: string
  is_default: number
  status: 'pending' | 'verified'
  receives: number
  findings: string
  checks: number
  failing_since: string | null
  verified_at: string | null
  last_checked_at: string | null
  next_check_at: string | null
  created_at: string
}

/** A key that signs for a domain now. */
export interface SigningKey {
  selector: string
  algorithm: 'rsa-sha256' | 'ed25519-sha256'
  private_key: KeyObject
}

/** What the rest of the box asks in passing, kept in memory. */
type Known = Pick<DomainRow, 'account_id' | 'is_default' | 'status' | 'receives'>

interface Parts {
  database: Database
  events: EventLog
  clock: Clock
  cursors: Cursors
  seal: Seal
  /** The box's own domain, and the account that it belongs to. */
  domain: string
  operatorAccount: string
}

/** The domains whose mail the box takes and sends. */
export class Domains {
  readonly #parts: Parts
  readonly #known = new Map<string, Known>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Reads what there is; makes the box's own domain when it has none yet. */
  async start(): Promise<void> {
    const { database, clock, domain, operatorAccount } = this.#parts
    await database.transaction(async (tx) => {
      const now = iso(clock.now())
      await tx.run(sql`UPDATE domains SET is_default = 0 WHERE name <> ${domain}`)
      await tx.run(
        sql`INSERT INTO domains (id, account_id, name, is_default, receives, next_check_at, created_at) VALUES (${newId('dom')},
          ${operatorAccount}, ${domain}, 1, 1, ${now}, ${now}) ON CONFLICT (account_id, name) DO UPDATE SET is_default = 1, receives = 1`,
      )
    })
    const rows = await database.all<DomainRow>(sql`SELECT * FROM domains`)
    for (const row of rows.toSorted((one, other) => one.receives - other.receives)) this.#known.set(row.name, row)
  }

  /** Whether mail for this domain (lower-case A-labels) is taken: it was verified once, or is the box's own. */
  receives(domain: string): boolean {
    return this.#known.get(domain)?.receives === 1
  }

  /** Whether identities of the account may have addresses in the domain (lower-case A-labels). */
  mayUse(accountId: string, domain: string): boolean {
    const known = this.#known.get(domain)
    return known !== undefined && (known.is_default === 1 || (known.account_id === accountId && known.status === 'verified'))
  }

  /** Throws Fault conflict, `domain_not_verified`, when mail from this domain could not be told from a forgery. */
  requireSending(domain: string): void {
    if (this.#known.get(domain)?.status === 'verified') return
    const hint = 'set the records that GET /v1/domains shows, then POST /v1/domains/{id}/verify.'
    throw conflict(`${domain} is not verified, so mail from it may only go to addresses on this box; ${hint}`, {
      code: 'domain_not_verified',
    })
  }

  /** The keys that sign for a domain now; none when it has none yet. */
  async signingKeys(domain: string): Promise<SigningKey[]> {
    const { database, seal } = this.#parts
    const rows = await database.all<{ selector: string; algorithm: SigningKey['algorithm']; private_key: Uint8Array }>(
      sql`SELECT dkim_keys.* FROM dkim_keys JOIN domains ON domains.id = dkim_keys.domain_id
        WHERE domains.name = ${domain} AND domains.receives = 1 AND state = 'active' ORDER BY dkim_keys.seq`,
    )
    return rows.map(({ selector, algorithm, private_key }) => ({
      selector,
      algorithm,
      private_key: createPrivateKey({
        key: seal.open(Buffer.from(private_key), `dkim ${selector} ${domain}`),
        format: 'der',
        type: 'pkcs8',
      }),
    }))
  }
}
