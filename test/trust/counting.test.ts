import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { Agents } from '../../src/agents/agents.ts'
import { Cursors } from '../../src/store/page.ts'
import type { EventHeader } from '../../src/events/model.ts'
import { EventLog } from '../../src/events/log.ts'
import { Identities } from '../../src/identities/identities.ts'
import { Quota } from '../../src/mail/quota.ts'
import { Trash } from '../../src/ops/retention/trash.ts'
import { sql } from '../../src/store/database.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { limitless } from '../support/limitless.ts'
import { Counting } from '../../src/trust/counting.ts'
import { factOf } from '../../src/trust/facts.ts'
import { countersOf, Reputations } from '../../src/trust/reputations.ts'
import { type Counters, nothing } from '../../src/trust/score.ts'
import { folder } from '../support/folder.ts'
import { prepareByCopy } from '../support/new-database.ts'
import { quiet } from '../store/opened.ts'

/** One thing that happens to one of three identities; `message` is which of its few messages it is about. */
const step = fc.record({
  what: fc.constantFrom(
    'delivered',
    'sent',
    'bounced',
    'soft',
    'within',
    'complained',
    'answered',
    'reported',
    'erased',
    'removed',
  ),
  who: fc.nat({ max: 2 }),
  message: fc.nat({ max: 3 }),
  kind: fc.constantFrom('positive', 'negative', 'dispute'),
  weight: fc.integer({ min: 1, max: 5000 }),
})
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

/** What each would add, told apart from how it is told by the log. */
const worth: Record<string, keyof Counters | undefined> = {
  delivered: 'deliveries',
  sent: 'deliveries',
  bounced: 'bounces',
  complained: 'complaints',
  answered: 'replies',
}

const told: Record<string, [type: string, remark: string | null]> = {
  delivered: ['email.delivered', 'outside'],
  sent: ['email.sent', 'outside'],
  bounced: ['email.bounced', 'nobody'],
  soft: ['email.bounced', null],
  within: ['email.delivered', null],
  complained: ['email.complained', 'outside'],
  answered: ['email.received', 'answer'],
}

test('counted step by step, cut off anywhere, and counted from the log alone are the same', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 60 }), fc.nat({ max: 59 }), async (steps, cut) => {
      const box = await Desk.open()
      try {
        for (const one of steps.slice(0, cut)) await box.happen(one)
        await box.restart(async () => {
          // nobody counts these as they happen
          for (const one of steps.slice(cut, cut + 5)) await box.happen(one)
        })
        for (const one of steps.slice(cut + 5)) await box.happen(one)
        await box.settled()
        expect(await box.counters()).toEqual(expectation(steps))
        await box.counting.stop()
        expect(await box.counting.recount()).toMatchObject({ corrected: 0 })
        expect(await box.counters()).toEqual(expectation(steps))
      } finally {
        await box.close()
      }
    }),
    { numRuns: 40 },
  )
})

test('a reading that is cut off in the middle writes nothing, and is read once more', async () => {
  const box = await Desk.open()
  onTestFinished(() => box.close())
  await box.database.transaction((tx) =>
    tx.run(sql`CREATE TRIGGER held BEFORE UPDATE ON bookmarks BEGIN SELECT RAISE(ABORT, 'held'); END`),
  )
  for (const who of [0, 1, 2, 0]) await box.happen({ what: 'delivered', who, message: 0, kind: 'positive', weight: 1 })
  await box.restart(async () => {
    expect(await box.database.all(sql`SELECT * FROM reputations WHERE deliveries > 0`)).toEqual([])
    await box.database.transaction((tx) => tx.run(sql`DROP TRIGGER held`))
  })
  await box.settled()
  expect((await box.counters()).map(({ deliveries }) => deliveries)).toEqual([2, 1, 1])
})

test('counting anew corrects what is wrong, and refuses when the beginning of the log is gone', async () => {
  const box = await Desk.open()
  onTestFinished(() => box.close())
  for (const who of [0, 0, 1]) await box.happen({ what: 'delivered', who, message: 0, kind: 'positive', weight: 1 })
  await box.settled()
  await box.counting.stop()
  await box.database.transaction((tx) =>
    tx.run(sql`UPDATE reputations SET deliveries = 9, replies = 4 WHERE identity_id = 'ident_0'`),
  )
  await box.database.transaction((tx) =>
    tx.run(sql`INSERT INTO reputations (identity_id, tokens, tier, updated_at) VALUES ('ident_2', 5, 'bronze', '')`),
  )
  expect(await box.counting.recount()).toEqual({ identities: 2, corrected: 2 })
  expect((await box.counters()).map(({ deliveries, replies, tokens }) => [deliveries, replies, tokens])).toEqual([
    [2, 0, 0],
    [1, 0, 0],
    [0, 0, 0],
  ])
  await box.database.transaction((tx) => tx.run(sql`DELETE FROM events WHERE seq = 1`))
  await expect(box.counting.recount()).rejects.toThrow('The first events of the log have been deleted')
})

function expectation(steps: Step[]): Counters[] {
  const all = [0, 1, 2].map(() => ({ ...nothing }))
  for (const { what, who, kind, weight } of steps) {
    const name =
      what === 'reported' ? ({ positive: 'positive', negative: 'negative', dispute: 'disputed' } as const)[kind] : worth[what]
    if (name !== undefined) all[who]![name] += what === 'reported' ? weight : 1
  }
  return all
}

/** The log and who counts it, over a store of their own with three identities. */
class Desk {
  readonly #file: string
  database!: SqliteDatabase
  events!: EventLog
  counting!: Counting

  private constructor(file: string) {
    this.#file = file
  }

  static async open(): Promise<Desk> {
    const desk = new Desk(join(folder(), 'box.db'))
    prepareByCopy(desk.#file, false)
    await desk.#start()
    await desk.database.transaction(async (tx) => {
      for (const who of [0, 1, 2])
        await tx.run(
          sql`INSERT INTO identities (id, account_id, name, name_key, email, date_of_birth, status, metadata, created_at, updated_at)
            VALUES (${`ident_${who}`}, 'acct_1', ${`${who}`}, ${`${who}`}, ${`${who}@box.test`}, '1990-01-01', 'active', '{}', '2026-11-20', '')`,
        )
    })
    return desk
  }

  async happen({ what, who, message, kind, weight }: Step): Promise<void> {
    const identity_id = `ident_${who}`
    const id = `email_${who}_${message}`
    await this.database.transaction(async (tx) => {
      if (what === 'erased') return this.events.redact(tx, id)
      if (what === 'removed') {
        await tx.run(sql`UPDATE identities SET status = 'deleted' WHERE id = ${identity_id}`)
        return
      }
      const [type, remark] = what === 'reported' ? ['reputation.reported', `${kind} ${weight}`] : told[what]!
      const declared = { name: type, scopes: [], summary: '', data: undefined as never }
      await this.events.append(tx, declared, {
        account_id: 'acct_1',
        identity_id,
        data: { id, body: 'words' },
        annotation: remark,
      })
    })
  }

  /** Counting ends wherever it is, and begins again after the work. */
  async restart(meanwhile: () => Promise<void>): Promise<void> {
    await this.counting.stop()
    await meanwhile()
    await this.database.close()
    await this.#start()
  }

  async settled(): Promise<void> {
    const last = async (): Promise<number> => {
      const all = await this.events.headers(0, 1000, sql`1 = 1`)
      return all.filter((event: EventHeader) => factOf(event) !== undefined).at(-1)?.seq ?? 0
    }
    const end = await last()
    const bookmark = async (): Promise<number> =>
      (await this.database.get<{ seq: number }>(sql`SELECT seq FROM bookmarks WHERE name = 'reputation'`))!.seq
    for (let tries = 0; (await bookmark()) < end; tries += 1) {
      if (tries > 5000) throw new Error(`What happened up to ${end} is not counted.`)
      await sleep(2)
    }
  }

  async counters(): Promise<Counters[]> {
    const rows = await this.database.all<{ identity_id: string } & Counters>(sql`SELECT * FROM reputations`)
    return [0, 1, 2].map((who) => countersOf(rows.find(({ identity_id }) => identity_id === `ident_${who}`)))
  }

  async close(): Promise<void> {
    await this.counting.stop()
    await this.database.close()
  }

  async #start(): Promise<void> {
    this.database = await SqliteDatabase.open(this.#file, quiet)
    const clock = { now: () => Date.UTC(2026, 10, 20, 10) }
    this.events = new EventLog(this.database, clock)
    const domains = { mayUse: () => true, stillUsable: async () => true, unsendable: () => null }
    const plan = limitless(this.database, clock)
    const common = { database: this.database, events: this.events, clock, cursors: new Cursors(Buffer.alloc(32)), plan }
    const trash = new Trash({ ...common, time: 0 })
    const { storageOf } = new Quota({ ...common, trash }, { quota: 0, operator: '' })
    const identities = new Identities({ ...common, domains, domain: 'box.test', account: '', storageOf })
    const agents = new Agents({
      ...common,
      account: '',
      identities,
      publicUrl: () => 'https://box.test',
    })
    const reputations = new Reputations({ ...common, identities, agents })
    this.counting = new Counting({ ...common, reputations, log: quiet })
    await this.counting.start()
  }
}
