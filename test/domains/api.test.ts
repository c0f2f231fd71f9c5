import { openStore } from '../support/open-store.ts'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { fetchAs } from '../support/host.ts'
import { addedDomain, publish, verifiedDomain } from '../support/verified-domain.ts'

describe('adding a domain', () => {
  test('answers what the DNS should say, in any of the three spellings', async () => {
    const box = await appliance({ PILLARBOX_HOSTNAME: 'mx.box.test' })
    for (const [field, name] of [
      ['name', 'one.example'],
      ['domain', 'two.example'],
      ['domain_name', 'three.example'],
    ] as const) {
      const { status, body, headers } = await box.call('POST', '/v1/domains', { [field]: name })
      expect(status).toBe(201)
      expect(headers.get('location')).toBe(`/v1/domains/${body.id}`)
      expect(body).toMatchObject({ name, status: 'pending', default: false, verified_at: null, last_checked_at: null })
      expect(body.dns_records.filter((record: { required: boolean }) => record.required)).toMatchObject([
        { purpose: 'mx', type: 'MX', name, value: 'mx.box.test', priority: 10, status: 'missing', found: [] },
        { purpose: 'spf', type: 'TXT', name, value: 'v=spf1 mx ~all', status: 'missing' },
        { purpose: 'dkim', value: expect.stringMatching(/^v=DKIM1; h=sha256; k=rsa; p=[\w+/]{392}$/) },
        { purpose: 'dkim', value: expect.stringMatching(/^v=DKIM1; h=sha256; k=ed25519; p=[\w+/]{43}=$/) },
      ])
      expect(body.dns_records.slice(4).map((record: { name: string }) => record.name)).toEqual([
        expect.stringMatching(new RegExp(`^pb\\d{6}\\w+\\._domainkey\\.${name}$`)),
        expect.stringMatching(new RegExp(`^pb\\d{6}\\w+\\._domainkey\\.${name}$`)),
        `_dmarc.${name}`,
        `_mta-sts.${name}`,
        `mta-sts.${name}`,
        `_smtp._tls.${name}`,
      ])
    }
    const { body: list } = await box.call('GET', '/v1/domains')
    expect(list.data.map(({ name }) => name)).toEqual(['three.example', 'two.example', 'one.example', 'pillarbox.test'])
    expect(list.data[3].default).toBe(true)
  })

  test('reads a name as the DNS writes it, and has it once', async () => {
    const box = await appliance()
    for (const [given, name] of [
      ['EXAMPLE.Com', 'example.com'],
      [' Bücher.Example. ', 'xn--bcher-kva.example'],
      ['例え。テスト', 'xn--r8jz45g.xn--zckzah'],
      ['ＦＵＬＬ.a-b.c0.example', 'full.a-b.c0.example'],
    ] as const) {
      const { body } = await box.call('POST', '/v1/domains', { name: given })
      expect(body.name).toBe(name)
      const again = await box.call('POST', '/v1/domains', { domain: `${name.toUpperCase()}.` })
      expect(again.body.error).toMatchObject({ status: 409, param: 'domain' })
    }
  })

  test('refuses what mail cannot be sent to, and names the field', async () => {
    const box = await appliance()
    const bad = [
      'localhost',
      'com',
      '.',
      '..',
      'a..example',
      '.example.com',
      'example.com..',
      '192.0.2.1',
      '①②⑦.0.0.1',
      '0x7f.1',
      '[192.0.2.1]',
      '[::1]',
      'example.123',
      'ada@example.com',
      'https://example.com',
      'example.com/path',
      'example.com:25',
      'exa mple.com',
      'exam\u0000ple.com',
      'example.com\r\nX: y',
      'ex%61mple.com',
      '-a.example',
      'a-.example',
      'a_b.example',
      '*.example.com',
      `${'a'.repeat(64)}.example`,
      `${'a.'.repeat(95)}example`,
    ]
    for (const field of ['name', 'domain', 'domain_name']) {
      for (const text of bad) {
        const { status, body } = await box.call('POST', '/v1/domains', { [field]: text })
        const expected = text.includes('\0') ? undefined : field
        expect([text, status, body.error?.['param']]).toEqual([text, 400, expected])
      }
    }
    expect((await box.call('POST', '/v1/domains', {})).body.error).toMatchObject({ status: 400, param: 'name' })
    const two = await box.call('POST', '/v1/domains', { name: 'a.example', domain: 'b.example' })
    expect(two.body.error).toMatchObject({ status: 400, param: 'domain' })
    expect((await box.call('POST', '/v1/domains', { name: 'a.example', domain: 'A.example.' })).status).toBe(201)
  })
})

test('what is bound to one identity sees no domains', async () => {
  const box = await appliance()
  const { body: identity } = await box.call('POST', '/v1/identities', {})
  const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: identity.id })
  const domain = await verifiedDomain(box)
  for (const [method, path] of [
    ['GET', '/v1/domains'],
    ['POST', '/v1/domains'],
    ['GET', `/v1/domains/${domain.id}`],
    ['GET', `/v1/domains/${domain.id}/zone`],
    ['GET', `/v1/domains/${domain.id}/reports`],
    ['POST', `/v1/domains/${domain.id}/verify`],
    ['POST', `/v1/domains/${domain.id}/dkim/rotate`],
    ['DELETE', `/v1/domains/${domain.id}`],
  ] as const) {
    const body = method === 'POST' && path === '/v1/domains' ? { name: 'example.com' } : undefined
    expect([path, (await box.call(method, path, body, { key: bound.key })).status]).toEqual([path, 404])
  }
})

describe('mail of a domain', () => {
  const to = 'ada@shop.example'
  const raw = message({ To: to, Subject: 'Hello' }, 'Hello')

  test('is refused until it is verified, then taken; addresses can be had in it', async () => {
    const box = await appliance()
    const { body: pending } = await box.call('POST', '/v1/domains', { name: 'shop.example' })
    expect(await deliver(box.smtp, { to, raw })).toMatch(/^550 5\.7\.1 /)
    expect(await deliver(box.smtp, { to: 'postmaster@shop.example', raw })).toMatch(/^550 5\.7\.1 /)
    const input = { name: 'Ada', email_domain: 'Shop.example' }
    expect((await box.call('POST', '/v1/identities', input)).body.error).toMatchObject({ status: 400, param: 'email_domain' })

    publish(box.dns, pending as never)
    expect((await box.call('POST', `/v1/domains/${pending.id}/verify`)).body.status).toBe('verified')
    const { body: ada } = await box.call('POST', '/v1/identities', input)
    expect(ada.email).toBe(to)
    expect(await deliver(box.smtp, { to, raw })).toMatch(/^250 /)
    const { body: emails } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
    expect(emails.data[0]).toMatchObject({ to, subject: 'Hello' })
    expect(await deliver(box.smtp, { to: 'nobody@shop.example', raw })).toMatch(/^550 5\.1\.1 /)
    // the same name at another domain is another address, at this one it is taken
    expect((await box.call('POST', '/v1/identities', { email_username: 'ada' })).body['email']).toBe('ada@pillarbox.test')
    const taken = await box.call('POST', '/v1/identities', { email_username: 'ada', email_domain: 'shop.example' })
    expect(taken.body.error).toMatchObject({ status: 409, param: 'email_username' })

    await box.restart()
    expect(await deliver(box.smtp, { to, raw })).toMatch(/^250 /)
  })

  test('comes in for its postmaster and abuse, for the operator to read', async () => {
    const box = await appliance()
    await addedDomain(box, 'shop.example')
    for (const local of ['postmaster', 'Abuse', 'POSTMASTER+x']) {
      const reply = await deliver(box.smtp, { to: `${local}@shop.example`, raw: message({ Subject: local }, 'Hello') })
      expect(reply).toMatch(/^250 /)
    }
    const { body: identities } = await box.call('GET', '/v1/identities')
    const { body: emails } = await box.call('GET', `/v1/identities/${identities.data[0].id}/emails`)
    expect(identities.data[0].email).toBe('postmaster@pillarbox.test')
    expect(emails.data.map(({ to: at }) => at)).toEqual([
      'POSTMASTER+x@shop.example',
      'Abuse@shop.example',
      'postmaster@shop.example',
    ])
  })

  test('of an IDN comes in by either of its names', async () => {
    const box = await appliance()
    await addedDomain(box, 'bücher.example')
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', email_domain: 'bücher.example' })
    expect(ada.email).toBe('ada@xn--bcher-kva.example')
    expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^250 /)
  })

  test('is refused again once the domain is deleted, which its living addresses prevent', async () => {
    const box = await appliance()
    const domain = await addedDomain(box, 'shop.example')
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', email_domain: 'shop.example' })
    const inUse = await box.call('DELETE', `/v1/domains/${domain.id}`)
    expect(inUse.body.error).toMatchObject({ status: 409, code: 'domain_in_use' })
    await box.call('DELETE', `/v1/identities/${ada.id}`)
    expect((await box.call('DELETE', `/v1/domains/${domain.id}`)).body).toEqual({ id: domain.id, deleted: true })
    expect((await box.call('DELETE', `/v1/domains/${domain.id}`)).status).toBe(404)
    expect(await deliver(box.smtp, { to, raw })).toMatch(/^550 5\.7\.1 /)
    expect((await box.call('POST', '/v1/identities', { email_domain: 'shop.example' })).status).toBe(400)
    expect(rows(box, 'SELECT * FROM dkim_keys')).toEqual([])
    // added anew it has other keys, and old addresses stay their identities'
    const anew = await addedDomain(box, 'shop.example')
    expect(anew.dns_records[2]!.name).not.toBe(domain.dns_records[2]!.name)
    expect(await deliver(box.smtp, { to, raw })).toMatch(/^550 5\.1\.1 /)
  })

  test("of the box's own domain always comes in: it cannot be deleted", async () => {
    const box = await appliance()
    const { body } = await box.call('GET', '/v1/domains')
    const refused = await box.call('DELETE', `/v1/domains/${body.data[0].id}`)
    expect(refused.body.error).toMatchObject({ status: 409, code: 'default_domain' })
    expect(body.data[0].status).toBe('pending')
    expect(await deliver(box.smtp, { to: 'postmaster@pillarbox.test', raw })).toMatch(/^250 /)
  })
})

test("another domain may become the box's own: the former takes mail until it is deleted", async () => {
  const box = await appliance()
  const shop = await addedDomain(box, 'shop.example')
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  box.env['PILLARBOX_MAIL__DOMAIN'] = 'shop.example'
  await box.restart()
  const { body: list } = await box.call('GET', '/v1/domains')
  expect(list.data.map(({ name, default: own, status }) => [name, own, status])).toEqual([
    ['shop.example', true, 'verified'],
    ['pillarbox.test', false, 'pending'],
  ])
  expect((await box.call('POST', '/v1/identities', { name: 'Bob' })).body['email']).toBe('bob@shop.example')
  const raw = message({ To: ada.email }, 'Hello')
  expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^250 /)
  expect((await box.call('DELETE', `/v1/domains/${shop.id}`)).body.error['code']).toBe('default_domain')
  const former = `/v1/domains/${list.data[1].id}`
  expect((await box.call('DELETE', former)).body.error['code']).toBe('domain_in_use')
  await box.call('DELETE', `/v1/identities/${ada.id}`)
  expect((await box.call('DELETE', former)).status).toBe(200)
  expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^550 5\.7\.1 /)
})

describe('the MTA-STS policy', () => {
  test('is read at mta-sts. of a domain that takes mail, and nowhere else', async () => {
    const box = await appliance({ PILLARBOX_HOSTNAME: 'mx.box.test' })
    await box.call('POST', '/v1/domains', { name: 'pending.example' })
    await addedDomain(box, 'shop.example')
    for (const host of ['mta-sts.pillarbox.test', 'mta-sts.shop.example', 'MTA-STS.Shop.example:443', 'mta-sts.shop.example:']) {
      const answer = await policyAt(box, host)
      expect([host, answer.status, answer.headers.get('content-type')]).toEqual([host, 200, 'text/plain; charset=utf-8'])
      expect(await answer.text()).toBe('version: STSv1\r\nmode: testing\r\nmx: mx.box.test\r\nmax_age: 86400\r\n')
    }
    const strange = [
      'pillarbox.test',
      'shop.example',
      'mta-sts.pending.example',
      'mta-sts.',
      'mta-sts.mta-sts.shop.example',
      'x',
      '',
    ]
    for (const host of [...strange, 'xmta-sts.shop.example', '[::1]:80', 'mta-sts.shop.example.evil.example', '__proto__']) {
      expect([host, (await policyAt(box, host)).status]).toEqual([host, 404])
    }
  })

  test('has another id when it says something else', async () => {
    const ids = new Set<string>()
    for (const mode of ['testing', 'enforce']) {
      const box = await appliance({ PILLARBOX_MAIL__MTA_STS: mode })
      const domain = await verifiedDomain(box)
      ids.add(domain.dns_records.find(({ name }) => name.startsWith('_mta-sts.'))!.value)
      expect(await (await policyAt(box, 'mta-sts.pillarbox.test')).text()).toContain(`mode: ${mode}\r\n`)
    }
    expect(ids.size).toBe(2)
    const none = await appliance({ PILLARBOX_MAIL__MTA_STS: 'none' })
    expect((await verifiedDomain(none)).dns_records.map(({ purpose }) => purpose)).not.toContain('mta_sts')
    // those who remember an earlier policy are told that it is over (RFC 8461 8.3)
    expect(await (await policyAt(none, 'mta-sts.pillarbox.test')).text()).toContain('mode: none\r\n')
  })
})

test('reports are listed newest first, and by their kind', async () => {
  const box = await appliance()
  const domain = await verifiedDomain(box)
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  for (const [kind, id] of [
    ['dmarc', '1'],
    ['tls', '2'],
    ['dmarc', '3'],
  ] as const) {
    database
      .prepare('INSERT INTO domain_reports (domain_id, kind, reporter, report_id, data, received_at) VALUES (?, ?, ?, ?, ?, ?)')
      .run(domain.id, kind, 'receiver.test', id, JSON.stringify({ pass: 1 }), '2026-11-20T10:00:00.000Z')
  }
  database.close()
  const list = async (query = '') => (await box.call('GET', `/v1/domains/${domain.id}/reports${query}`)).body
  expect((await list()).data.map(({ report_id }) => report_id)).toEqual(['3', '2', '1'])
  expect((await list('?kind=tls')).data).toEqual([
    {
      kind: 'tls',
      reporter: 'receiver.test',
      report_id: '2',
      begins_at: null,
      ends_at: null,
      received_at: '2026-11-20T10:00:00.000Z',
      data: { pass: 1 },
    },
  ])
  const first = await list('?kind=dmarc&limit=1')
  expect((await list(`?kind=dmarc&limit=1&cursor=${first.next_cursor}`)).data[0].report_id).toBe('1')
  expect((await box.call('GET', `/v1/domains/${domain.id}/reports?limit=1&cursor=${first.next_cursor}`)).status).toBe(400)
})

function rows(box: Appliance, query: string): unknown[] {
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true, timeout: 60_000 })
  try {
    return database.prepare(query).all()
  } finally {
    database.close()
  }
}

function policyAt(box: Appliance, host: string): Promise<Response> {
  return fetchAs(`${box.url}/.well-known/mta-sts.txt`, { headers: { Host: host } })
}
