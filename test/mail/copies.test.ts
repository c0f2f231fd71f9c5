import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { describe, expect, test } from 'vitest'
import { exported } from '../ops/transfer/moving.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'

interface Mailbox {
  id: string
  email: string
}

/** Mailboxes, and a hundred addresses that reach them: each mailbox with tags. */
async function hundred(box: Appliance): Promise<{ mailboxes: Mailbox[]; to: string[] }> {
  const mailboxes: Mailbox[] = []
  for (let number = 0; number < 10; number += 1) {
    mailboxes.push((await box.call<Mailbox>('POST', '/v1/identities', { name: `Box ${number}` })).body)
  }
  const tags = ['', ...Array.from({ length: 9 }, (_, number) => `+${number}`)]
  return { mailboxes, to: mailboxes.flatMap(({ email }) => tags.map((tag) => email.replace('@', `${tag}@`))) }
}

const words = Array.from({ length: 60_000 }, (_, number) => `word${number}${number % 12 === 11 ? '\n' : ' '}`).join('')
const links = Array.from({ length: 30 }, (_, number) => `https://a.test/${number}${'x'.repeat(2000)}`)
const head = {
  Subject: 'All hands',
  'Message-ID': '<all@sender.test>',
  To: Array.from({ length: 300 }, (_, number) => `person${number}@list.test`).join(',\r\n '),
}
const multipart = { ...head, 'Content-Type': 'multipart/mixed; boundary=b' }

function parts(text: string): string {
  const attachments = Array.from(
    { length: 150 },
    (_, number) =>
      `--b\nContent-Type: text/csv\nContent-Disposition: attachment; filename="${number}${'n'.repeat(200)}.csv"\n\nrow ${number}\n`,
  )
  return `--b\nContent-Type: text/plain\n\n${text}\n${attachments.join('')}--b--\n`
}

const messages: Record<string, string> = {
  'a short text': message(head, 'sesame\n'),
  'a long text': message(head, `sesame ${words}`),
  'a short text, with many links and attachments': message(multipart, parts(`sesame\n${links.slice(0, 5).join('\n')}`)),
  'a long text, with many links and attachments': message(multipart, parts(`sesame\n${links.join('\n')}\n${words}${words}`)),
}

test('a short message of which a long text is made is listed, and exported, without reading that text', async () => {
  const box = await appliance()
  const { body: ada } = await box.call<Mailbox>('POST', '/v1/identities', { name: 'Ada' })
  const html = `${'<ol start=9999><li>'.repeat(8)}<pre>${'a\n'.repeat(10_000)}`
  const body = `--b\nContent-Type: text/html\n\n${html}\n--b\nContent-Disposition: attachment; filename=a.csv\n\na,b\n--b--\n`
  expect(await deliver(box.smtp, { to: ada.email, raw: message(multipart, body) })).toMatch(/^250 /)
  const [listed] = (await box.call('GET', `/v1/identities/${ada.id}/emails`)).body.data
  const path = `/v1/identities/${ada.id}/emails/${listed.id}`
  // whoever reads the texts fails
  rows(box, 'UPDATE blobs SET bytes = zeroblob(64) WHERE id IN (SELECT body_id FROM emails)')
  expect((await box.call('GET', path)).status).toBe(500)
  expect((await box.call('GET', `${path}/attachments`)).body.data).toMatchObject([{ filename: 'a.csv' }])
  expect((await exported(box, ada.id)).job.result).toMatchObject({ messages: 1 })
})

describe('one message to a hundred addresses', () => {
  test.for(Object.entries(messages))('%s: each has the whole message', async ([, raw]) => {
    const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '0' })
    const { mailboxes, to } = await hundred(box)
    const [alone] = mailboxes
    // the same to one is what the others are compared with
    const { body: single } = await box.call<Mailbox>('POST', '/v1/identities', { name: 'Single' })
    expect(await deliver(box.smtp, { to: single.email, raw })).toMatch(/^250 /)
    expect(await deliver(box.smtp, { to, raw })).toMatch(/^250 /)
    const expected = await contentOf(box, single)
    expect(expected.email.body_text).toContain('sesame')
    const arrived: string[] = []
    for (const mailbox of mailboxes) {
      const path = `/v1/identities/${mailbox.id}`
      const { body: found } = await box.call('GET', `${path}/emails/search?query=sesame&limit=100`)
      const { body: list } = await box.call('GET', `${path}/emails?limit=100`)
      expect(found.data).toEqual(list.data)
      arrived.push(...list.data.map((email) => email.to as string))
      const { body: identity } = await box.call('GET', path)
      expect(identity.storage.used).toBe(10 * Buffer.byteLength(raw))
    }
    expect(arrived.toSorted()).toEqual(to.toSorted())
    expect(await contentOf(box, alone!)).toEqual(expected)
    const events = rows(box, "SELECT json_extract(data, '$.to') AS at FROM events WHERE type = 'email.received' ORDER BY seq")
    expect(events.map((event) => (event as { at: string }).at)).toEqual([single.email, ...to])
  })

  test('its attachments are listed, and it is restored, without reading its long texts', async () => {
    const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '0' })
    const { body: ada } = await box.call<Mailbox>('POST', '/v1/identities', { name: 'Ada' })
    const raw = messages['a long text, with many links and attachments']!
    expect(await deliver(box.smtp, { to: [ada.email, ada.email.replace('@', '+tag@')], raw })).toMatch(/^250 /)
    const path = `/v1/identities/${ada.id}/emails`
    const { body: list } = await box.call('GET', path)
    const before = (await box.call('GET', `${path}/${list.data[0].id}/attachments?limit=100`)).body
    expect(before.data).toHaveLength(100)
    // whoever reads the texts fails
    rows(box, 'UPDATE blobs SET bytes = zeroblob(64) WHERE id IN (SELECT body_id FROM emails)')
    const id = list.data[0].id as string
    expect((await box.call('GET', `${path}/${id}`)).status).toBe(500)
    expect((await box.call('GET', `${path}/${id}/attachments?limit=100`)).body).toEqual(before)
    await box.call('DELETE', `${path}/${id}`)
    await box.call('POST', `${path}/${id}/restore`)
    expect((await box.call('GET', path)).body.data.map((one) => one.id)).toContain(id)
  })

  test('when every copy is purged, nothing of it is left', async () => {
    const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '0' })
    const { mailboxes, to } = await hundred(box)
    const raw = messages['a long text, with many links and attachments']!
    expect(await deliver(box.smtp, { to, raw })).toMatch(/^250 /)
    let left = to.length
    for (const { id } of mailboxes) {
      const { body: list } = await box.call('GET', `/v1/identities/${id}/emails?limit=100`)
      for (const email of list.data) {
        expect(rows(box, 'SELECT count(*) > 0 AS kept FROM blobs')).toEqual([{ kept: 1 }])
        await box.call('DELETE', `/v1/identities/${id}/emails/${email.id}?purge=true`)
        left -= 1
      }
    }
    expect(left).toBe(0)
    expect(
      rows(box, 'SELECT (SELECT count(*) FROM blobs) AS blobs, (SELECT sum(stored_bytes) FROM identities) AS bytes'),
    ).toEqual([{ blobs: 0, bytes: 0 }])
  })

  test('one copy that cannot be stored stores none, and the message sent again arrives once', async () => {
    const box = await appliance({ PILLARBOX_HTTP__RATE_LIMIT: '0' })
    const { mailboxes, to } = await hundred(box)
    const raw = messages['a long text']!
    const trigger = `CREATE TRIGGER failing BEFORE INSERT ON emails WHEN NEW.to_text = '${to[60]}' BEGIN SELECT RAISE(ABORT, 'failed'); END`
    rows(box, trigger)
    expect(await deliver(box.smtp, { to, raw })).toMatch(/^451 /)
    for (const table of ['emails', 'emails_search', 'threads', 'blobs']) {
      expect(rows(box, `SELECT count(*) AS count FROM ${table}`)).toEqual([{ count: 0 }])
    }
    expect(rows(box, "SELECT count(*) AS count FROM events WHERE type = 'email.received'")).toEqual([{ count: 0 }])
    rows(box, 'DROP TRIGGER failing')
    expect(await deliver(box.smtp, { to, raw })).toMatch(/^250 /)
    const arrived: string[] = []
    for (const { id } of mailboxes) {
      const { body: list } = await box.call('GET', `/v1/identities/${id}/emails?limit=100&duplicates=true`)
      arrived.push(...list.data.map((email) => email.to as string))
    }
    expect(arrived.toSorted()).toEqual(to.toSorted())
  })
})

/** What an e-mail says wherever it is shown, without what differs between copies. */
async function contentOf(box: Appliance, { id }: Mailbox) {
  const path = `/v1/identities/${id}`
  const { body: list } = await box.call('GET', `${path}/emails?limit=100`)
  const newest = list.data[0].id as string
  const { body: email } = await box.call('GET', `${path}/emails/${newest}`)
  const { body: attachments } = await box.call('GET', `${path}/emails/${newest}/attachments?limit=100`)
  const { body: events } = await box.call('GET', `${path}/events?type=email.received&limit=100`)
  const event = events.data.find(({ data }) => data.id === newest)
  return { email: common(email), attachments: attachments.data, event: common(event.data) }
}

function common(email: Record<string, unknown>): Record<string, unknown> {
  const own = new Set(['id', 'identity_id', 'thread_id', 'to', 'tag', 'received_at', 'created_at'])
  return Object.fromEntries(Object.entries(email).filter(([name]) => !own.has(name)))
}

/** Runs a statement by another connection, and answers its rows. */
function rows(box: Appliance, statement: string): unknown[] {
  const database = openStore(join(box.env['PILLARBOX_DATA_DIR']!, 'pillarbox.db'), { timeout: 60_000 })
  try {
    return database.prepare(statement).all()
  } finally {
    database.close()
  }
}
