import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { threadOf } from '../../src/mail/threads.ts'
import { Statements } from '../../src/store/sqlite/statements.ts'
import { inhabit } from '../contract/inhabited.ts'
import { folder } from '../support/folder.ts'
import { opened } from './opened.ts'
import { walk } from './walk.ts'

/** The statements that may read a table as a whole or sort rows, and why. */
const allowed: Record<string, RegExp[]> = {
  'only the box or its operator adds rows, and few': [
    /sqlite_schema/,
    /^UPDATE box /,
    /^SELECT 1 FROM box /,
    / FROM (?:signing_keys|doctor_lines|doctor_free) /,
    / FROM doctor_lines -> /,
    / FROM logins ORDER BY account_id, seq /,
  ],
  'the first rows, in the order of the table': [
    / FROM events ORDER BY seq DESC LIMIT 1 -> SCAN events$/,
    / FROM deliveries_queue WHERE 1 = 1 .*ORDER BY seq DESC LIMIT (?:\?|1) OFFSET \? -> SCAN deliveries_queue$/,
    / FROM erc8004_links .* LIMIT \? -> SCAN erc8004_links$/,
    /\(SELECT \* FROM (?:delivery_attempts|deliveries_queue) ORDER BY seq DESC LIMIT 1000\)/,
  ],
  'sorts what one message, key, domain, account or page has, which has a limit': [
    / FROM json_each\(\?\) AS ids\) AS named .* -> USE TEMP B-TREE FOR ORDER BY$/,
    /^WITH RECURSIVE line .* -> USE TEMP B-TREE FOR ORDER BY$/,
    / FROM dkim_keys WHERE domain_id (?:=|IN) .* -> USE TEMP B-TREE FOR ORDER BY$/,
    /^SELECT DISTINCT events, scopes FROM webhooks WHERE account_id = \? /,
    /^SELECT from_address, to_text FROM \( SELECT seq, sum\(octets\) OVER .* -> USE TEMP B-TREE FOR GROUP BY, USE TEMP B-TREE FOR ORDER BY$/,
    / FROM reputation_reports WHERE subject = \? .* -> USE TEMP B-TREE FOR GROUP BY$/,
    / FROM delivery_lanes WHERE kind IN \(.*\) AND account_id = \? .* -> USE TEMP B-TREE FOR ORDER BY$/,
    /^DELETE FROM sign_in_networks WHERE person_id = \? .* -> USE TEMP B-TREE FOR ORDER BY$/,
  ],
  'a partial index has no other rows': [
    /^SELECT \(SELECT count\(\*\) FROM deliveries_queue .* SCAN deliveries_queue USING COVERING INDEX deliveries_due$/,
    / -> SCAN delivery_lanes USING COVERING INDEX lanes_closed$/,
    / -> SCAN identities USING COVERING INDEX identities_by_domain$/,
  ],
  'runs at the start, on a schedule or for the operator': [
    / FROM deliveries_queue WHERE state = 'waiting' .*GROUP BY kind .* USING INDEX deliveries_due$/,
    / FROM domains (?:WHERE last_checked_at IS NOT NULL )?ORDER BY (?:last_checked_at|is_default)/,
    /^SELECT id, url, active, failing_since, .* FROM webhooks /,
    /^SELECT id FROM webhooks WHERE failing_since IS NOT NULL /,
    /^DELETE FROM (?:outbound_report_messages|outbound_report_refusals|sessions|dkim_keys|sent_counts|sms_seen) /,
    /phone_numbers .*WHERE status = 'wanted' AND provider /,
    / FROM idempotency_keys WHERE identity_id > '' .* -> SCAN identities$/,
    /^SELECT DISTINCT \(id >> 37\) - 65536 AS segment FROM emails_search_data /,
  ],
}

test('a box that held little when it was last stopped reads no table as a whole', async () => {
  const world = await inhabit()
  onTestFinished(() => world.close())
  // a clean stop, with so few rows that reading a whole table would be the best plan
  await world.box.restart()
  const { prepared: statements } = await walk(world)
  expect(statements.length).toBeGreaterThan(300)
  const database = new DatabaseSync(join(world.box.directory, 'data', 'pillarbox.db'), { readOnly: true })
  onTestFinished(() => database.close())
  const tables = new Set(
    database
      .prepare('PRAGMA table_list')
      .all()
      .map(({ name }) => String(name)),
  )
  const costly = statements
    .filter((text) => /^(?:SELECT|WITH|INSERT|UPDATE|DELETE)/i.test(text))
    .map((text) => `${text} -> ${wholeReads(database, tables, text).join(', ')}`)
    .filter((line) => !line.endsWith('-> '))
  const exceptions = Object.values(allowed).flat()
  expect(costly.filter((line) => !exceptions.some((exception) => exception.test(line)))).toEqual([])
  expect(exceptions.filter((exception) => !costly.some((line) => exception.test(line)))).toEqual([])
})

test('a conversation is found by its subject without a look at those that ended before', async () => {
  const { file, database } = await opened(folder())
  onTestFinished(() => database.close())
  const prepared = vi.spyOn(Statements.prototype, 'prepare')
  const input = {
    identity_id: 'ident_1',
    subject: 'Talk',
    references: [],
    in_reply_to: null,
    others: ['x@far.test'],
    own: 'a@box.test',
  }
  await database.transaction((tx) => threadOf(tx, input, Date.now()))
  const [text] = prepared.mock.calls.flat().filter((one) => one.includes('FROM threads'))
  const reader = new DatabaseSync(file, { readOnly: true })
  onTestFinished(() => reader.close())
  expect(planOf(reader, text!)).toEqual([
    'SEARCH threads USING INDEX threads_by_subject (identity_id=? AND subject_key=? AND participants_key=? AND last_message_at>?)',
  ])
})

test('what an account has is counted and added up without the identities that it deleted', async () => {
  const { file, database } = await opened(folder())
  onTestFinished(() => database.close())
  const reader = new DatabaseSync(file, { readOnly: true })
  onTestFinished(() => reader.close())
  for (const wanted of ['count(*) AS n', 'coalesce(sum(trash_bytes), 0) AS octets']) {
    const text = `SELECT ${wanted} FROM identities WHERE account_id = ? AND status <> 'deleted'`
    expect(planOf(reader, text)).toEqual(['SEARCH identities USING COVERING INDEX identities_living (account_id=?)'])
  }
})

/** The tables that a statement reads as a whole, and what it sorts. */
function wholeReads(database: DatabaseSync, tables: ReadonlySet<string>, text: string): string[] {
  const aliases = new Map([...text.matchAll(/\b(?:FROM|JOIN) (\w+) AS (\w+)/g)].map(([, table, alias]) => [alias!, table!]))
  return planOf(database, text).filter((detail) => {
    const scanned = /^SCAN (\w+)\b(?! VIRTUAL)/.exec(detail)?.[1] ?? ''
    return detail.startsWith('USE TEMP B-TREE') || tables.has(aliases.get(scanned) ?? scanned)
  })
}

function planOf(database: DatabaseSync, text: string): string[] {
  const plan = database.prepare(`EXPLAIN QUERY PLAN ${text.replaceAll('LIMIT ?', 'LIMIT (0 + ?)')}`).all()
  return plan.map(({ detail }) => String(detail))
}
