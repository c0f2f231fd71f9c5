import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { newId } from '../../src/core/ids.ts'
import { InFlight } from '../../src/queue/in-flight.ts'
import { QueueStore } from '../../src/queue/queue-store.ts'
import { type Box, startBox } from '../box.ts'
import { startNameServer } from '../dns.ts'
import { type Bench, finding } from '../finding.ts'
import { figure, inTurn, quantile, shown, type Side, spreadOf } from '../measure.ts'
import { usageOf } from '../process-tree.ts'
import { openStore } from '../seed.ts'

const deferred = 1_000_000
const lanes = 5000
const claims = 500

/** A queue full of deliveries that were put off, and nothing to do (P16). */
export const waiting: Bench = {
  name: 'deferred',
  goals: ['P16'],
  async run({ directory, rounds, scale }) {
    await using ending = new AsyncDisposableStack()
    const [full, empty] = [join(directory, 'full'), join(directory, 'empty')]
    let account = ''
    for (const each of [full, empty]) {
      const store = await openStore(each)
      account ||= store.caller.account_id
      await store.close()
    }
    fill(join(full, 'pillarbox.db'), account)
    const took = await claimEach(full)
    mkdirSync(join(directory, 'dns'))
    const dns = await startNameServer(join(directory, 'dns'), { txt: {}, a: {} })
    ending.defer(() => dns.stop())
    const boxes: Box[] = []
    for (const each of [full, empty]) {
      const box = await startBox({ directory: each, dns: dns.address })
      ending.defer(() => box.stop())
      boxes.push(box)
    }
    // longer than a minute, as some work comes once in it
    const seconds = Math.max(5, Math.round(65 * scale))
    const samples = await inTurn([side(boxes[0]!, boxes[1]!, seconds)], rounds)
    const of = (name: string) => spreadOf(samples.get('both'), name)
    const claimed = quantile(took, 0.5)
    return [
      finding({
        goal: 'P16',
        what: `Processor time with ${deferred.toLocaleString('en')} deferred deliveries in ${lanes.toLocaleString('en')} lanes, idle, of one core`,
        against: 'the same box with none',
        value: of('% full').median,
        most: 1,
        unit: '%',
        figures: [
          `with them ${shown(of('% full'))} %, with none ${shown(of('% empty'))} %, over ${seconds} s; resident ${shown(of('MB full'))} and ${shown(of('MB empty'))} MB`,
        ],
      }),
      finding({
        goal: 'P16',
        what: 'Claim of the next due among them, median',
        against: '–',
        value: claimed,
        most: 2,
        unit: 'ms',
        figures: [
          `p50 ${figure(claimed)} ms, p99 ${figure(quantile(took, 0.99))} ms, without the wait for the disk, which others share`,
        ],
      }),
    ]
  },
}

/** Copies of mail, each tried once and put off for an hour or more. */
function fill(file: string, account: string): void {
  const database = new DatabaseSync(file)
  const now = later(0)
  database.exec('BEGIN')
  const add = database.prepare(
    `INSERT INTO deliveries_queue (id, kind, lane, account_id, load, due_at, created_at, attempts, tries, first_started_at, first_ended_at, first_outcome, first_answer)
      VALUES (?, 'email', ?, ?, ?, ?, ?, 1, 1, ?, ?, 'deferred', ?)`,
  )
  for (let number = 0; number < deferred; number++) {
    const load = JSON.stringify({ recipient_seq: number + 1 })
    const due = later(3_600_000 + Math.floor(Math.random() * 10_800_000))
    const answer = JSON.stringify({ outcome: 'deferred', smtp_code: 450, response: 'Later' })
    add.run(newId('dlv'), laneOf(number), account, load, due, now, now, now, answer)
  }
  database.exec(
    `INSERT INTO delivery_lanes (kind, lane, account_id, due_at) SELECT kind, lane, account_id, min(due_at) FROM deliveries_queue GROUP BY kind, lane, account_id`,
  )
  database.exec('COMMIT')
  database.close()
}

function later(milliseconds: number): string {
  return new Date(Date.now() + milliseconds).toISOString()
}

function laneOf(number: number): string {
  return `far${number % lanes}.test`
}

/** Milliseconds that each look for what is due and claim of it takes, by the queue's own ledger. */
async function claimEach(directory: string): Promise<number[]> {
  const store = await openStore(directory)
  const { database } = store
  const [ledger, inFlight] = [new QueueStore(database.run), new InFlight()]
  const took: number[] = []
  for (let number = 0; number < claims; number++) {
    const id = newId('dlv')
    const lane = laneOf(number)
    const now = new Date().toISOString()
    await database.transaction((tx) => ledger.add(tx, [{ id, kind: 'email', lane, load: { recipient_seq: 0 } }], now))
    const began = performance.now()
    const due = await ledger.nextDue(database, inFlight)
    const taken = await database.transaction((tx) => ledger.claim(tx, new Date().toISOString(), inFlight))
    took.push(performance.now() - began)
    if (due !== now || taken.length !== 1) throw new Error(`${taken.length} deliveries were claimed, due ${due}`)
    await database.transaction((tx) =>
      ledger.record(
        tx,
        [{ claim: taken[0]!, result: { outcome: 'done', answer: '', ms: 0, notes: {} } }],
        new Date().toISOString(),
      ),
    )
  }
  await store.close()
  return took
}

function side(full: Box, empty: Box, seconds: number): Side {
  return {
    name: 'both',
    async round(number) {
      const began = performance.now()
      const before = [full, empty].map(({ pid }) => usageOf(pid))
      await pause((number === 0 ? 5 : seconds) * 1000)
      const after = [full, empty].map(({ pid }) => usageOf(pid))
      const part = (index: number): number => (after[index]!.cpu - before[index]!.cpu) / (performance.now() - began) / 10
      return { '% full': part(0), '% empty': part(1), 'MB full': after[0]!.resident, 'MB empty': after[1]!.resident }
    },
  }
}
