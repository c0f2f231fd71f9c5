import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { openapi } from '../../src/http/openapi/openapi.ts'
import type { Sql } from '../../src/store/database.ts'
import { BoxDatabase } from '../support/box-database.ts'
import { isOnServer } from '../support/open-store.ts'
import { inhabit, type Inhabited } from './inhabited.ts'

/** More rows than a list may look through on the event loop. */
const many = 400

const old = '1990-01-01T00:00:00Z'
const far = 'offset=350'

/** Every list that can be left out of, with each of its filters. What is not bounded by something else must read a long table beside the event loop. */
const lists: Record<string, { filled?: string; whole?: string; few?: string; beside?: string[]; here?: string[] }> = {
  '/v1/identities/{id}/emails': {
    filled: 'emails',
    beside: [
      far,
      'unread=false',
      'from=nobody',
      'to=nobody',
      `before=${old}`,
      'after=2100-01-01T00:00:00Z',
      'direction=outbound',
      'label=none',
      'subject=nothing',
      'has_attachments=true&direction=outbound',
      'spam=true',
      'duplicates=true&spam=true',
      'trash=true&spam=true',
      'trash=true&unread=true',
      'trash=true&thread_id=thread_00000000000000000000000000',
      'unread=true&spam=true',
    ],
    here: ['unread=true', 'include=body', 'direction=all', 'thread_id=thread_00000000000000000000000000', 'trash=true'],
  },
  '/v1/identities/{id}/emails/search': {
    beside: [
      'query=x',
      'q=x&include=body',
      'direction=all&query=x',
      'from=nobody',
      'to=nobody',
      'unread=true',
      `before=${old}`,
      'after=2100-01-01T00:00:00Z',
      `unread=true&${far}`,
    ],
  },
  '/v1/identities/{id}/emails/{email_id}/attachments': { few: 'of one message' },
  '/v1/identities/{id}/emails/{email_id}/attachments/{index}/text': { few: 'pieces of one text' },
  '/v1/identities/{id}/threads': { filled: 'threads', beside: [far] },
  '/v1/identities/{id}/sms': {
    filled: 'sms',
    beside: [
      far,
      'unread=false',
      'direction=outbound',
      'from=nobody',
      'to=nobody',
      `before=${old}`,
      'after=2100-01-01T00:00:00Z',
      'trash=true&direction=outbound',
    ],
    here: ['unread=true', 'trash=true'],
  },
  '/v1/identities/{id}/messages': { beside: [far] },
  '/v1/identities/{id}/events': {
    filled: 'events',
    beside: [far, 'type=sms.failed', 'since=1990-01-01T00:00:00Z&type=sms.failed'],
    here: ['since=1990-01-01T00:00:00Z', 'since=2100-01-01T00:00:00Z'],
  },
  '/v1/identities/{id}/totp': { filled: 'totp_entries', beside: [far] },
  '/v1/identities/{id}/logins': { filled: 'stored_logins', beside: [far] },
  '/v1/identities/{id}/cards': { filled: 'cards', beside: [far] },
  '/v1/cards/{id}/transactions': { filled: 'card_transactions', beside: [far, 'type=refund'] },
  '/v1/identities': {
    filled: 'identities',
    beside: [far, 'query=nobody', 'q=nobody'],
    here: ['name=Own', 'email=nobody@pillarbox.test'],
  },
  '/v1/agents': {
    filled: 'agents',
    beside: [far, 'identity_id=ident_00000000000000000000000000'],
    here: ['handle=nobody'],
  },
  '/v1/agents/{id}/erc8004': { few: 'an agent has 100 at most' },
  '/v1/api-keys': { filled: 'api_keys', beside: [far, 'created_by=key_00000000000000000000000000'] },
  '/v1/people': { few: 'an account has 100 at most' },
  '/v1/people/invitations': { few: 'an account has 100 at most' },
  '/v1/account/sessions': { few: 'an account has 100 at most' },
  '/v1/audit': {
    filled: 'audit',
    beside: [
      far,
      'actor=key_00000000000000000000000000',
      'action=nothing.done',
      'identity_id=ident_00000000000000000000000000',
      `before=${old}`,
      'after=2100-01-01T00:00:00Z',
    ],
  },
  '/v1/audit/box': {
    beside: [
      far,
      'actor=key_00000000000000000000000000',
      'action=nothing.*',
      'identity_id=ident_00000000000000000000000000',
      `before=${old}`,
      'after=2100-01-01T00:00:00Z',
    ],
  },
  '/v1/accounts': { few: 'in memory' },
  '/v1/backups': { few: 'files, which the box looks after' },
  '/v1/domains': { filled: 'domains', beside: [far] },
  '/v1/domains/{id}/aliases': { filled: 'aliases', beside: [far] },
  '/v1/domains/{id}/reports': { filled: 'domain_reports', beside: [far, 'kind=tls'] },
  '/v1/holds': {
    filled: 'holds',
    beside: [far, 'status=approved', 'status=open&identity_id=ident_00000000000000000000000000'],
  },
  '/v1/suppressions': { filled: 'suppressions', beside: [far] },
  '/v1/jobs': { filled: 'jobs', beside: [far, 'kind=import'] },
  '/v1/webhooks': { filled: 'webhooks', beside: [far, 'created_by=key_00000000000000000000000000'] },
  '/v1/webhooks/{id}/deliveries': { filled: 'deliveries_queue', beside: [far] },
  '/v1/queue': { whole: 'deliveries_queue', beside: [far, 'state=failed', 'kind=nothing', 'destination=nowhere'] },
}

let all: Inhabited
beforeAll(async () => {
  all = await inhabit()
  const { own, box } = all
  const card = `/v1/cards/${own.objects['cards/:id']}/transactions`
  await box.call('POST', card, { type: 'report', amount_cents: 1, description: 'ticket' })
  all.database.exec(`INSERT INTO domain_reports (domain_id, kind, reporter, report_id, begins_at, ends_at, received_at, data)
    SELECT '${own.objects['domains/:id']}', 'dmarc', 'r', '1', '${old}', '${old}', '${old}', '{}' WHERE true ON CONFLICT DO NOTHING`)
  for (const table of new Set(Object.values(lists).flatMap(({ filled }) => filled ?? []))) fill(table)
  fill('emails_trash')
  fill('sms_trash')
  // the box sees what others write with its own next commit at the latest
  await box.call('PATCH', `/v1/identities/${own.objects['identities/:id']}`, { metadata: { a: 'b' } })
})
afterAll(() => all?.close())

test('every list that leaves out rows is in the table, with each of its filters', async () => {
  const { paths } = openapi(all.box.app.routes, { version: '0', publicUrl: '' })
  const found = Object.entries(paths).flatMap(([path, { get }]) => {
    const names = (get?.parameters ?? []).filter((one) => one['in'] === 'query').map((one) => one['name'] as string)
    return names.includes('offset')
      ? [[path, names.filter((name) => !['limit', 'cursor', 'offset'].includes(name))] as const]
      : []
  })
  const named = Object.entries(lists).map(([path, { beside = [], here = [] }]) => {
    const names = new Set([...beside, ...here].flatMap((query) => [...new URLSearchParams(query).keys()]))
    names.delete('offset')
    return [path, [...names].toSorted()] as const
  })
  expect(Object.fromEntries(named)).toEqual(Object.fromEntries(found.map(([path, names]) => [path, names.toSorted()])))
})

const rows = Object.entries(lists).flatMap(([path, { beside = [], here = [], few }]) => [
  ...(few === undefined && !path.endsWith('/search') ? [[path, '', 'on'] as const] : []),
  ...here.map((query) => [path, query, 'on'] as const),
  ...beside.map((query) => [path, query, 'beside'] as const),
])

test.each(rows)('%s?%s reads its rows %s the event loop', async (path, query, where) => {
  const beside: string[] = []
  const onLoop: Sql[] = []
  const spies = [
    vi.spyOn(BoxDatabase.prototype, 'slow').mockImplementation(async (asked) => {
      beside.push(asked.sql)
      return all.database.prepare(asked.sql).all(...(asked.values as string[]))
    }),
    ...(['all', 'get'] as const).map((name) => {
      const real = BoxDatabase.prototype[name] as (this: typeof BoxDatabase.prototype, asked: Sql) => Promise<never>
      return vi.spyOn(BoxDatabase.prototype, name).mockImplementation(function (this: typeof BoxDatabase.prototype, asked: Sql) {
        onLoop.push(asked)
        return real.call(this, asked)
      })
    }),
  ]
  onTestFinished(() => spies.forEach((spy) => spy.mockRestore()))
  const { status, body } = await all.box.call('GET', `${located(path)}?limit=1&${query}`, undefined, {
    key: path === '/v1/queue' ? all.box.key : all.own.key,
  })
  expect([status, body.error]).toEqual([200, undefined])
  expect(beside.length > 0).toBe(where === 'beside')
  // the plans of the server change with its statistics
  if (isOnServer(file(all))) return
  for (const { sql, values } of onLoop) {
    if (!/LIMIT \?/.test(sql) || path === '/v1/queue') continue
    const plan = all.database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...(values as string[])) as { detail: string }[]
    expect(plan.map(({ detail }) => detail).join('; ')).not.toMatch(/TEMP B-TREE|SCAN (?!CONSTANT)/)
  }
})

/** Lists whose rows tenants or strangers can make long: a change that makes every row of a table 60 KB longer. */
const text = "replace(printf('%060000d', 0), '0', 'x')"
const inJson = `'{"a":"' || ${text} || '"}'`
const asJson = `json('"' || ${text} || '"')`
const longAnswer = `'{"status":500,"body":"' || ${text} || '","error":null}'`
const long: Record<string, string> = {
  '/v1/domains': `UPDATE domains SET findings = ${inJson}`,
  '/v1/domains/{id}/reports': `UPDATE domain_reports SET data = ${inJson}`,
  '/v1/webhooks': `UPDATE webhooks SET url = 'https://x.test/' || ${text}`,
  '/v1/webhooks/{id}/deliveries': `UPDATE delivery_attempts SET answer = ${longAnswer}; UPDATE deliveries_queue SET first_answer = ${longAnswer}`,
  '/v1/queue': `UPDATE deliveries_queue SET load = json_set(load, '$.a', ${asJson})`,
  '/v1/agents': `UPDATE agents SET metadata = ${inJson}`,
  '/v1/jobs': `UPDATE jobs SET result = json_set(coalesce(result, '{}'), '$.a', ${asJson})`,
  '/v1/identities/{id}/threads': `UPDATE threads SET participants = '["' || ${text} || '"]'`,
  '/v1/identities/{id}/emails': `UPDATE emails SET from_address = ${text}`,
  '/v1/identities/{id}/emails/search': 'SELECT 1',
  '/v1/identities/{id}/messages': 'SELECT 1',
  '/v1/identities/{id}/sms': `UPDATE sms SET body = ${text}, octets = 60000`,
  '/v1/identities/{id}/events': `UPDATE events SET data = json_set(data, '$.a', ${asJson})`,
}

test.each(Object.entries(long))('%s reads no more of long rows than its answer holds', async (path, change) => {
  if (path.endsWith('/deliveries')) {
    all.database.exec(
      `INSERT INTO delivery_attempts (delivery_seq, number, started_at) SELECT seq, 100, '${old}' FROM deliveries_queue`,
    )
  }
  all.database.exec(change)
  const { own, box } = all
  await box.call('PATCH', `/v1/identities/${own.objects['identities/:id']}`, { metadata: { a: path } })
  // what the change has others read is not counted
  await box.settled()
  let read = 0
  const count = <Found>(found: Found): Found => {
    read += JSON.stringify(found ?? null).length
    return found
  }
  const spies = [
    vi.spyOn(BoxDatabase.prototype, 'slow').mockImplementation(async (asked) => {
      return count(all.database.prepare(asked.sql).all(...(asked.values as string[])))
    }),
    ...(['all', 'get'] as const).map((name) => {
      const real = BoxDatabase.prototype[name] as (this: typeof BoxDatabase.prototype, asked: Sql) => Promise<never>
      return vi.spyOn(BoxDatabase.prototype, name).mockImplementation(async function (
        this: typeof BoxDatabase.prototype,
        asked: Sql,
      ) {
        return count(await real.call(this, asked))
      })
    }),
  ]
  onTestFinished(() => spies.forEach((spy) => spy.mockRestore()))
  const query = path.endsWith('/search') ? 'from=x' : ''
  const { status, body } = await box.call('GET', `${located(path)}?limit=100&${query}`, undefined, {
    key: path === '/v1/queue' ? box.key : own.key,
  })
  expect([status, body.error]).toEqual([200, undefined])
  expect(body['data'].length).toBeGreaterThan(2)
  expect(body['has_more']).toBe(true)
  expect(read).toBeLessThan(2.5 * 1024 * 1024)
})

function file({ box }: Inhabited): string {
  return join(box.directory, 'data', 'pillarbox.db')
}

function located(path: string): string {
  const { objects } = all.own
  const noun = path.split('/')[2]!
  return path.replace('{id}', objects[`${noun}/:id`] ?? '').replace('{email_id}', objects[':email_id'] ?? '')
}

/** Repeats the row of what the tests look at so often that it is a long list. */
function fill(table: string): void {
  const { database, own } = all
  if (table === 'audit') database.exec('DROP TRIGGER audit_appended; DROP TRIGGER audit_head')
  const info = (of: string, name: string): Record<string, string | number>[] =>
    database.prepare(`SELECT * FROM pragma_${of}(?)`).all(name)
  const types = new Map(info('table_info', table).map(({ name, type }) => [String(name), String(type)]))
  const names = [...types.keys()]
  // some rows have their numbers from the box, and the server counts its own
  if (isOnServer(file(all)) && names.includes('seq'))
    database.exec(`SELECT setval(pg_get_serial_sequence('${table}', 'seq'), max(seq)) FROM ${table}`)
  const fresh = new Set<string>()
  for (const index of info('index_list', table).filter(({ unique }) => unique === 1)) {
    fresh.add(String(info('index_info', String(index['name'])).at(-1)!['name']))
  }
  const owners: Record<string, string | undefined> = {
    identity_id: own.objects['identities/:id'],
    domain_id: own.objects['domains/:id'],
    card_id: own.objects['cards/:id'],
    lane: own.objects['webhooks/:id'],
    account_id: own.account,
  }
  const owner = Object.keys(owners).find((name) => names.includes(name) && name !== 'identity_id') ?? 'identity_id'
  const by = names.includes('identity_id') && !['agents', 'webhooks', 'jobs', 'api_keys'].includes(table) ? 'identity_id' : owner
  const values = names
    .filter((name) => name !== 'seq')
    .map((name) => {
      const isId = name === 'id' || (name === 'identity_id' && fresh.has(name))
      if (isId) return `substr(${name}, 1, instr(${name}, '_')) || printf('%026d', i)`
      if (!fresh.has(name)) return name
      const type = types.get(name)!
      return type === 'BLOB' ? 'randomblob(32)' : type === 'TEXT' ? `i || ${name}` : `i * 1000000 + ${name}`
    })
  const columns = names.filter((name) => name !== 'seq')
  const seq = table === 'threads' ? 'last_seq' : 'seq'
  const made = database
    .prepare(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${many})
        INSERT INTO ${table} (${columns.join(', ')}) SELECT ${values.join(', ')} FROM n, (SELECT * FROM ${table} WHERE ${by} = ? ORDER BY ${seq} LIMIT 1) one`,
    )
    .run(owners[by]!)
  if (made.changes !== many) throw new Error(`${table}: ${made.changes} rows were made`)
  if (table !== 'aliases') return
  database.exec(`INSERT INTO addresses (address, identity_id, alias_id) SELECT address, '${own.objects['identities/:id']}', id FROM aliases
    WHERE address NOT IN (SELECT address FROM addresses)`)
}
