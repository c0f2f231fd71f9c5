import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import * as z from 'zod'
import { systemClock } from '../../src/core/clock.ts'
import { createLog } from '../../src/core/log.ts'
import { EventLog } from '../../src/events/log.ts'
import { eventType } from '../../src/events/model.ts'
import { Hub, type Watcher } from '../../src/realtime/hub.ts'
import { prepare } from '../../src/store/migrate.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { folder } from '../support/folder.ts'

const noted = eventType('note.added', ['identities:read'], 'A note.', z.object({}))

async function scene() {
  const file = join(folder(), 'pillarbox.db')
  prepare(file, false)
  const lines: string[] = []
  const log = createLog('error', { write: (line: string) => void lines.push(line) })
  const database = await SqliteDatabase.open(file, log)
  onTestFinished(() => database.close())
  const events = new EventLog(database, systemClock)
  const hub = new Hub(events, { failed: (error) => log.error({ err: error }) })
  return {
    events,
    hub,
    lines,
    watcher: (receive: Watcher['receive'], account_id = 'acct_1', missed = (): void => undefined): Watcher => ({
      account_id,
      receive,
      missed,
    }),
    note: (...accounts: string[]) =>
      database.transaction(async (tx) => {
        for (const account_id of accounts) await events.append(tx, noted, { account_id, identity_id: 'ident_1', data: {} })
      }),
  }
}

/** About a millisecond of work. */
function work(): void {
  for (const end = performance.now() + 1; performance.now() < end;);
}

function fail(): never {
  throw new Error('cannot hear')
}

test('one who fails to hear keeps the event from nobody else, and the failure is logged', async () => {
  const { hub, watcher, note, lines } = await scene()
  const heard: string[] = []
  hub.watch('ident_1', watcher(fail))
  hub.watch(
    'ident_1',
    watcher(() => heard.push('the identity’s second')),
  )
  hub.watch(
    'acct_1',
    watcher(() => heard.push('the account’s')),
  )
  await note('acct_1')
  await vi.waitFor(() => expect(heard).toEqual(['the identity’s second', 'the account’s']), 100_000)
  expect(lines.join()).toContain('cannot hear')
})

test('many hear of an event in turns of the event loop, in order, and another account does not wait for all of them', async () => {
  const { hub, watcher, note } = await scene()
  let turn = 0
  let counting = true
  const count = (): void => {
    turn += 1
    if (counting) setImmediate(count)
  }
  count()
  const heard: { who: number; seq: number; turn: number }[] = []
  const hear =
    (who: number): Watcher['receive'] =>
    ({ event }) => {
      work()
      heard.push({ who, seq: event.seq, turn })
    }
  for (let who = 0; who < 60; who += 1) hub.watch('acct_1', watcher(hear(who)))
  hub.watch('acct_2', watcher(hear(1000), 'acct_2'))
  await note('acct_1', 'acct_1', 'acct_2')
  await vi.waitFor(() => expect(heard).toHaveLength(121), 100_000)
  counting = false
  expect(new Set(heard.map((one) => one.turn)).size).toBeGreaterThan(10)
  for (let who = 0; who < 60; who += 1) {
    expect(heard.filter((one) => one.who === who).map(({ seq }) => seq)).toEqual([1, 2])
  }
  // the second event of the first account comes after the turn of the other
  expect(heard.findIndex(({ seq }) => seq === 3)).toBeLessThan(heard.findIndex(({ seq }) => seq === 2))
})

test('one that stops watching meanwhile hears no more, and one that watches anew hears it once', async () => {
  const { hub, watcher, note } = await scene()
  const heard: string[] = []
  const stops: (() => void)[] = []
  const renewed = watcher(() => heard.push('renewed'))
  const over = watcher(() => heard.push('over'))
  const first = watcher(() => {
    heard.push('first')
    for (const stop of stops.splice(0)) stop()
    hub.watch('ident_1', renewed)
  })
  stops.push(hub.watch('acct_1', renewed))
  hub.watch('acct_1', first)
  stops.push(hub.watch('acct_1', over))
  hub.watch(
    'acct_1',
    watcher(() => heard.push('last')),
  )
  await note('acct_1')
  await vi.waitFor(() => expect(heard).toEqual(['renewed', 'first', 'last']), 100_000)
})

test('an event that waits and cannot be read is missed, which its watchers are told', async () => {
  const { events, hub, watcher, note, lines } = await scene()
  vi.spyOn(events, 'findAt').mockRejectedValueOnce(new Error('cannot read'))
  const heard: (number | 'missed')[] = []
  const hear: Watcher['receive'] = ({ event }) => {
    for (let count = 0; count < 10; count += 1) work()
    heard.push(event.seq)
  }
  hub.watch(
    'acct_1',
    watcher(hear, 'acct_1', () => heard.push('missed')),
  )
  await note('acct_1', 'acct_1', 'acct_1', 'acct_1')
  await vi.waitFor(() => expect(heard).toEqual([1, 'missed', 3, 4]), 100_000)
  expect(lines.join()).toContain('cannot read')
})
