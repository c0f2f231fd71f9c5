import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { systemClock } from '../../src/core/clock.ts'
import { newId } from '../../src/core/ids.ts'
import { masterKey, Seal } from '../../src/core/seal/seal.ts'
import { DkimKeys, makeRsaPair } from '../../src/domains/keys.ts'
import type { Domain } from '../../src/domains/model.ts'
import { NextCheck } from '../../src/domains/next-check.ts'
import { sql } from '../../src/store/database.ts'
import { authorized, post } from '../api.ts'
import { type Box, startBox } from '../box.ts'
import type { Zone } from '../dns-server.ts'
import { startNameServer } from '../dns.ts'
import type { Finding } from '../finding.ts'
import { figure } from '../measure.ts'
import { openStore } from '../seed.ts'
import { costOf, each, peakOf, startOf, told } from './cost.ts'

const domains = 5000
/** How long the job checks what is due: it begins every ten seconds, with 200 domains each time. */
const checking = 60_000

/** So many verified domains: their start, the call that lists them, and the job that checks their DNS. All have the same keys. */
export async function manyDomains(directory: string, scale: number): Promise<Finding[]> {
  const count = Math.round(domains * scale)
  const data = join(directory, 'data')
  const id = await fill(data, count)
  const zone = await zoneOf(directory, { data, id, count })
  const dns = await startNameServer(directory, zone)
  try {
    await verify(id, data, dns.address)
    const due = Date.now() + 20_000
    seenLikeFirst(data, new Date(due))
    const box = await startBox({ directory: data, dns: dns.address })
    try {
      return await measure(box, { directory, count, due, scale })
    } finally {
      await box.stop()
    }
  } finally {
    dns.stop()
  }
}

async function measure(
  box: Box,
  { directory, count, due, scale }: { directory: string; count: number; due: number; scale: number },
): Promise<Finding[]> {
  const all = count.toLocaleString('en')
  const start = await startOf(box, `${all} verified domains`, directory)
  let calls = 0
  const list = await costOf(box, async () => (calls = await listAll(box, count)))
  if (Date.now() > due) throw new Error('The checks began before the domains were listed.')
  const listed = told('P29', `All ${all} verified domains listed, with their records`, list.time / 1000, 's', [
    `${calls} calls of at most 200, ${each(list, calls)} each`,
    peakOf(box),
  ])
  await pause(due - Date.now())
  const seconds = Math.max(25_000, checking * scale)
  const cost = await costOf(box, () => pause(seconds))
  const done = checkedSince(join(directory, 'data'), new Date(due))
  const checks = told('P29', `DNS check of a verified domain by the job, of ${all} that are due`, cost.cpu / done, 'ms CPU', [
    `${done.toLocaleString('en')} checked in ${figure(seconds / 1000)} s: the job takes 200 every 10 s, and so ${Math.ceil(count / 200) * 10} s for all`,
    peakOf(box),
  ])
  return [start, listed, checks]
}

function nameOf(number: number): string {
  return `d${number}.many.test`
}

/** Answers the id of the first. */
async function fill(data: string, count: number): Promise<string> {
  const store = await openStore(data)
  const keys = new DkimKeys({
    database: store.database,
    clock: systemClock,
    seal: new Seal(masterKey(`${data}-keys`)),
    nextCheck: new NextCheck(),
    rsaPair: makeRsaPair,
  })
  const [active, spare] = [await keys.make(''), await keys.make('')]
  const now = new Date().toISOString()
  const later = new Date(Date.now() + 24 * 3600_000).toISOString()
  const ids = Array.from({ length: count }, () => newId('dom'))
  for (let done = 0; done < count; done += 500) {
    await store.database.transaction(async (tx) => {
      for (let number = done; number < Math.min(count, done + 500); number++) {
        const owner = { id: ids[number]!, name: nameOf(number) }
        await tx.run(
          sql`INSERT INTO domains (id, account_id, name, status, receives, verified_at, next_check_at, created_at)
            VALUES (${owner.id}, ${store.caller.account_id}, ${owner.name}, 'verified', 1, ${now}, ${later}, ${now})`,
        )
        await keys.insert(tx, owner, active, 'active')
        await keys.insert(tx, owner, spare, 'spare')
      }
    })
  }
  await store.close()
  return ids[0]!
}

/** What the box asks for in the DNS of all domains, from what it asks for in that of the first. */
async function zoneOf(directory: string, { data, id, count }: { data: string; id: string; count: number }): Promise<Zone> {
  const { dns_records } = await askedOfEmpty(directory, data, id)
  const zone = { txt: {}, a: {}, mx: {}, cname: {} } as Required<Omit<Zone, 'ptr'>>
  for (const { type, name, value, priority } of dns_records) {
    if (type === 'MX') zone.a[value] = '127.0.0.1'
    for (let number = 0; number < count; number++) {
      const [own, said] = [name, value].map((text) => text.replaceAll(nameOf(0), nameOf(number))) as [string, string]
      if (type === 'TXT') zone.txt[own] = said
      else if (type === 'CNAME') zone.cname[own] = said
      else zone.mx[own] = `${priority} ${said}`
    }
  }
  return zone
}

/** A domain of a box that finds nothing in the DNS. */
async function askedOfEmpty(directory: string, data: string, id: string): Promise<Domain> {
  await using ending = new AsyncDisposableStack()
  const dns = await startNameServer(directory, { txt: {}, a: {} })
  ending.defer(() => dns.stop())
  const box = await startBox({ directory: data, dns: dns.address })
  ending.defer(() => box.stop())
  // before both are stopped
  return await ask<Domain>(box, `/v1/domains/${id}`)
}

interface DomainPage {
  data: Domain[]
  next_cursor: string | null
}

async function ask<Answer>(box: Box, path: string): Promise<Answer> {
  const response = await fetch(box.url + path, { headers: authorized })
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
  return (await response.json()) as Answer
}

/** Answers how many calls it took. */
async function listAll(box: Box, count: number): Promise<number> {
  let [calls, seen] = [0, 0]
  for (let cursor: string | null = ''; cursor !== null; calls++) {
    const page: DomainPage = await ask(box, `/v1/domains?limit=200${cursor && `&cursor=${cursor}`}`)
    seen += page.data.filter(({ name, status }) => name !== 'pillarbox.test' && status === 'verified').length
    cursor = page.next_cursor
  }
  if (seen !== count) throw new Error(`${seen} verified domains are listed of ${count}.`)
  return calls
}

/** Has a domain checked by the API, and throws unless all its records are right. */
async function verify(id: string, data: string, dns: string): Promise<void> {
  const box = await startBox({ directory: data, dns })
  try {
    const { name, dns_records } = await post<Domain>(box, `/v1/domains/${id}/verify`, {})
    const wrong = dns_records.filter(({ status }) => status !== 'valid')
    if (wrong.length > 0) throw new Error(`${name} is not verified: ${JSON.stringify(wrong)}`)
  } finally {
    await box.stop()
  }
}

/** Every domain has been found right as the first was, and is due again at this time. */
function seenLikeFirst(data: string, due: Date): void {
  const database = new DatabaseSync(join(data, 'pillarbox.db'))
  database
    .prepare(
      `UPDATE domains SET checks = 1, next_check_at = ?, last_checked_at = created_at,
        findings = (SELECT replace(findings, ?, domains.name) FROM domains AS seen WHERE seen.name = ?) WHERE name LIKE 'd%.many.test'`,
    )
    .run(due.toISOString(), nameOf(0), nameOf(0))
  database.close()
}

function checkedSince(data: string, since: Date): number {
  const database = new DatabaseSync(join(data, 'pillarbox.db'), { readOnly: true })
  const row = database
    .prepare(`SELECT count(*) AS n FROM domains WHERE last_checked_at >= ? AND name LIKE 'd%.many.test' AND status = 'verified'`)
    .get(since.toISOString()) as { n: number }
  database.close()
  return row.n
}
