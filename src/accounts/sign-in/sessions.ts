import { randomBytes } from 'node:crypto'
import { lruMap } from '../../core/memory.ts'
import { type Clock, iso } from '../../core/clock.ts'
import { type Cursors, page } from '../../store/page.ts'
import { newId } from '../../core/ids.ts'
import { type Caller, type Role, scopesOfRole } from '../../core/scopes.ts'
import type { Page, Paging } from '../../core/shapes.ts'
import { type Database, empty, sql, type Sql, type Transaction } from '../../store/database.ts'
import type { Holder } from '../keys.ts'
import type { SessionEntry } from '../model.ts'
import type { LoginRow } from './logins.ts'
import { keyHash } from '../secret.ts'

export interface SessionRow extends Omit<SessionEntry, 'current' | 'expires_at'> {
  seq: number
  account_id: string
  person_id: string
  role: Role
  hash: string
}

/** Session settings; durations in milliseconds. */
interface SessionSettings {
  /** Calls a minute; 0 is no limit. */
  rate_limit: number
  session_idle: number
  session_lifetime: number
}

/** A cached session: all that admission needs without a query. */
interface Known {
  id: string
  account_id: string
  person_id: string
  role: Role
  began: number
  used: number
}

type Identified = Omit<Caller, 'ip' | 'user_agent'>

/** The most sessions of one person; one more ends the oldest. */
const maxSessions = 100

/** The longest stored User-Agent, in characters. */
const longestUserAgent = 200

const withRole = sql`SELECT sessions.*, logins.role FROM sessions JOIN logins ON logins.id = sessions.person_id`

/** Sessions of signed-in people. The browser keeps 256 random bits, the database their SHA-256. Used sessions are cached until they end. */
export class Sessions {
  readonly #database: Database
  readonly #clock: Clock
  readonly #cursors: Cursors
  readonly #exists: (accountId: string) => boolean
  #settings: SessionSettings
  #known = lruMap<Known>(10_000)
  readonly #used = new Map<string, number>()
  readonly #ended = new Set<(id: string) => void>()

  constructor(deps: {
    database: Database
    clock: Clock
    cursors: Cursors
    settings: SessionSettings
    /** True if the operator's list still has the account. */
    exists: (accountId: string) => boolean
  }) {
    this.#database = deps.database
    this.#clock = deps.clock
    this.#cursors = deps.cursors
    this.#exists = deps.exists
    this.#settings = deps.settings
    deps.database.caches.onInvalid('sessions', () => this.#forgetKnown())
  }

  reload(settings: SessionSettings): void {
    this.#settings = settings
  }

  /** The session of this token; undefined when it is unknown or has ended. */
  async authenticate(token: string): Promise<Identified | undefined> {
    const known = await this.#find(keyHash(token))
    const now = this.#clock.now()
    if (!known || !this.#lives(known, now)) return undefined
    known.used = now
    this.#used.set(known.id, now)
    return this.#identified(known)
  }

  /** Looks a session up by its id, for work that outlives the call that started it. */
  async holder(id: string): Promise<Holder | undefined> {
    const row = await this.row(id)
    if (!row) return undefined
    return { ...this.#identified(row), until: this.endOf(row) }
  }

  /** Undefined once it has ended. */
  async row(id: string): Promise<SessionRow | undefined> {
    const row = await this.#database.get<SessionRow>(sql`${withRole} WHERE sessions.id = ${id}`)
    return row && this.#lives(this.#knownOf(row), this.#clock.now()) ? row : undefined
  }

  /** The absolute end regardless of use, in milliseconds since the epoch. */
  endOf({ created_at }: Pick<SessionRow, 'created_at'>): number {
    return Date.parse(created_at) + this.#settings.session_lifetime
  }

  /** The listener gets the id of each session that was ended or expired of inactivity, once that is on disk. */
  onChange(listener: (id: string) => void): void {
    this.#ended.add(listener)
  }

  /** Creates a session under a new token, which the browser keeps. */
  async open(
    tx: Transaction,
    { id: personId, account_id, role }: Pick<LoginRow, 'id' | 'account_id' | 'role'>,
    from: Pick<Caller, 'ip' | 'user_agent'>,
  ): Promise<SessionRow & { token: string }> {
    const token = randomBytes(32).toString('base64url')
    const now = iso(this.#clock.now())
    const user_agent = from.user_agent.slice(0, longestUserAgent)
    await this.#end(
      tx,
      sql`person_id = ${personId} AND seq NOT IN (SELECT seq FROM sessions WHERE person_id = ${personId} ORDER BY seq DESC LIMIT ${maxSessions - 1})`,
    )
    const row = await tx.get<Omit<SessionRow, 'role'>>(
      sql`INSERT INTO sessions (id, account_id, person_id, hash, ip, user_agent, created_at, last_used_at)
        VALUES (${newId('sess')}, ${account_id}, ${personId}, ${keyHash(token)}, ${from.ip}, ${user_agent}, ${now}, ${now}) RETURNING *`,
    )
    return { ...row!, role, token }
  }

  /** Ends all sessions of a person except `keep`. */
  endAll(tx: Transaction, { id }: Pick<LoginRow, 'id'>, keep: string | null): Promise<number> {
    return this.#end(tx, sql`person_id = ${id}${keep === null ? empty : sql` AND id <> ${keep}`}`)
  }

  async signOut(id: string): Promise<{ id: string; deleted: true }> {
    await this.#database.transaction((tx) => this.#end(tx, sql`id = ${id}`))
    return { id, deleted: true }
  }

  /** Ends every other session of a person; for a key, all of the account. */
  async signOutElsewhere({ account_id, session_id, person }: Caller): Promise<{ id: string; deleted: true; count: number }> {
    const count = await this.#database.transaction((tx) =>
      person ? this.endAll(tx, person, session_id) : this.#end(tx, sql`account_id = ${account_id}`),
    )
    return { id: account_id, deleted: true, count }
  }

  /** The active sessions of a person; for a key, those of the account. */
  list(caller: Caller, paging: Paging): Promise<Page<SessionEntry>> {
    const now = this.#clock.now()
    const { session_idle, session_lifetime } = this.#settings
    const whose = caller.person ? sql`person_id = ${caller.person.id}` : sql`account_id = ${caller.account_id}`
    return page<SessionRow, SessionEntry>(this.#database, this.#cursors, paging, {
      name: `sessions ${caller.person?.id ?? caller.account_id}`,
      from: sql`sessions`,
      account: caller.account_id,
      where: whose,
      filters: [
        sql`created_at > ${iso(now - session_lifetime)}`,
        sql`(last_used_at > ${iso(now - session_idle)} OR id = ${caller.session_id})`,
      ],
      present: (row) => {
        const { id, ip, user_agent, created_at, last_used_at } = row
        return {
          id,
          current: id === caller.session_id,
          ip,
          user_agent,
          created_at,
          last_used_at,
          expires_at: iso(this.endOf(row)),
        }
      },
    })
  }

  /** Stores when each session was last used, and ends inactive ones. Runs on a schedule, so that calls do not write. */
  async tidy(): Promise<void> {
    const now = this.#clock.now()
    const [idle, old] = [iso(now - this.#settings.session_idle), iso(now - this.#settings.session_lifetime)]
    const over = sql`last_used_at <= ${idle} OR created_at <= ${old}`
    const used = [...this.#used]
    if (used.length === 0 && !(await this.#database.get(sql`SELECT 1 FROM sessions WHERE ${over} LIMIT 1`))) return
    await this.#database.transaction(async (tx) => {
      for (const [id, at] of used)
        await tx.run(sql`UPDATE sessions SET last_used_at = ${iso(at)} WHERE id = ${id} AND last_used_at < ${iso(at)}`)
      await this.#end(tx, over)
    })
    for (const [id, at] of used) if (this.#used.get(id) === at) this.#used.delete(id)
  }

  async #end(tx: Transaction, which: Sql): Promise<number> {
    const ended = await tx.all<{ id: string }>(sql`DELETE FROM sessions WHERE ${which} RETURNING id`)
    if (ended.length > 0) {
      await this.#database.caches.invalidate(tx, 'sessions')
      tx.afterCommit(() => this.#forget(ended.map(({ id }) => id)))
    }
    return ended.length
  }

  #forget(ids: string[]): void {
    this.#forgetKnown()
    for (const id of ids) {
      this.#used.delete(id)
      for (const listener of this.#ended) listener(id)
    }
  }

  #forgetKnown(): void {
    this.#known = lruMap<Known>(10_000)
  }

  async #find(hash: string): Promise<Known | undefined> {
    // what is read before a change must not be found after it
    const cache = this.#known
    const found = this.#database.caches.valid ? cache.get(hash) : undefined
    // another box may have seen it since
    if (found && this.#lives(found, this.#clock.now())) return found
    const row = await this.#database.get<SessionRow>(sql`${withRole} WHERE hash = ${hash}`)
    if (!row) return undefined
    const known = this.#knownOf(row)
    cache.set(hash, known)
    return known
  }

  #knownOf({ id, account_id, person_id, role, created_at, last_used_at }: SessionRow): Known {
    const used = Math.max(Date.parse(last_used_at), this.#used.get(id) ?? 0)
    return { id, account_id, person_id, role, began: Date.parse(created_at), used }
  }

  #lives({ account_id, began, used }: Known, now: number): boolean {
    const { session_idle, session_lifetime } = this.#settings
    return now < began + session_lifetime && now < used + session_idle && this.#exists(account_id)
  }

  #identified({ id, account_id, person_id, role }: Pick<Known, 'id' | 'account_id' | 'person_id' | 'role'>): Identified {
    const { rate_limit } = this.#settings
    return {
      account_id,
      key_id: null,
      session_id: id,
      person: { id: person_id, role },
      secret: 0,
      scopes: scopesOfRole[role],
      identity_id: null,
      rate_limit,
      until: Infinity,
    }
  }
}
