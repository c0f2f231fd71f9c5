import { expect, test, vi } from 'vitest'
import { createLog } from '../../src/core/log.ts'
import type { PublishedPolicy } from '../../src/mail/model.ts'
import { ReportCounts } from '../../src/reporting/counts.ts'
import { type DmarcRecord, dmarcResult } from '../../src/reporting/dmarc-result.ts'
import { dmarcXml } from '../../src/reporting/dmarc-xml.ts'
import { sql } from '../../src/store/database.ts'
import { HeldClock } from '../support/held-clock.ts'
import type { Guest } from '../support/mail-sink.ts'
import { envelope } from '../support/signed-mail.ts'
import { expectValid, hour, publishDomain, reporting } from './box.ts'

const policy: PublishedPolicy = {
  domain: 'shop.test',
  p: 'none',
  sp: 'none',
  np: null,
  adkim: 'r',
  aspf: 'r',
  fo: null,
  testing: false,
}

test('strangers with 10,000 domains, and one with 10,000 addresses, are kept in bounds; what was there goes on to be counted', async () => {
  const { inside, rows } = await reporting({})
  const tallies = { counted: 0, dropped: 0 }
  const counts = new ReportCounts({
    database: inside().database,
    clock: new HeldClock(),
    log: createLog('silent'),
    tally: (_kind, what, count) => (tallies[what] += count),
  })
  const add = (domain: string, source_ip: string): void => counts.add({ kind: 'dmarc', domain, policy, record: { source_ip } })
  add('honest.test', '192.0.2.1')
  await counts.write()
  for (let index = 0; index < 10_000; index++) {
    add(`d${index}.evil.test`, '192.0.2.1')
    if (index % 500 === 0) await counts.write()
  }
  for (let index = 0; index < 10_000; index++) {
    add('honest.test', `2001:db8::${index.toString(16)}`)
    if (index % 500 === 0) await counts.write()
  }
  add('honest.test', '192.0.2.1')
  await counts.write()

  const [total] = rows<{ domains: number; rows: number }>('SELECT count(*) AS domains, sum(rows) AS rows FROM outbound_reports')
  expect(total).toEqual({ domains: 2000, rows: 2999 })
  expect(rows('SELECT count(*) AS n FROM outbound_report_counts')).toEqual([{ n: 2999 }])
  expect(rows("SELECT rows, dropped FROM outbound_reports WHERE domain = 'honest.test'")).toEqual([{ rows: 1000, dropped: 9001 }])
  expect(
    rows(`SELECT count FROM outbound_report_counts WHERE record = '{"source_ip":"192.0.2.1"}' AND domain = 'honest.test'`),
  ).toEqual([{ count: 2 }])
  expect(tallies).toEqual({ counted: 3000, dropped: 17_002 })
})

test('a host that did not agree to reports gets 100 a day, however many domains name it; one that agreed gets all', async () => {
  const box = await reporting({ PILLARBOX_REPORTS__DMARC: 'true', PILLARBOX_REPORTS__TLS: 'true' })
  const { dns } = box.box
  const tls = { policy: { type: 'no-policy-found', domain: 'a.test', strings: [], mx_hosts: [] }, failure: null }
  const record: DmarcRecord = {
    source_ip: '192.0.2.1',
    disposition: 'none',
    dkim: 'fail',
    spf: 'pass',
    override: null,
    header_from: 'a.test',
    envelope_from: 'a.test',
    dkim_results: [],
    spf_result: null,
  }
  dns.txt('_dmarc.evil.test', 'v=DMARC1; p=none')
  for (const name of ['evil.test', 'vendor.test', 'victim.test']) dns.mx(name, `mx.${name}`).a(`mx.${name}`, '127.0.0.1')
  const due = '2026-11-21T01:00:00.000Z'
  await box.inside().database.transaction(async (tx) => {
    const count = async (kind: string, domain: string, counted: object): Promise<void> => {
      await tx.run(
        sql`INSERT INTO outbound_reports (kind, day, domain, policy, rows, due_at) VALUES (${kind}, '2026-11-20', ${domain},
          ${JSON.stringify({ ...policy, domain })}, 1, ${due})`,
      )
      await tx.run(
        sql`INSERT INTO outbound_report_counts (kind, day, domain, key, record, count) VALUES (${kind}, '2026-11-20', ${domain}, x'00',
          ${JSON.stringify(counted)}, 1)`,
      )
    }
    for (let index = 0; index < 70; index++) {
      dns.txt(`_smtp._tls.t${index}.test`, `v=TLSRPTv1; rua=mailto:a${index}@victim.test,mailto:b${index}@Victim.test`)
      await count('tls', `t${index}.test`, tls)
      dns.txt(`_dmarc.d${index}.evil.test`, `v=DMARC1; p=none; rua=mailto:a${index}@evil.test,mailto:b${index}@evil.test`)
      await count('dmarc', `d${index}.evil.test`, record)
    }
    for (let index = 0; index < 110; index++) {
      dns.txt(`_dmarc.c${index}.test`, `v=DMARC1; p=none; rua=mailto:c@vendor.test`)
      dns.txt(`c${index}.test._report._dmarc.vendor.test`, 'v=DMARC1;')
      await count('dmarc', `c${index}.test`, record)
    }
  })
  box.clock.advance(19 * hour)
  for (let run = 0; run < 3; run++) await box.job('send-reports')
  const queued = box.rows<{ lane: string; n: number }>(
    "SELECT lane, count(*) AS n FROM deliveries_queue WHERE kind = 'report' GROUP BY lane ORDER BY lane",
  )
  expect(queued).toEqual([
    { lane: 'evil.test', n: 100 },
    { lane: 'vendor.test', n: 110 },
    { lane: 'victim.test', n: 100 },
  ])
  expect(box.rows('SELECT * FROM outbound_reports WHERE done_at IS NULL')).toEqual([])
})

test('reports that hang leave room for mail to servers that were never written to', async () => {
  const box = await reporting({ PILLARBOX_REPORTS__DMARC: 'true' })
  const { dns } = box.box
  const held: Guest[] = []
  box.sink.script = (line, guest) => {
    if (!line.includes('evil.test')) return undefined
    held.push(guest)
    return null
  }
  for (let index = 0; index < 80; index++) {
    const name = `d${index}.evil.test`
    publishDomain(box, name, `v=DMARC1; p=none; rua=mailto:d@${name}`)
    await box.receive(`a@${name}`)
  }
  await box.nextDay()
  await vi.waitFor(() => expect(box.sink.commands.filter((line) => line.startsWith('MAIL')).length).toBeGreaterThan(10), 100_000)
  dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  await box.until(await box.send('bob@far.test'), 'delivered')
  expect(box.rows("SELECT count(*) AS n FROM deliveries_queue WHERE kind = 'report' AND state = 'running'")).toEqual([{ n: 16 }])
  // once these are over the others follow
  box.sink.script = undefined
  for (const guest of held) guest.socket.destroy()
  await box.arrived(1 + 80 - 16)
})

test('a failure that a trusted forwarder vouches for has that as its reason', () => {
  const dmarc = { result: 'fail', domain: 'shop.test', policy: 'reject', aligned_by: [], reason: null } as const
  const none = { result: 'none', domain: null, reason: null } as const
  const result = dmarcResult(envelope(), {
    authentication: { spf: none, dkim: [], dmarc: { ...dmarc, aligned_by: [] }, arc: { result: 'pass', chain: 1, reason: null } },
    verified_domain: null,
    action: 'keep',
    reply: null,
    authentication_results: '',
    published: { ...policy, p: 'reject' },
    forwarder: 'lists.test',
  })
  expect(result).toMatchObject({
    domain: 'shop.test',
    record: { disposition: 'none', override: { type: 'trusted_forwarder', comment: 'arc=pass by lists.test' } },
  })
})

test('what strangers choose cannot break out of the XML, nor make it none', () => {
  const evil = `</header_from><x a='"'>&\u0000\u0008\uD800\uFFFE]]>`
  const xml = dmarcXml({
    organization: evil,
    contact: 'postmaster@pillarbox.test',
    report_id: '1@pillarbox.test',
    begin: 0,
    end: 86_399_000,
    generator: 'Pillarbox',
    policy: { ...policy, np: 'reject', fo: '1' },
    dropped: 7,
    rows: [
      {
        count: 1,
        record: {
          source_ip: '2001:db8::1',
          disposition: 'none',
          dkim: 'fail',
          spf: 'fail',
          override: { type: 'trusted_forwarder', comment: evil },
          header_from: evil,
          envelope_from: '',
          dkim_results: [{ domain: evil, selector: evil, result: 'neutral' }],
          spf_result: { domain: evil, result: 'softfail' },
        },
      },
    ],
  })
  expectValid(xml)
  expect(xml).toContain(`<header_from>&lt;/header_from&gt;&lt;x a=&apos;&quot;&apos;&gt;&amp;]]&gt;</header_from>`)
  expect(xml).toContain('<error>7 more messages were received than fit into this report</error>')
})
