import { expect, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'

test('events come newest first, with since oldest first from there, page by page without gap or repeat', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  for (let turn = 0; turn < 12; turn += 1) await box.call('PATCH', `/v1/identities/${ada.id}`, { metadata: { turn } })
  const path = `/v1/identities/${ada.id}/events`
  const newest = await walk(box, `${path}?limit=5`)
  expect(newest).toHaveLength(13)
  const first = newest.at(-1)!
  expect(await walk(box, `${path}?limit=5&since=${first}`)).toEqual(newest.toReversed().slice(1))
  expect(await walk(box, `${path}?limit=200&since=2000-01-01T00:00:00Z`)).toEqual(newest.toReversed())
  expect(await walk(box, `${path}?since=2999-01-01T00:00:00Z`)).toEqual([])
  expect(await walk(box, `${path}?since=${newest[0]}`)).toEqual([])
})

test('since names a time in any offset, or an event of the log; anything else is told', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', {})
  const path = `/v1/identities/${ada.id}/events`
  for (const since of [
    '2026-11-20T10:00:00+02:00',
    '2026-11-20T10:00:00 02:00',
    '2026-11-20',
    '2026-11-20T10:00:00.123456789Z',
    '0001-01-01T00:00:00Z',
    '9999-12-31T23:59:59Z',
  ]) {
    expect([since, (await box.call('GET', `${path}?since=${encodeURIComponent(since)}`)).status]).toEqual([since, 200])
  }
  for (const since of [
    'yesterday',
    '1763632800',
    'evt_',
    'evt_x',
    'email_01jd3v8m2ef1pbx9mz5k7q4w6a',
    '9999-12-31T23:59:59-23:59',
    '0000-01-01T00:00:00+23:59',
  ]) {
    const told = await box.call('GET', `${path}?since=${encodeURIComponent(since)}`)
    expect([since, told.status, told.body.error?.['param']]).toEqual([since, 400, 'since'])
  }
  const gone = await box.call('GET', `${path}?since=evt_01jd3v8m2ef1pbx9mz5k7q4w6a`)
  expect(gone).toMatchObject({ status: 400, body: { error: { type: 'invalid_request', param: 'since', code: 'since_expired' } } })
})

test('a key sees the events its scopes cover, and a type it may not see is nothing', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'News' }, 'x\n') })
  const types = async (scope: string, query = ''): Promise<string[]> => {
    const { body: made } = await box.call('POST', '/v1/api-keys', { scopes: [scope] })
    const { body } = await box.call('GET', `/v1/identities/${ada.id}/events${query}`, undefined, { key: made.key })
    return body.data.map(({ type }) => type as string)
  }
  expect(await types('identities:read')).toEqual(['identity.created'])
  expect(await types('messages:read')).toEqual(['email.received'])
  expect(await types('emails:read')).toEqual(['email.received'])
  expect(await types('sms:read')).toEqual([])
  expect(await types('identities:read', '?type=email.received')).toEqual([])
  expect(await types('emails:read', '?type=email.received')).toEqual(['email.received'])
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.received`)
  expect(body.data[0]).toMatchObject({
    event: 'email.received',
    type: 'email.received',
    identity_id: ada.id,
    data: { subject: 'News' },
  })
})

test.each([
  ['email.recieved', 'email.received'],
  ['email_received', 'email.received'],
  ['Email.Received', 'email.received'],
  ['card.frozn', 'card.frozen'],
  ['typo', undefined],
  ['agent.of.change', undefined],
])('a name that no event has (%s) is refused, with the nearest there is', async (type, near) => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { status, body } = await box.call('GET', `/v1/identities/${ada.id}/events?type=${type}`)
  expect([status, body.error]).toEqual([
    400,
    expect.objectContaining({ type: 'invalid_request', code: 'unknown_event', param: 'type' }),
  ])
  expect(body.error.message).toContain(near === undefined ? 'The events are identity.created,' : `Did you mean ${near}?`)
})

test.each(['card.frozen', 'totp.read', 'reputation.updated', 'payment.settled', 'shop.order.paid'])(
  'a name that nothing was told under yet (%s) lists nothing',
  async (type) => {
    const box = await appliance()
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    expect(await box.call('GET', `/v1/identities/${ada.id}/events?type=${type}`)).toMatchObject({
      status: 200,
      body: { data: [], has_more: false },
    })
  },
)

test('an event list cannot be entered by another list’s cursor', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  for (const { id } of [ada, bob]) await box.call('PATCH', `/v1/identities/${id}`, {})
  const { body: page } = await box.call('GET', `/v1/identities/${ada.id}/events?limit=1`)
  const cursor = page['next_cursor'] as string
  const others = [
    `/v1/identities/${bob.id}/events?`,
    `/v1/identities/${ada.id}/events?type=identity.created&`,
    `/v1/identities/${ada.id}/emails?`,
    `/v1/identities/${ada.id}/messages?`,
    `/v1/identities/${ada.id}/threads?`,
    '/v1/identities?',
    '/v1/api-keys?',
  ]
  for (const other of others) {
    const told = await box.call('GET', `${other}cursor=${cursor}`)
    expect([other, told.status, told.body.error?.['code']]).toEqual([other, 400, 'bad_cursor'])
  }
  const [position, signature] = cursor.split('.') as [string, string]
  const changed = [
    position,
    `${position}.`,
    `.${signature}`,
    `${position}0.${signature}`,
    `${position}.${signature}A`,
    `${position}.${signature}=`,
    `${position}.${signature}.x`,
    ` ${cursor}`,
    `${position.toUpperCase()}X.${signature}`,
    `${position}.!${signature}`,
    `0.${signature}`,
    `-1.${signature}`,
  ]
  for (const wrong of changed) {
    const told = await box.call('GET', `/v1/identities/${ada.id}/events?limit=1&cursor=${encodeURIComponent(wrong)}`)
    expect([wrong, told.status, told.body.error?.['code']]).toEqual([wrong, 400, 'bad_cursor'])
  }
  expect((await box.call('GET', `/v1/identities/${ada.id}/events?limit=1&cursor=${cursor}`)).status).toBe(200)
})

test('since says what it may be', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', {})
  for (const path of ['events', 'wait']) {
    const { body } = await box.call('GET', `/v1/identities/${ada.id}/${path}?since=2026`)
    expect(body.error).toMatchObject({ status: 400, param: 'since', code: 'invalid_value' })
    expect(body.error['message']).toMatch(/^since must be an evt_ id, or an ISO 8601 time such as 2026-/)
  }
})

test('events, messages and attachments are paged by offset as well as by cursor, not by both', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const names = ['a.txt', 'b.txt', 'c.txt']
  for (const Subject of ['one', 'two', 'three']) {
    const head = { Subject, 'MIME-Version': '1.0', 'Content-Type': 'multipart/mixed; boundary=b' }
    const raw = message(head, `--b\nContent-Type: text/plain\n\n${Subject}\n${names.map(part).join('')}--b--\n`)
    expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^250/)
  }
  const own = `/v1/identities/${ada.id}`
  const { body: emails } = await box.call('GET', `${own}/emails`)
  const lists = [
    `${own}/events?`,
    `${own}/events?since=2000-01-01T00:00:00Z&`,
    `${own}/messages?`,
    `${own}/emails/${emails.data[0].id}/attachments?`,
  ]
  for (const list of lists) {
    const page = async (query: string): Promise<{ data: unknown[]; has_more: boolean; next_cursor: string | null }> =>
      (await box.call('GET', `${list}${query}`)).body as never
    const { data: all } = await page('')
    expect(all.length).toBeGreaterThanOrEqual(3)
    const first = await page('limit=1')
    expect(first).toMatchObject({ data: [all[0]], has_more: true })
    expect((await page(`limit=1&cursor=${first.next_cursor}`)).data).toEqual([all[1]])
    expect((await page('limit=1&offset=1')).data).toEqual([all[1]])
    expect(await page('offset=1')).toEqual({ data: all.slice(1), has_more: false, next_cursor: null })
    expect((await page('offset=1000')).data).toEqual([])
    const both = await box.call('GET', `${list}limit=1&offset=1&cursor=${first.next_cursor}`)
    expect(both).toMatchObject({ status: 400, body: { error: { param: 'offset' } } })
  }
})

function part(name: string): string {
  return `--b\nContent-Type: text/plain; name="${name}"\nContent-Disposition: attachment; filename="${name}"\n\n${name}\n`
}

async function walk(box: Appliance, path: string): Promise<string[]> {
  const ids: string[] = []
  for (let cursor = ''; ids.length < 1000;) {
    const { body } = await box.call('GET', `${path}${cursor}`)
    ids.push(...body.data.map(({ id }) => id as string))
    if (body['next_cursor'] === null) break
    cursor = `&cursor=${body['next_cursor']}`
  }
  return ids
}

test('an event carries 256 KiB of a body as JSON, whole characters, and says when it cut', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const most = 256 * 1024
  const plain = { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Transfer-Encoding': '8bit' }
  // an octet before them, so that every limit falls into the middle of a character
  const bodies = [
    `x${`${'😀'.repeat(60)}\n`.repeat(2200)}`,
    `xx${`${'中'.repeat(60)}\n`.repeat(2000)}`,
    `${'"'.repeat(60)}\n`.repeat(3000),
    'short\n',
  ]
  for (const body of bodies) {
    const raw = Buffer.from(message({ Subject: 'Long', ...plain }, body), 'utf8')
    expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^250/)
  }
  const { body: events } = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.received&since=2000-01-01T00:00:00Z`)
  for (const [index, { data }] of events.data.entries()) {
    const { body_text, text, body_truncated } = data as { body_text: string; text: string; body_truncated?: boolean }
    expect([index, body_truncated]).toEqual([index, index < 3 ? true : undefined])
    const { body: whole } = await box.call('GET', `/v1/identities/${ada.id}/emails/${data.id}`)
    for (const [cut, full] of [
      [body_text, whole.body_text],
      [text, whole.text],
    ]) {
      const bytes = Buffer.byteLength(JSON.stringify(cut)) - 2
      expect(bytes).toBeLessThanOrEqual(most)
      if (index < 3) expect(bytes).toBeGreaterThan(most - 4)
      expect(cut.isWellFormed()).toBe(true)
      expect(full.startsWith(cut)).toBe(true)
    }
  }
})
