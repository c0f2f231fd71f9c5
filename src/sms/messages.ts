import type { Basis } from '../basis.ts'
import type { Plan } from '../accounts/plan.ts'
import { hour, iso } from '../core/clock.ts'
import { page } from '../store/page.ts'
import { conflict, Fault, invalid, notFound } from '../core/fault.ts'
import { newId } from '../core/ids.ts'
import { type Caller, makerOf } from '../core/scopes.ts'
import type { HoldState, Page } from '../core/shapes.ts'
import { attemptsOf } from '../queue/history.ts'
import type { Queue } from '../queue/queue.ts'
import { endSome, window } from '../identities/cascade.ts'
import type { Identities } from '../identities/identities.ts'
import { isLiving } from '../identities/row.ts'
import type { Trash } from '../ops/retention/trash.ts'
import type { Holds } from '../policy/holds.ts'
import type { PolicyCheck } from '../policy/policy-check.ts'
import { join, sql, type Sql, type Transaction } from '../store/database.ts'
import type { Rows } from '../store/rows.ts'
import { smsKind, type SmsLoad, suspended } from './courier.ts'
import { digestOf, giveBack } from './held-sms.ts'
import { type NewSms, type Sms, type SmsChange, type SmsError, type SmsFilter, smsHeld } from './model.ts'
import { notConfigured, type Numbers } from './numbers.ts'
import { hasOptedOut } from './opt-outs.ts'
import { isOf, isPossible } from './phone-codes.ts'
import type { SmsProvider } from './provider.ts'
import { emitSms, findSms, type SmsRow, whole } from './rows.ts'
import { bytesOfTexts, countTexts } from './media-quota.ts'
import { segmentsOf } from './segments.ts'
import { SmsTrash } from './trash.ts'

interface SendingRules {
  /** Messages an hour; 0 is no limit. */
  rate_per_identity: number
  /** Countries that messages may be sent to; empty for all. */
  allow_countries: readonly string[]
}

interface Deps extends Pick<Basis, 'database' | 'clock' | 'cursors' | 'events'> {
  identities: Identities
  queue: Queue
  plan: Plan
  trash: Trash
  numbers: Numbers
  provider: SmsProvider | undefined
  rules: () => SendingRules
  policyCheck: PolicyCheck
  holds: Holds
}

/** Sent messages are not searched for codes. */
const noCodes = '[]'

/** The text messages of identities, for callers. */
export class Messages {
  readonly #deps: Deps
  readonly #thrown: SmsTrash

  constructor(deps: Deps) {
    this.#deps = deps
    this.#thrown = new SmsTrash(deps)
  }

  /** Stores a message and queues it, unless a policy holds it for a person. Throws Fault forbidden `policy_refused` where one refuses it. */
  async send(caller: Caller, identityId: string, { to, body }: NewSms): Promise<Sms> {
    const { database, identities, provider, numbers, rules, plan, policyCheck, holds, events } = this.#deps
    if (!isPossible(to)) throw invalid('to', `${to} is not a valid number: it has too few or too many digits.`)
    const { allow_countries } = rules()
    if (allow_countries.length > 0 && !isOf(to, allow_countries)) {
      throw new Fault('forbidden', `Messages can be sent only to ${allow_countries.join(', ')}.`, {
        code: 'country_not_allowed',
        param: 'to',
      })
    }
    return database.transaction(async (tx) => {
      const identity = await identities.row(caller, identityId, tx)
      if (!provider) throw notConfigured()
      if (identity.status === 'suspended') {
        throw conflict('This identity is suspended and cannot send.', { code: 'identity_suspended' })
      }
      const number = await numbers.of(tx, identityId)
      if (number.provider !== provider.name || !provider.capabilities.send) {
        throw conflict(`The number belongs to ${number.provider}, which is not the configured provider.`, {
          code: 'provider_not_configured',
        })
      }
      if (await hasOptedOut(tx, number.number, to)) {
        throw new Fault('forbidden', `${to} has opted out of this number (STOP).`, { code: 'recipient_opted_out', param: 'to' })
      }
      await plan.take(tx, identity.account_id, 'sms_sent')
      await plan.require(tx, identity.account_id, 'storage_bytes', bytesOfTexts(body, noCodes))
      await this.#count(tx, identityId)
      const held = policyCheck.admitted(await policyCheck.sms(tx, caller, { owner: identity, number: to, body }))
      const hold = held ? await holds.prepare(tx, identity) : null
      const { account_id } = identity
      const row = await this.#insert(tx, { account_id, identity_id: identityId, from: number.number, to, body, hold })
      if (held && hold) {
        const sha256 = digestOf(to, body)
        const created_by = makerOf(caller)
        await holds.insert(tx, hold, { kind: 'sms', owner: identity, created_by, caller, about: row.id, sha256, held })
        await emitSms(tx, events, smsHeld, row)
      }
      return (await whole(tx, [row]))[0]!
    })
  }

  async list(caller: Caller, identityId: string, filter: SmsFilter): Promise<Page<Sms>> {
    const { database, cursors, identities } = this.#deps
    await identities.row(caller, identityId)
    const { limit: _limit, cursor: _cursor, offset: _offset, ...named } = filter
    const listed = await page<SmsRow, SmsRow>(database, cursors, filter, {
      name: `sms ${identityId} ${JSON.stringify(named)}`,
      account: caller.account_id,
      ...selection(identityId, filter),
      octets: sql`octets`,
      present: (row) => row,
    })
    return { ...listed, data: await whole(database, listed.data) }
  }

  async get(caller: Caller, identityId: string, id: string): Promise<Sms> {
    return (await whole(this.#deps.database, [await this.row(caller, identityId, id)]))[0]!
  }

  /** The row of a message the caller may see. */
  async row(caller: Caller, identityId: string, id: string): Promise<SmsRow> {
    await this.#deps.identities.row(caller, identityId)
    return findSms(this.#deps.database, identityId, id)
  }

  async change(caller: Caller, identityId: string, id: string, change: SmsChange): Promise<Sms> {
    const { read, unread } = change
    if (read !== undefined && unread !== undefined && read === unread) {
      throw invalid('unread', 'read and unread contradict each other; send only one of them.')
    }
    const after = read ?? (unread === undefined ? undefined : !unread)
    return this.#deps.database.transaction(async (tx) => {
      await this.#deps.identities.row(caller, identityId, tx)
      const row = await findSms(tx, identityId, id)
      const next = after === undefined ? row.read : after ? 1 : 0
      await tx.run(sql`UPDATE sms SET read = ${next} WHERE id = ${id}`)
      return (await whole(tx, [{ ...row, read: next }]))[0]!
    })
  }

  /** Moves the message to the trash, or with `purge` deletes it, from the trash too; an unsent message is cancelled. */
  async remove(caller: Caller, identityId: string, id: string, purge: boolean): Promise<{ id: string; deleted: true }> {
    const { database, identities, trash } = this.#deps
    return database.transaction(async (tx) => {
      await identities.row(caller, identityId, tx)
      const row = await tx.get<SmsRow>(sql`SELECT * FROM sms WHERE id = ${id} AND identity_id = ${identityId}`)
      if (row) {
        await this.#withdraw(tx, row)
        await this.#thrown.put(tx, row)
      } else if (!purge || !(await this.#thrown.find(tx, identityId, id))) throw notFound('SMS')
      if (purge) await trash.purge(tx, this.#thrown.kind, id)
      return { id, deleted: true }
    })
  }

  /** Restores from the trash. */
  async restore(caller: Caller, identityId: string, id: string): Promise<Sms> {
    const { database, identities } = this.#deps
    await database.transaction(async (tx) => {
      await identities.row(caller, identityId, tx)
      if (!(await this.#thrown.find(tx, identityId, id))) throw notFound('SMS in the trash')
      await this.#thrown.restore(tx, id)
    })
    return this.get(caller, identityId, id)
  }

  /** Cancels the unsent messages of a deleted identity, a batch after a position. Returns where to continue; undefined at the end. */
  async cancel(tx: Transaction, identityId: string, after: number): Promise<number | undefined> {
    const { queue } = this.#deps
    const rows = await tx.all<SmsRow>(
      sql`SELECT * FROM sms WHERE identity_id = ${identityId} AND seq > ${after} ORDER BY seq LIMIT ${window}`,
    )
    return endSome(rows, async (row) => {
      const { id, status, attempting, delivery_id } = row
      if (status === 'held') {
        await this.#withdrawHold(tx, row, null)
        return 1
      }
      // running attempts end by themselves
      if (status !== 'queued' || attempting === 1) return 0
      if (!(await this.#takeBack(tx, row)) && delivery_id !== null) await queue.abandon(tx, delivery_id)
      await tx.run(sql`UPDATE sms SET status = 'failed' WHERE id = ${id}`)
      return 1
    })
  }

  /** Attempts now what waits only because the identity was suspended, in the transaction that makes it active. */
  async resume(tx: Transaction, identityId: string): Promise<void> {
    const { queue } = this.#deps
    const rows = await tx.all<{ id: string }>(
      sql`SELECT deliveries_queue.id FROM phone_numbers JOIN deliveries_queue ON kind = ${smsKind}
        AND lane = phone_numbers.provider || ' ' || number AND deliveries_queue.account_id = phone_numbers.account_id AND state = 'waiting'
        WHERE identity_id = ${identityId} AND phone_numbers.status = 'active' ORDER BY due_at, deliveries_queue.seq LIMIT ${window}`,
    )
    const attempts = await attemptsOf(
      tx,
      rows.map(({ id }) => id),
    )
    for (const [id, its] of attempts) if (its.at(-1)?.answer === suspended) await queue.retryNow(tx, id)
  }

  /** The rows of one identity: a SELECT without ORDER BY. */
  rowsQuery(identityId: string): Sql {
    return sql`SELECT seq, created_at FROM sms WHERE identity_id = ${identityId}`
  }

  /** The times of the messages after a position, in the order of their arrival, for the timeline. */
  heads(identityId: string, after: number, limit: number): Promise<{ seq: number; created_at: string; octets: number }[]> {
    return this.#deps.database.all(
      sql`SELECT seq, created_at, octets FROM sms WHERE identity_id = ${identityId} AND seq > ${after} ORDER BY seq LIMIT ${limit}`,
    )
  }

  /** The messages in these rows. */
  async at(seqs: readonly number[]): Promise<Map<number, Sms>> {
    if (seqs.length === 0) return new Map()
    const { database } = this.#deps
    const rows = await database.all<SmsRow>(sql`SELECT * FROM sms WHERE seq IN (${join([...seqs])})`)
    const messages = await whole(database, rows)
    return new Map(rows.map(({ seq }, index) => [seq, messages[index]!]))
  }

  /** The senders of these messages; those that were deleted are left out. */
  briefs(ids: readonly string[]): Promise<Pick<Sms, 'id' | 'from'>[]> {
    return this.#deps.database.all(
      sql`SELECT id, sender AS "from" FROM sms WHERE id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`,
    )
  }

  /** The row of a signed URL, while the message and its identity exist. */
  async signedRow(id: string): Promise<SmsRow> {
    const row = await this.#deps.database.get<SmsRow>(
      sql`SELECT sms.* FROM sms JOIN identities ON identities.id = sms.identity_id WHERE sms.id = ${id} AND ${isLiving(iso(this.#deps.clock.now()))}`,
    )
    if (!row) throw notFound('SMS')
    return row
  }

  /** Cancels a waiting message and refunds its count; returns whether it was waiting. */
  async #takeBack(tx: Transaction, { account_id, status, delivery_id, created_at }: SmsRow): Promise<boolean> {
    const { queue, plan } = this.#deps
    if (status !== 'queued' || delivery_id === null || !(await queue.cancel(tx, delivery_id))) return false
    await plan.add(tx, account_id, 'sms_sent', -1, Date.parse(created_at))
    return true
  }

  /** Cancels a message that is about to be deleted; the result of a running attempt will not be stored. */
  async #withdraw(tx: Transaction, row: SmsRow): Promise<void> {
    const deleted: SmsError = { code: 'deleted', message: 'It was deleted before it was sent.' }
    if (row.status === 'held') return this.#withdrawHold(tx, row, deleted)
    if (row.status !== 'queued') return
    const waited = (await this.#takeBack(tx, row)) || (await this.#deps.queue.abandon(tx, row.delivery_id ?? ''))
    const error: SmsError = waited ? deleted : { code: 'answer_lost', message: 'It was deleted while it was being sent.' }
    await tx.run(
      sql`UPDATE sms SET status = ${waited ? 'failed' : 'unknown'}, error = ${JSON.stringify(error)} WHERE id = ${row.id}`,
    )
  }

  /** Ends a held message and its hold, and takes back its counts. */
  async #withdrawHold(tx: Transaction, row: SmsRow, error: SmsError | null): Promise<void> {
    const { holds, plan } = this.#deps
    const hold = await holds.withdraw(tx, row.id)
    await giveBack(tx, plan, row)
    await tx.run(
      sql`UPDATE sms SET status = 'failed', error = ${error && JSON.stringify(error)}, hold = ${hold ? JSON.stringify(hold) : row.hold} WHERE id = ${row.id}`,
    )
  }

  async #count(tx: Transaction, identityId: string): Promise<void> {
    const { rules, clock } = this.#deps
    const max = rules().rate_per_identity
    const now = clock.now()
    const key = iso(now).slice(0, 13)
    const row = await tx.get<{ recipients: number }>(
      sql`INSERT INTO sent_counts (subject, hour, recipients) VALUES (${`sms ${identityId}`}, ${key}, 1)
        ON CONFLICT (subject, hour) DO UPDATE SET recipients = sent_counts.recipients + 1 RETURNING recipients`,
    )
    if (max === 0 || row!.recipients <= max) return
    throw new Fault('rate_limited', `This identity may send ${max} text messages an hour.`, {
      code: 'sms_rate',
      retryAfter: Math.ceil((hour - (now % hour)) / 1000),
    })
  }

  async #insert(
    tx: Transaction,
    message: { account_id: string; identity_id: string; from: string; to: string; body: string; hold: HoldState | null },
  ): Promise<SmsRow> {
    const { clock, queue, provider, plan } = this.#deps
    const id = newId('sms')
    const now = iso(clock.now())
    const { account_id, identity_id, from, to, body, hold } = message
    const octets = bytesOfTexts(body, noCodes)
    const load: SmsLoad = { sms_id: id }
    const lane = `${provider!.name} ${from}`
    const delivery = hold ? null : await queue.enqueue(tx, { kind: smsKind, lane, account_id, load })
    const row = await tx.get<SmsRow>(
      sql`INSERT INTO sms (id, account_id, identity_id, direction, status, sender, recipient, body, read, provider, segments, codes, delivery_id, hold,
          received_at, created_at, octets)
        VALUES (${id}, ${account_id}, ${identity_id}, 'outbound', ${hold ? 'held' : 'queued'}, ${from}, ${to}, ${body}, 1, ${provider!.name}, ${segmentsOf(body)},
          ${noCodes}, ${delivery}, ${hold && JSON.stringify(hold)}, ${now}, ${now}, ${octets}) RETURNING *`,
    )
    await countTexts(tx, plan, row!, octets)
    return row!
  }
}

/** The condition of a list of messages. */
function selection(identityId: string, filter: SmsFilter): Pick<Rows, 'from' | 'where' | 'filters'> {
  const { trash, unread, direction, from, to, after, before } = filter
  const filters: Sql[] = []
  if (direction !== 'all') filters.push(sql`direction = ${direction}`)
  if (from !== undefined) filters.push(sql`instr(lower(sender), lower(${from})) > 0`)
  if (to !== undefined) filters.push(sql`instr(recipient, ${to}) > 0`)
  // an expression, so that the rows are read in the order of the list and not by the index of times
  if (after !== undefined) filters.push(sql`received_at || '' > ${after}`)
  if (before !== undefined) filters.push(sql`received_at || '' < ${before}`)
  const own = sql`identity_id = ${identityId}`
  if (unread === true && !trash) return { from: sql`sms`, where: sql`${own} AND read = 0`, filters }
  if (unread !== undefined) filters.push(sql`read = ${unread ? 0 : 1}`)
  return { from: trash ? sql`sms_trash` : sql`sms`, where: own, filters }
}
