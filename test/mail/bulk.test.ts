import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { BulkResult } from '../../src/mail/model.ts'
import { type Answer, type Appliance, deliver, message, openAppliance } from '../support/appliance.ts'

let box: Appliance
let close: () => Promise<void>
beforeAll(async () => ({ box, close } = await openAppliance()))
afterAll(() => close?.())

const unknown = 'email_00000000000000000000000000'

interface Mailbox {
  id: string
  path: string
  /** The ids of messages with these subjects, in their order. */
  receive: (...subjects: string[]) => Promise<string[]>
  bulk: (body: object, key?: string) => Promise<Answer<BulkResult & { error?: unknown }>>
  /** The subjects a list has, newest first. */
  subjects: (query?: string) => Promise<string[]>
}

async function mailbox(name: string): Promise<Mailbox> {
  const { body: identity } = await box.call('POST', '/v1/identities', { name })
  const path = `/v1/identities/${identity.id}`
  return {
    id: identity.id,
    path,
    receive: async (...subjects) => {
      for (const subject of subjects) {
        const reply = await deliver(box.smtp, { to: identity.email, raw: message({ Subject: subject }, `Of ${subject}\n`) })
        expect(reply).toMatch(/^250/)
      }
      const { body } = await box.call('GET', `${path}/emails?limit=200`)
      return subjects.map((subject) => body.data.find((one) => one.subject === subject).id)
    },
    bulk: (body, key = box.key) => box.call('POST', `${path}/emails/bulk`, body, { key }),
    subjects: async (query = '') => {
      const { body } = await box.call('GET', `${path}/emails?${query}`)
      return body.data.map(({ subject }) => subject)
    },
  }
}

test('marks and labels the e-mails that are named, and says which ids there are none of', async () => {
  const { path, receive, bulk, subjects } = await mailbox('Marks')
  const other = await mailbox('Neighbour')
  const [foreign] = await other.receive('elsewhere')
  const [one, two] = await receive('one', 'two', 'three')
  const { status, body } = await bulk({
    ids: [one, unknown, two, foreign, 'nonsense', one],
    read: true,
    labels: { add: ['a', 'b'] },
  })
  expect([status, body]).toEqual([
    200,
    { changed: [one, two], not_found: [unknown, foreign, 'nonsense'], failed: [], has_more: false, next_cursor: null },
  ])
  expect(await subjects('unread=true')).toEqual(['three'])
  expect(await other.subjects('unread=true')).toEqual(['elsewhere'])
  const { body: threads } = await box.call('GET', `${path}/threads`)
  expect(threads.data.map(({ subject, unread_count }) => [subject, unread_count])).toEqual([
    ['three', 1],
    ['two', 0],
    ['one', 0],
  ])

  await bulk({ ids: [one], unread: true, labels: { add: ['c'], remove: ['a'] } })
  expect((await box.call('GET', `${path}/emails/${one}`)).body).toMatchObject({ read: false, labels: ['b', 'c'] })
  // what is as it was asked for has been changed too
  expect((await bulk({ ids: [two], read: true })).body).toMatchObject({ changed: [two] })
})

test('deletes into the trash or for ever, as DELETE of each does, also from the trash, and gives the storage back', async () => {
  const { path, receive, bulk, subjects } = await mailbox('Deletes')
  const used = async (): Promise<number> => (await box.call('GET', '/v1/billing/subscription')).body['usage'].storage_bytes
  const before = await used()
  const [one, two, three] = await receive('one', 'two', 'three')
  expect((await bulk({ ids: [one, two], delete: true })).body).toMatchObject({ changed: [one, two], not_found: [] })
  expect([await subjects(), await subjects('trash=true')]).toEqual([['three'], ['two', 'one']])
  expect((await box.call('POST', `${path}/emails/${two}/restore`)).body).toMatchObject({ id: two, subject: 'two' })
  const { body: events } = await box.call('GET', `${path}/events?type=email.received`)
  expect(events.data.map(({ data }) => [data.id, data.deleted])).toEqual([
    [three, undefined],
    [two, undefined],
    [one, true],
  ])

  // a deletion that is not final does not find what is in the trash
  expect((await bulk({ ids: [one], delete: true })).body).toMatchObject({ changed: [], not_found: [one] })
  expect((await bulk({ ids: [one, two, three], purge: true })).body).toMatchObject({ changed: [one, two, three] })
  expect([await subjects(), await subjects('trash=true')]).toEqual([[], []])
  expect((await box.call('GET', `${path}/threads`)).body.data).toEqual([])
  expect(await used()).toBe(before)
})

test('an e-mail that is still to be sent is withdrawn when it is deleted', async () => {
  const { path, bulk } = await mailbox('Sends')
  const { body: later } = await box.call('POST', `${path}/emails`, {
    to: 'abuse@pillarbox.test',
    subject: 'later',
    send_at: new Date(Date.now() + 3_600_000).toISOString(),
  })
  expect((await bulk({ ids: [later['id']], delete: true })).body).toMatchObject({ changed: [later['id']] })
  const { body: restored } = await box.call('POST', `${path}/emails/${later['id']}/restore`)
  expect(restored).toMatchObject({ status: 'cancelled' })
})

test('changes what a search finds, a bounded number a call, until has_more is false', async () => {
  const { receive, bulk, subjects } = await mailbox('Searches')
  await receive('invoice 1', 'letter', 'invoice 2', 'invoice 3')
  const search = { query: 'invoice', unread: true }
  const first = await bulk({ search, limit: 2, labels: { add: ['paid'] } })
  expect([first.body.changed.length, first.body.has_more]).toEqual([2, true])
  expect(await subjects('label=paid')).toEqual(['invoice 3', 'invoice 2'])
  const second = await bulk({ search, limit: 2, labels: { add: ['paid'] }, cursor: first.body.next_cursor })
  expect(second.body).toMatchObject({ not_found: [], has_more: false, next_cursor: null })
  expect(await subjects('label=paid')).toEqual(['invoice 3', 'invoice 2', 'invoice 1'])
  // the search is the cursor's
  expect(await bulk({ search: { query: 'letter' }, read: true, cursor: first.body.next_cursor })).toMatchObject({
    status: 400,
    body: { error: { param: 'cursor' } },
  })
  expect((await bulk({ search: { query: 'invoice' }, delete: true })).body.changed).toHaveLength(3)
  expect(await subjects()).toEqual(['letter'])
})

test('500 e-mails are changed in one call, and no more', async () => {
  const { path, bulk } = await mailbox('Many')
  for (let count = 0; count < 60; count += 1) await box.call('POST', `${path}/emails`, { to: 'abuse@pillarbox.test' })
  const { body: sent } = await box.call('GET', `${path}/emails?direction=outbound&limit=200`)
  const ids = sent.data.map(({ id }) => id as string)
  const strange = Array.from({ length: 440 }, (_, index) => `email_${String(index).padStart(26, '0')}`)
  const { body } = await bulk({ ids: [...ids, ...strange], delete: true })
  expect([body.changed, body.not_found]).toEqual([ids, strange])
  expect(await bulk({ ids: [...ids, ...strange, 'one more'], delete: true })).toMatchObject({
    status: 400,
    body: { error: { param: 'ids' } },
  })
})

test('an e-mail that would have more than 100 labels stays as it is, and the others are changed', async () => {
  const { path, receive, bulk } = await mailbox('Labels')
  const [full, other] = await receive('full', 'other')
  for (const round of ['a', 'b']) {
    await box.call('PATCH', `${path}/emails/${full}`, {
      labels: { add: Array.from({ length: 50 }, (_, index) => `${round}${index}`) },
    })
  }
  const { status, body } = await bulk({ ids: [full, other], read: true, labels: { add: ['more'] } })
  expect([status, body.changed]).toEqual([200, [other]])
  expect(body.failed).toEqual([{ id: full, code: 'invalid_request', message: 'An e-mail can have at most 100 labels.' }])
  expect((await box.call('GET', `${path}/emails/${full}`)).body).toMatchObject({ read: false })
})

describe('refuses', () => {
  const ids = [unknown]
  test.each([
    ['neither ids nor a search', { read: true }, 'ids'],
    ['both', { ids, search: { query: 'x' }, read: true }, 'ids'],
    ['no change', { ids }, 'read'],
    ['marking and deleting', { ids, read: true, delete: true }, 'delete'],
    ['a contradiction', { ids, read: true, unread: true }, 'unread'],
    ['no ids', { ids: [], read: true }, 'ids'],
    ['an empty search', { search: {}, delete: true }, 'query'],
    ['a limit of 0', { search: { query: 'x' }, limit: 0, read: true }, 'limit'],
    ['a limit above 500', { search: { query: 'x' }, limit: 501, read: true }, 'limit'],
    ['a cursor with ids', { ids, cursor: 'x', read: true }, 'cursor'],
    ['rescheduling', { ids, send_at: '2030-01-01T00:00:00Z' }, 'send_at'],
  ])('%s', async (_, body, param) => {
    const { bulk } = await mailbox(`Refuses ${_}`)
    expect(await bulk(body)).toMatchObject({ status: 400, body: { error: { type: 'invalid_request', param } } })
  })

  test('a search by a key that may not read: what it finds would tell what is in the e-mails', async () => {
    const { receive, bulk, subjects } = await mailbox('Reads not')
    const [one] = await receive('secret')
    const { body: writer } = await box.call('POST', '/v1/api-keys', { label: 'writer', scopes: ['emails:write'] })
    expect(await bulk({ search: { query: 'secret' }, read: true }, writer['key'])).toMatchObject({
      status: 403,
      body: { error: { code: 'insufficient_scope' } },
    })
    expect((await bulk({ ids: [one], read: true }, writer['key'])).body).toMatchObject({ changed: [one] })
    expect(await subjects('unread=true')).toEqual([])
  })
})
