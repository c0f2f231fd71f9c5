import { randomBytes } from 'node:crypto'
import { actors } from '../../core/audit.ts'
import { day, iso } from '../../core/clock.ts'
import { conflict, Fault } from '../../core/fault.ts'
import { type Database, sql, type Transaction } from '../../store/database.ts'
import type { Account, SetupLink, SetupInput } from '../model.ts'
import { keyHash } from '../secret.ts'
import { requirePassword } from './password-rules.ts'
import type { SignInDeps } from './sign-in.ts'

interface Deps extends Pick<SignInDeps, 'database' | 'clock' | 'log' | 'audit' | 'accounts' | 'logins' | 'hashes'> {
  publicUrl: () => string
}

/** How long a setup link is valid, in milliseconds. */
const lifetime = day

/** Sets the first password of an account by a link from the operator: once, and within a day. */
export class AccountSetup {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Creates a link that replaces any earlier one. Throws Fault 409, code `password_set`, for an account that has a password. */
  async invite(accountId: string): Promise<SetupLink> {
    const { database, clock, accounts, logins, publicUrl } = this.#deps
    const { name } = await accounts.of(accountId)
    const token = randomBytes(32).toString('base64url')
    const expires_at = iso(clock.now() + lifetime)
    await database.transaction(async (tx) => {
      if (await logins.ofOwner(accountId, tx)) {
        throw conflict(`${name} has a password already. To reset a forgotten one, use pillarbox account password.`, {
          code: 'password_set',
        })
      }
      await tx.run(sql`INSERT INTO setup_links (account_id, hash, expires_at) VALUES (${accountId}, ${keyHash(token)}, ${expires_at})
        ON CONFLICT (account_id) DO UPDATE SET hash = ${keyHash(token)}, expires_at = ${expires_at}`)
    })
    // in the fragment, which browsers do not send, so that it is in no server's log
    return { url: `${publicUrl()}/setup#token=${token}`, expires_at }
  }

  /** Throws Fault 403, code `setup_link_invalid`, for an invalid token; otherwise as a change of the password does. */
  async finish(input: SetupInput, from: { ip: string }): Promise<Account> {
    const { database, clock, log, audit, accounts, logins, hashes } = this.#deps
    const { token, email, password } = input
    // without a link, no slow hash is computed
    await this.#accountOf(token)
    requirePassword(password, email)
    const hash = await hashes.hash(password)
    const accountId = await database.transaction(async (tx) => {
      const account_id = await this.#accountOf(token, tx)
      if (await logins.ofOwner(account_id, tx)) throw invalidLink()
      await logins.insert(tx, { account_id, role: 'owner', email, password: hash, at: iso(clock.now()) })
      await tx.run(sql`DELETE FROM setup_links WHERE account_id = ${account_id}`)
      const who = { account_id, actor: actors.anonymous, client: null, address: from.ip }
      await audit.append(tx, { ...who, action: 'password.set', target: account_id, identity_id: null, detail: {} })
      return account_id
    })
    log.info({ account_id: accountId, address: from.ip }, 'first password set by link')
    return accounts.of(accountId)
  }

  async #accountOf(token: string, reader: Database | Transaction = this.#deps.database): Promise<string> {
    const { clock, accounts } = this.#deps
    const row = await reader.get<{ account_id: string; expires_at: string }>(
      sql`SELECT account_id, expires_at FROM setup_links WHERE hash = ${keyHash(token)}`,
    )
    if (!row || Date.parse(row.expires_at) <= clock.now() || !accounts.exists(row.account_id)) throw invalidLink()
    return row.account_id
  }
}

function invalidLink(): Fault {
  return new Fault(
    'forbidden',
    'This link is no longer valid: it was used or replaced, or is older than a day. The operator can create another: pillarbox account setup-link.',
    { code: 'setup_link_invalid', param: 'token' },
  )
}
