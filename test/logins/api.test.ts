import { describe, expect, test, vi } from 'vitest'
import { databaseOf, holding, sealedValues } from '../keys/sealed.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { openStore } from '../support/open-store.ts'

type Any = ReturnType<typeof JSON.parse>

const secrets = {
  username: 'ada-of-the-vault',
  password: 'correct horse battery staple',
  api_key: 'key-of-the-vault-0123456789',
  notes: 'The answer to the question\nis Lovelace.',
}
const input = { label: 'GitHub', url: 'https://GitHub.com/login', ...secrets }

async function scene(): Promise<{ box: Appliance; ada: string; at: string }> {
  const box = await appliance()
  const { body } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  return { box, ada: body.id, at: `/v1/identities/${body.id}/logins` }
}

async function stored(box: Appliance, at: string, more: object = {}): Promise<string> {
  const { status, body } = await box.call('POST', at, { ...input, ...more })
  expect([status, body.error]).toEqual([201, undefined])
  return body.id as string
}

async function events(box: Appliance, ada: string): Promise<Any[]> {
  const { body } = await box.call('GET', `/v1/identities/${ada}/events?limit=200`)
  return body.data.filter(({ type }: Any) => type.startsWith('login.'))
}

/** What is sealed of logins, as it is kept. */
function keptOf(box: Appliance): Buffer[] {
  return sealedValues(box)
    .filter(({ place }) => place.startsWith('login_secrets'))
    .map(({ kept }) => kept)
}

function slotsOf(box: Appliance): unknown {
  const database = openStore(databaseOf(box), { readOnly: true })
  try {
    return database.prepare('SELECT count(*) AS n FROM login_secrets').get()?.['n']
  } finally {
    database.close()
  }
}

async function usedStorage(box: Appliance): Promise<number> {
  return (await box.call('GET', '/v1/billing/subscription')).body.usage.storage_bytes as number
}

describe('a stored login', () => {
  test('is listed without its secrets, and revealed with them, also after a restart', async () => {
    const { box, ada, at } = await scene()
    const { body: totp } = await box.call('POST', `/v1/identities/${ada}/totp`, {
      secret: 'JBSWY3DPEHPK3PXP',
      service_name: 'GitHub',
    })
    const made = await box.call('POST', at, { ...input, totp_id: totp.id })
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      id: expect.stringMatching(/^login_/) as string,
      identity_id: ada,
      label: 'GitHub',
      url: 'https://GitHub.com/login',
      username: secrets.username,
      has_password: true,
      has_api_key: true,
      has_notes: true,
      totp_id: totp.id,
      created_at: expect.any(String) as string,
      updated_at: made.body.created_at,
    })
    const path = `/v1/logins/${made.body.id}`
    expect(made.headers.get('location')).toBe(path)
    await box.restart()
    expect((await box.call('GET', path)).body).toEqual(made.body)
    expect((await box.call('GET', at)).body).toEqual({ data: [made.body], has_more: false, next_cursor: null })
    const shown = await box.call('POST', `${path}/reveal`, { purpose: 'to open an issue' })
    expect([shown.status, shown.body]).toEqual([200, secrets])
    expect(shown.headers.get('cache-control')).toContain('no-store')
    await box.call('DELETE', `/v1/identities/${ada}/totp/${totp.id}`)
    expect((await box.call('GET', path)).body.totp_id).toBeNull()
  })

  test('needs only a label, and is told apart by what it has', async () => {
    const { box, at } = await scene()
    const { body } = await box.call('POST', at, { label: 'Wi-Fi', notes: 'n' })
    expect(body).toMatchObject({ url: null, username: null, has_password: false, has_api_key: false, has_notes: true })
    const shown = await box.call('POST', `/v1/logins/${body.id}/reveal`, {})
    expect(shown.body).toEqual({ username: null, password: null, api_key: null, notes: 'n' })
  })

  test('has a URL on one line, without what could hide or turn a text around', async () => {
    const { box, at } = await scene()
    for (const url of [
      'https://a.example/\nb',
      'https://a.exa\tmple/',
      'https://a.example/\u001b[2J',
      'https://a.example/\u202egnp.exe',
    ]) {
      const { status, body } = await box.call('POST', at, { label: 'GitHub', url })
      expect([status, body.error.param]).toEqual([400, 'url'])
    }
  })

  test('keeps what a change does not name, and loses what it sets to null', async () => {
    const { box, ada, at } = await scene()
    const id = await stored(box, at)
    const { body } = await box.call('PATCH', `/v1/logins/${id}`, { password: 'p'.repeat(4096), api_key: null, label: 'Hub' })
    expect(body).toMatchObject({ id, label: 'Hub', url: input.url, username: secrets.username, has_api_key: false })
    const shown = await box.call('POST', `/v1/logins/${id}/reveal`, {})
    expect(shown.body).toEqual({ ...secrets, password: 'p'.repeat(4096), api_key: null })
    expect((await events(box, ada)).map(({ type }) => type)).toEqual(['login.revealed', 'login.updated', 'login.created'])
  })

  test('is bounded: secrets by bytes, an identity by a thousand', async () => {
    const { box, ada, at } = await scene()
    const bad: [more: object, param: string][] = [
      [{ password: 'é'.repeat(2049) }, 'password'],
      [{ api_key: 'x'.repeat(4097) }, 'api_key'],
      [{ notes: 'x'.repeat(16_385) }, 'notes'],
      [{ username: 'a\nb' }, 'username'],
      [{ label: '' }, 'label'],
      [{ url: 'ftp://example.com/' }, 'url'],
      [{ url: 'https://ada:secret@example.com/' }, 'url'],
      [{ totp_id: 'totp_00000000000000000000000000' }, 'totp_id'],
    ]
    for (const [more, param] of bad) {
      const { status, body } = await box.call('POST', at, { ...input, ...more })
      expect([more, status, body.error.param]).toEqual([more, 400, param])
    }
    await stored(box, at, { password: 'x'.repeat(4096), api_key: '\u0001'.repeat(4096), notes: 'x'.repeat(16_384) })
    // beside the API, as it is quicker; the last one is made by it
    const database = openStore(databaseOf(box))
    const names = database.prepare("SELECT name FROM pragma_table_info('stored_logins') WHERE name NOT IN ('seq', 'id')").all()
    const columns = names.map(({ name }) => String(name)).join(', ')
    database.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 998)
      INSERT INTO stored_logins (id, ${columns}) SELECT 'login_' || printf('%026d', i), ${columns} FROM n, stored_logins`)
    database.close()
    await stored(box, at)
    expect((await box.call('POST', at, input)).body.error).toMatchObject({ status: 409, code: 'too_many_logins' })
    const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
    await stored(box, `/v1/identities/${bob.id}/logins`)
    await box.call('DELETE', `/v1/identities/${ada}`)
    await vi.waitFor(() => expect(keptOf(box)).toHaveLength(2), 90_000)
  })

  test('counts in the storage of its account, and no longer once it is deleted', async () => {
    const { box, at } = await scene()
    const before = await usedStorage(box)
    const id = await stored(box, at)
    const small = (await usedStorage(box)) - before
    expect(small).toBeGreaterThan(100)
    await box.call('PATCH', `/v1/logins/${id}`, { notes: 'x'.repeat(16_384) })
    expect((await usedStorage(box)) - before).toBeGreaterThan(16_384)
    await box.call('PATCH', `/v1/logins/${id}`, { notes: secrets.notes })
    expect((await usedStorage(box)) - before).toBeLessThan(small + 4096)
    await box.call('DELETE', `/v1/logins/${id}`)
    // the events that tell of it count, its secrets do not
    expect((await usedStorage(box)) - before).toBeLessThan(4096)
  })
})

describe('on disk', () => {
  test('nothing of a login but its label and URL is in the clear', async () => {
    const { box, at } = await scene()
    const id = await stored(box, at)
    await box.call('POST', `/v1/logins/${id}/reveal`, { purpose: 'to open an issue' })
    await box.call('PATCH', `/v1/logins/${id}`, { notes: 'Another note of hers.' })
    await box.app.stop()
    const directory = box.env['PILLARBOX_DATA_DIR']!
    expect(holding(directory, Buffer.from('https://GitHub.com/login'))).toContain(databaseOf(box))
    for (const text of [...Object.values(secrets), 'Lovelace', 'Another note of hers.']) {
      expect([text, holding(directory, Buffer.from(text))]).toEqual([text, []])
    }
  })

  test('what is deleted or replaced is gone, sealed as it was, and its place is used again', async () => {
    const { box, at } = await scene()
    const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
    const [first, second] = [await stored(box, at), await stored(box, at)]
    const his = await stored(box, `/v1/identities/${bob.id}/logins`)
    const sealed = keptOf(box)
    expect(sealed).toHaveLength(6)
    await box.call('DELETE', `/v1/logins/${first}`)
    await box.call('PATCH', `/v1/logins/${second}`, { password: 'another' })
    await box.call('DELETE', `/v1/identities/${bob.id}`)
    expect((await box.call('POST', `/v1/logins/${his}/reveal`, {})).status).toBe(404)
    await box.app.stop()
    expect(sealed.flatMap((octets) => holding(box.env['PILLARBOX_DATA_DIR']!, octets))).toEqual([])
    expect(keptOf(box)).toHaveLength(2)
    await box.restart()
    const before = slotsOf(box)
    await stored(box, at)
    expect(slotsOf(box)).toBe(before)
  })
})

describe('a reveal', () => {
  test('is in the log of events and in the audit log, with who and what for, and without what', async () => {
    const { box, ada, at } = await scene()
    const id = await stored(box, at)
    const { body: key } = await box.call('POST', '/v1/api-keys', { label: 'agent', scopes: ['identities:read'] })
    await box.call('POST', `/v1/logins/${id}/reveal`, { purpose: 'to open an issue' }, { key: key.key })
    const [told] = await events(box, ada)
    expect(told).toMatchObject({
      type: 'login.revealed',
      data: { id, identity_id: ada, label: 'GitHub', purpose: 'to open an issue', key_id: key.id, ip: '127.0.0.1' },
    })
    const { body: audit } = await box.call('GET', '/v1/audit?action=login.*')
    expect(audit.data).toMatchObject([
      { action: 'login.revealed', actor: key.id, target: id, identity_id: ada, detail: { purpose: 'to open an issue' } },
      { action: 'login.created', target: id },
    ])
    const all = JSON.stringify([await events(box, ada), audit])
    for (const text of Object.values(secrets)) expect(all).not.toContain(text)
  })

  test('is for no key without the scope, of another identity or of nobody, and HEAD is no way to ask', async () => {
    const { box, at } = await scene()
    const id = await stored(box, at)
    const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
    const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: bob.id })
    const { body: narrow } = await box.call('POST', '/v1/api-keys', { scopes: ['identities:write', 'cards:read'] })
    const path = `/v1/logins/${id}/reveal`
    expect((await box.call('POST', path, {}, { key: null })).status).toBe(401)
    expect((await box.call('POST', path, {}, { key: narrow.key })).status).toBe(403)
    for (const [method, where] of [
      ['POST', path],
      ['GET', `/v1/logins/${id}`],
      ['PATCH', `/v1/logins/${id}`],
      ['DELETE', `/v1/logins/${id}`],
      ['GET', at],
    ] as const) {
      const { status } = await box.call(method, where, method === 'POST' || method === 'PATCH' ? {} : undefined, {
        key: bound.key,
      })
      expect([method, where, status]).toEqual([method, where, 404])
    }
    expect((await box.call('HEAD', path)).status).toBe(404)
    const { body: audit } = await box.call('GET', '/v1/audit?action=login.revealed')
    expect(audit.data).toEqual([])
  })
})
