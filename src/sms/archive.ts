import { createHash } from 'node:crypto'
import * as z from 'zod'
import type { Plan } from '../accounts/plan.ts'
import { type Clock, iso } from '../core/clock.ts'
import { newId } from '../core/ids.ts'
import type { Caller } from '../core/scopes.ts'
import { TimestampInput } from '../core/shapes.ts'
import type { Identities } from '../identities/identities.ts'
import { insertBlob, readBlob } from '../store/blobs.ts'
import { type Database, sql, type Sql, type Transaction } from '../store/database.ts'
import { Sms, SmsStatus } from './model.ts'
import { bytesOfTexts, takeStorage } from './media-quota.ts'
import { type SmsRow, whole } from './rows.ts'

/** The fields of a text message in an archive that an import restores. */
const State = z.object({
  direction: Sms.shape.direction,
  status: SmsStatus,
  from: z.string().max(64),
  to: z.string().max(64),
  body: z.string().max(20_000),
  read: z.boolean(),
  provider: z.string().max(64),
  segments: z.int().min(0).max(1000),
  error: z.object({ code: z.string().max(64), message: z.string().max(1000) }).nullable(),
  media: z.array(z.object({ content_type: z.string().max(200), status: z.enum(['pending', 'kept', 'failed']) })).max(100),
  codes: z.array(z.string().max(64)).max(50),
  received_at: TimestampInput,
  sent_at: TimestampInput.nullable(),
  delivered_at: TimestampInput.nullable(),
})
export type SmsState = z.output<typeof State>

type Deps = { database: Database; clock: Clock; identities: Identities; plan: Plan }

/** Export and import of the text messages of an identity. */
export class SmsArchive {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** The messages after a position, in the order of their arrival. */
  async after(seq: number, identityId: string, limit: number): Promise<{ seq: number; sms: Sms }[]> {
    const rows = await this.#deps.database.all<SmsRow>(
      sql`SELECT * FROM sms WHERE identity_id = ${identityId} AND seq > ${seq} ORDER BY seq LIMIT ${limit}`,
    )
    const messages = await whole(this.#deps.database, rows)
    return rows.map((row, index) => ({ seq: row.seq, sms: messages[index]! }))
  }

  /** The bytes of a media file; undefined when they were never stored. */
  async media(smsId: string, index: number): Promise<Buffer | undefined> {
    const row = await this.#deps.database.get<{ blob_id: number | null }>(
      sql`SELECT blob_id FROM sms_media WHERE sms_id = ${smsId} AND position = ${index}`,
    )
    return row?.blob_id == null ? undefined : readBlob(this.#deps.database, row.blob_id)
  }

  /** Parses a line of an archive; undefined when it is not a text message of Pillarbox. */
  understand(value: unknown): SmsState | undefined {
    return State.safeParse(value).data
  }

  /**
   * Stores the message, unless one with the same numbers, time and text exists or the quota is exceeded. Emits no event and sends nothing.
   */
  async keep(
    tx: Transaction,
    caller: Caller,
    identityId: string,
    { state, media }: { state: SmsState; media: (Buffer | undefined)[] },
  ): Promise<'kept' | 'duplicate' | 'full'> {
    const { account_id } = await this.#deps.identities.row(caller, identityId, tx)
    if (await tx.get(twinOf(identityId, state))) return 'duplicate'
    const [error, codes] = [state.error && JSON.stringify(state.error), JSON.stringify(state.codes)]
    const types = state.media.map(({ content_type }) => content_type)
    const octets = bytesOfTexts(state.body, codes, error, state.provider, ...types)
    if (!(await takeStorage(tx, this.#deps.plan, { account_id, identity_id: identityId }, octets))) return 'full'
    const id = newId('sms')
    const unsent = state.status === 'held' || (state.direction === 'outbound' && state.status === 'queued')
    const status = unsent ? 'failed' : state.status
    await tx.run(
      sql`INSERT INTO sms (id, account_id, identity_id, direction, status, sender, recipient, body, read, provider, segments, error, codes,
          received_at, sent_at, delivered_at, created_at, octets)
        VALUES (${id}, ${account_id}, ${identityId}, ${state.direction}, ${status}, ${state.from}, ${state.to}, ${state.body}, ${state.read ? 1 : 0},
          ${state.provider}, ${state.segments}, ${error}, ${codes},
          ${state.received_at}, ${state.sent_at}, ${state.delivered_at}, ${iso(this.#deps.clock.now())}, ${octets})`,
    )
    for (const [position, { content_type }] of state.media.entries()) {
      const found = media[position]
      const room = found && (await takeStorage(tx, this.#deps.plan, { account_id, identity_id: identityId }, found.length))
      const bytes = room ? found : undefined
      const sha256 = bytes && createHash('sha256').update(bytes).digest()
      const blob = bytes && (await insertBlob(tx, { size: bytes.length, sha256: sha256!, deflated: false, bytes }))
      await tx.run(
        sql`INSERT INTO sms_media (sms_id, position, content_type, status, size, sha256, blob_id)
          VALUES (${id}, ${position}, ${content_type}, ${bytes ? 'kept' : 'failed'}, ${bytes?.length ?? null}, ${sha256?.toString('hex') ?? null}, ${blob ?? null})`,
      )
    }
    return 'kept'
  }
}

/** The most messages of one identity and time that are compared with another. */
const maxTwins = 100

/**
 * Finds the stored copy of an archived message. Only so many messages of the same millisecond are compared, as the archive's author chose
 * the time: further ones would be imported twice.
 */
export function twinOf(identityId: string, { direction, from, to, body, received_at }: SmsState): Sql {
  return sql`SELECT 1 FROM (
      SELECT direction, sender, recipient, body FROM sms WHERE identity_id = ${identityId} AND received_at = ${received_at} LIMIT ${maxTwins}
    ) AS near WHERE direction = ${direction} AND sender = ${from} AND recipient = ${to} AND body = ${body} LIMIT 1`
}
