import { randomBytes } from 'node:crypto'
import type { Keys, Holder } from '../../accounts/keys.ts'
import { keyHash } from '../../accounts/secret.ts'
import { actorOf, type AuditRecorder } from '../../core/audit.ts'
import { type Clock, day, iso } from '../../core/clock.ts'
import { Fault } from '../../core/fault.ts'
import type { Caller } from '../../core/scopes.ts'
import { type Database, sql, type Sql, type Transaction } from '../../store/database.ts'
import type { Offered } from './model.ts'
import { OAuthError } from './oauth-error.ts'

/** Seconds for which an access token is valid, and milliseconds for which a grant lasts after its last use by a refresh token. */
const accessSeconds = 3600
const refreshTime = 90 * day

/** The answer of the token endpoint (RFC 6749 5.1). */
export interface Tokens {
  access_token: string
  token_type: 'Bearer'
  expires_in: number
  refresh_token: string
  scope: string
}

interface NewGrant {
  client_id: string
  label: string
  identity_id: string
  scopes: Offered[]
}

interface Row {
  key_id: string
  client_id: string
  access_until: string
  refresh_until: string
}

/**
 * What people have granted. A grant is an API key that is bound to one identity and whose secret nobody has: it is listed with the keys, counts against
 * their limits, and ends as they do. Its tokens are accepted by `/mcp` alone.
 */
export class Grants {
  readonly #database: Database
  readonly #clock: Clock
  readonly #keys: Keys
  readonly #audit: AuditRecorder

  constructor({ database, clock, keys, audit }: { database: Database; clock: Clock; keys: Keys; audit: AuditRecorder }) {
    this.#database = database
    this.#audit = audit
    this.#clock = clock
    this.#keys = keys
  }

  /** Grants as the person who has consented. Returns the id of the key too. */
  async create(person: Caller, { client_id, label, identity_id, scopes }: NewGrant): Promise<{ key_id: string; tokens: Tokens }> {
    const { columns, tokens } = this.#fresh(scopes, newFamily())
    // with its key: one without tokens would be of nobody
    const record = async (tx: Transaction, made: unknown): Promise<boolean> => {
      const { id } = made as { id: string }
      await tx.run(
        sql`INSERT INTO oauth_grants (key_id, client_id, access_hash, access_until, refresh_hash, refresh_until, family_hash)
          VALUES (${id}, ${client_id}, ${columns.access_hash}, ${columns.access_until}, ${columns.refresh_hash}, ${columns.refresh_until},
            ${columns.family_hash})`,
      )
      const what = { action: 'oauth_grant.created', target: id, identity_id, detail: { scopes } }
      await this.#audit.append(tx, { ...actorOf(person), client: clientName(client_id), ...what })
      return true
    }
    const { id } = await this.#database.recording({ record, recorded: false }, () =>
      this.#keys.create(person, { label, scopes, identity_id }),
    )
    return { key_id: id, tokens }
  }

  /** New tokens for a refresh token, which is used up. One that was used before has been stolen, or its thief's has: the grant ends. */
  async refresh(token: string, clientId: string): Promise<Tokens> {
    const hash = keyHash(token)
    const row = await this.#row(sql`refresh_hash = ${hash}`)
    const family = familyOf(token)
    if (!row) {
      const later = family === undefined ? undefined : await this.#row(sql`family_hash = ${keyHash(family)}`)
      if (later) await this.end(later.key_id)
      throw new OAuthError('invalid_grant', 'This refresh token is not valid: it was used before, or its grant has ended.')
    }
    if (row.client_id !== clientId) throw new OAuthError('invalid_grant', 'This refresh token belongs to another client.')
    const held = await this.#keys.evenStopped(row.key_id, 0)
    if (!held || Date.parse(row.refresh_until) <= this.#clock.now()) {
      throw new OAuthError('invalid_grant', 'This grant has ended. Ask for a new one.')
    }
    const { columns, tokens } = this.#fresh([...held.scopes], family ?? newFamily())
    // of two at the same time one finds the token used
    const updated = await this.#database.transaction((tx) =>
      tx.get(
        sql`UPDATE oauth_grants SET access_hash = ${columns.access_hash}, access_until = ${columns.access_until}, family_hash = ${columns.family_hash},
          refresh_hash = ${columns.refresh_hash}, refresh_until = ${columns.refresh_until} WHERE refresh_hash = ${hash} RETURNING 1`,
      ),
    )
    if (!updated) throw new OAuthError('invalid_grant', 'This refresh token is being used by another request.')
    return tokens
  }

  /** The rights of an access token; undefined for any other text. */
  async authenticate(token: string): Promise<Holder | undefined> {
    if (!token.startsWith(prefixes.access)) return undefined
    const row = await this.#row(sql`access_hash = ${keyHash(token)}`)
    if (!row || Date.parse(row.access_until) <= this.#clock.now()) return undefined
    this.#keys.noteUsed(row.key_id)
    const held = await this.#keys.evenStopped(row.key_id, 0)
    return held && { ...held, client: clientName(row.client_id) }
  }

  /** Ends the grant of a token, of either kind (RFC 7009), also of a refresh token that was used up. */
  async revoke(token: string): Promise<void> {
    const hash = keyHash(token)
    const family = keyHash(familyOf(token) ?? '')
    const row = await this.#row(sql`access_hash = ${hash} OR refresh_hash = ${hash} OR family_hash = ${family}`)
    if (row) await this.end(row.key_id)
  }

  /** Ends a grant as its own key would, also while the account is stopped. */
  async end(keyId: string): Promise<void> {
    const [row, held] = [await this.#row(sql`key_id = ${keyId}`), await this.#keys.evenStopped(keyId, 0)]
    if (!row || !held) return
    const { identity_id } = held
    const caller = { ...held, client: clientName(row.client_id), ip: '', user_agent: '' }
    const entry = { ...actorOf(caller), action: 'oauth_grant.ended', target: keyId, identity_id, detail: {} }
    const record = async (tx: Transaction): Promise<boolean> => (await this.#audit.append(tx, entry), true)
    try {
      await this.#database.recording({ record, recorded: false }, () => this.#keys.revokeGrant(held, keyId))
    } catch (error) {
      // another request has ended it meanwhile
      if (!(error instanceof Fault) || error.type !== 'not_found') throw error
    }
  }

  #row(condition: Sql): Promise<Row | undefined> {
    return this.#database.get<Row>(
      sql`SELECT key_id, client_id, access_until, refresh_until FROM oauth_grants WHERE ${condition}`,
    )
  }

  #fresh(scopes: readonly string[], family: string) {
    const access_token = newToken(prefixes.access)
    const refresh_token = newToken(family)
    const now = this.#clock.now()
    const columns = {
      access_hash: keyHash(access_token),
      access_until: iso(now + accessSeconds * 1000),
      refresh_hash: keyHash(refresh_token),
      refresh_until: iso(now + refreshTime),
      family_hash: keyHash(family),
    }
    const tokens: Tokens = {
      access_token,
      token_type: 'Bearer',
      expires_in: accessSeconds,
      refresh_token,
      scope: scopes.join(' '),
    }
    return { columns, tokens }
  }
}

/** How the audit log names a client: by its URL; an id that was registered is long, and has what the client says of itself. */
function clientName(id: string): string {
  return id.startsWith('https://') && id.length <= 200 ? id : `oauth_${keyHash(id).slice(0, 22)}`
}

/** Secret scanners, and we, tell tokens from keys by these. */
const prefixes = { access: 'pbxo_', refresh: 'pbxr_' }

function newToken(prefix: string): string {
  return `${prefix}${randomBytes(32).toString('base64url')}`
}

/** What all refresh tokens of one grant begin with: 128 bits that nobody else knows. */
function newFamily(): string {
  return `${prefixes.refresh}${randomBytes(16).toString('hex')}.`
}

/** The beginning of a refresh token with the period; undefined for tokens from before there were families. */
function familyOf(token: string): string | undefined {
  const end = token.indexOf('.') + 1
  return end === 0 ? undefined : token.slice(0, end)
}
