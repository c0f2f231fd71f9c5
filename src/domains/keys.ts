import { createPrivateKey, generateKeyPair, type KeyPairKeyObjectResult, randomInt } from 'node:crypto'
import { promisify } from 'node:util'
import { type Clock, day, iso } from '../core/clock.ts'
import type { Seal, SealedColumn } from '../core/seal/seal.ts'
import { WorkLimiter } from '../net/work-limiter.ts'
import { type Database, join, type Reader, sql, type Transaction } from '../store/database.ts'
import type { NextCheck } from './next-check.ts'
import type { DkimKey, PublicKey } from './types.ts'

/** A key pair that is not stored yet. */
interface FreshKey extends Pick<PublicKey, 'selector' | 'algorithm' | 'public_text'> {
  /** PKCS #8. */
  secret: Buffer
}

/** The domain that owns keys. */
type Owner = { id: string; name: string }

/** Generates an RSA key of 2048 bits. */
export type RsaPair = () => Promise<KeyPairKeyObjectResult>

/** How long the records of a retired key stay listed, as mail it signed may still be in transit. */
const listedAfterRetirement = 7 * day

/** The DKIM keys of hosted domains: two active (RSA-2048 and Ed25519, RFC 8463) and two spares; private keys are stored encrypted. */
export class DkimKeys {
  readonly #database: Database
  readonly #clock: Clock
  readonly #seal: Seal
  readonly #nextCheck: NextCheck
  readonly #signing = new Map<string, Promise<DkimKey[]>>()
  readonly #making = new Map<string, Promise<void>>()
  readonly #rsaPair: RsaPair
  /** One pair is generated at a time: the thread pool that does it also runs fsync. Accounts take turns. */
  readonly #turns = new WorkLimiter({ concurrent: { all: 1, one: 1 } })

  /** `rsaPair` is replaced in tests, which rarely need a new key. */
  constructor(deps: { database: Database; clock: Clock; seal: Seal; nextCheck: NextCheck; rsaPair?: RsaPair | undefined }) {
    this.#rsaPair = deps.rsaPair ?? makeRsaPair
    this.#nextCheck = deps.nextCheck
    this.#database = deps.database
    this.#clock = deps.clock
    this.#seal = deps.seal
    deps.database.caches.onInvalid('dkim_keys', () => this.#signing.clear())
  }

  /** The listed keys of each domain: active, spare, and retired within seven days. */
  async of(reader: Reader, domainIds: string[]): Promise<Map<string, PublicKey[]>> {
    const found = new Map<string, PublicKey[]>(domainIds.map((id) => [id, []]))
    if (domainIds.length === 0) return found
    const rows = await reader.all<PublicKey & { domain_id: string }>(
      sql`SELECT domain_id, selector, algorithm, public_text, state FROM dkim_keys
        WHERE domain_id IN (${join(domainIds)}) AND (retired_at IS NULL OR retired_at > ${this.#parting()}) ORDER BY CASE state
        WHEN 'active' THEN 0 WHEN 'spare' THEN 1 ELSE 2 END, seq`,
    )
    for (const { domain_id, ...key } of rows) found.get(domain_id)?.push(key)
    return found
  }

  /** Creates the keys of a domain that has none. */
  async ensure(domain: Owner): Promise<void> {
    const some = await this.#database.get(sql`SELECT 1 FROM dkim_keys WHERE domain_id = ${domain.id} LIMIT 1`)
    if (some) return
    let making = this.#making.get(domain.id)
    if (!making) {
      making = this.#endow(domain).finally(() => this.#making.delete(domain.id))
      this.#making.set(domain.id, making)
    }
    await making
  }

  /** Generates a pair for each algorithm, when it is the turn of the account ('' for the box). Rejects when the signal aborts before. */
  async make(account: string, signal?: AbortSignal): Promise<FreshKey[]> {
    const pair = (algorithm: DkimKey['algorithm']): Promise<FreshKey> =>
      this.#turns.share(account).run(signal, () => generate(algorithm, this.#clock.now(), this.#rsaPair))
    return [await pair('rsa-sha256'), await pair('ed25519-sha256')]
  }

  async insert(tx: Transaction, domain: Owner, keys: FreshKey[], state: 'active' | 'spare'): Promise<void> {
    const now = iso(this.#clock.now())
    for (const { selector, algorithm, public_text, secret } of keys) {
      await tx.run(
        sql`INSERT INTO dkim_keys (domain_id, selector, algorithm, private_key, public_text, state, created_at, activated_at)
          VALUES (${domain.id}, ${selector}, ${algorithm}, ${this.#seal.seal(secret, place(domain, selector))}, ${public_text}, ${state},
          ${now}, ${state === 'active' ? now : null})`,
      )
    }
  }

  /** Activates the spares and stores new spares; the former keys no longer sign. */
  async rotate(tx: Transaction, domain: Owner, fresh: FreshKey[]): Promise<void> {
    const now = iso(this.#clock.now())
    await tx.run(
      sql`UPDATE dkim_keys SET state = 'retired', retired_at = ${now}, private_key = ${new Uint8Array()} WHERE domain_id = ${domain.id} AND state = 'active'`,
    )
    await tx.run(
      sql`UPDATE dkim_keys SET state = 'active', activated_at = ${now} WHERE domain_id = ${domain.id} AND state = 'spare'`,
    )
    await this.insert(tx, domain, fresh, 'spare')
    await this.#database.caches.invalidate(tx, 'dkim_keys')
  }

  async remove(tx: Transaction, domainId: string): Promise<void> {
    await tx.run(sql`DELETE FROM dkim_keys WHERE domain_id = ${domainId}`)
    await this.#database.caches.invalidate(tx, 'dkim_keys')
  }

  /** Drops the cached keys after a rotation or removal was committed. */
  forget(domainId: string): void {
    this.#signing.delete(domainId)
  }

  /** The active keys, created on first use. */
  signing(domain: Owner): Promise<DkimKey[]> {
    const kept = this.#database.caches.valid ? this.#signing.get(domain.id) : undefined
    if (kept) return kept
    const opening = this.#open(domain)
    this.#signing.set(domain.id, opening)
    opening.catch(() => this.#signing.get(domain.id) === opening && this.#signing.delete(domain.id))
    return opening
  }

  /** Deletes keys that retired more than seven days ago. */
  async forgetRetired(): Promise<void> {
    await this.#database.transaction((tx) => tx.run(sql`DELETE FROM dkim_keys WHERE retired_at <= ${this.#parting()}`))
  }

  #parting(): string {
    return iso(this.#clock.now() - listedAfterRetirement)
  }

  async #open(domain: Owner): Promise<DkimKey[]> {
    await this.ensure(domain)
    const rows = await this.#database.all<Omit<DkimKey, 'private_key'> & { private_key: Uint8Array }>(
      sql`SELECT selector, algorithm, private_key FROM dkim_keys WHERE domain_id = ${domain.id} AND state = 'active' ORDER BY seq`,
    )
    return rows.map(({ selector, algorithm, private_key }) => {
      const key = this.#seal.open(private_key, place(domain, selector))
      return { selector, algorithm, private_key: createPrivateKey({ key, format: 'der', type: 'pkcs8' }) }
    })
  }

  async #endow(domain: Owner): Promise<void> {
    const [active, spare] = [await this.make(''), await this.make('')]
    const now = iso(this.#clock.now())
    await this.#database.transaction(async (tx) => {
      const { changes } = await tx.run(
        sql`UPDATE domains SET next_check_at = coalesce(next_check_at, ${now}) WHERE id = ${domain.id}
          AND NOT EXISTS (SELECT 1 FROM dkim_keys WHERE domain_id = ${domain.id})`,
      )
      // deleted meanwhile
      if (changes === 0) return
      await this.insert(tx, domain, active, 'active')
      await this.insert(tx, domain, spare, 'spare')
    })
    this.#nextCheck.by(this.#clock.now())
  }
}

const generatePair = promisify(generateKeyPair)

export const makeRsaPair: RsaPair = () => generatePair('rsa', { modulusLength: 2048 })

async function generate(algorithm: DkimKey['algorithm'], now: number, rsaPair: RsaPair): Promise<FreshKey> {
  const isRsa = algorithm === 'rsa-sha256'
  const pair = isRsa ? await rsaPair() : await generatePair('ed25519')
  const spki = pair.publicKey.export({ type: 'spki', format: 'der' })
  // RFC 8463 4.2: the record holds only the 32 octets of the Ed25519 key, which end its SubjectPublicKeyInfo
  const octets = isRsa ? spki : spki.subarray(-32)
  return {
    selector: selectorOf(isRsa ? 'r' : 'e', now),
    algorithm,
    public_text: octets.toString('base64'),
    secret: pair.privateKey.export({ type: 'pkcs8', format: 'der' }),
  }
}

/** `pb202611k3vr`: the month and random letters, so that no selector is used for two keys. */
function selectorOf(kind: 'r' | 'e', now: number): string {
  const suffix = Array.from({ length: 4 }, () => 'abcdefghijkmnpqrstuvwxyz23456789'[randomInt(32)])
  return `pb${iso(now).slice(0, 7).replace('-', '')}${suffix.join('')}${kind}`
}

/** The encryption context of a private key. */
function place({ name }: Owner, selector: string): string {
  return `dkim ${selector} ${name}`
}

/** The private DKIM keys, each bound to its selector and the domain's name. */
export const sealedKeys: SealedColumn = {
  table: 'dkim_keys',
  column: 'private_key',
  key: ['seq'],
  // the private key of a retired key is deleted
  only: 'length(dkim_keys.private_key) > 0',
  from: 'dkim_keys JOIN domains ON domains.id = dkim_keys.domain_id',
  context: ({ selector, name }) => `dkim ${String(selector)} ${String(name)}`,
}
