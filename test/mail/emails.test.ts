import { expect, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'

interface Mailbox {
  box: Appliance
  path: string
  send: (fields: Record<string, string>, body?: string) => Promise<string>
  /** The subjects a list shows, oldest first. */
  subjects: (query: Record<string, string>) => Promise<string[]>
}

async function mailbox(env: Record<string, string> = {}): Promise<Mailbox> {
  const box = await appliance(env)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const path = `/v1/identities/${ada.id}`
  return {
    box,
    path,
    send: (fields, body = 'Hello\n') => {
      const raw = message({ 'Content-Type': 'text/plain; charset=utf-8', ...fields }, body)
      return deliver(box.smtp, { to: ada.email, raw })
    },
    subjects: async (query) => {
      const { body } = await box.call('GET', `${path}/emails?${new URLSearchParams(query).toString()}`)
      return body.data.map(({ subject }) => subject as string).toReversed()
    },
  }
}

test('the sender and the subject are found by a part of them, in every script and as they are shown', async () => {
  const { send, subjects } = await mailbox()
  await send({ From: 'ÉLODIE <elodie@a.test>', Subject: 'ÜBER ALLES' })
  await send({ From: 'Иван <ivan@b.test>', Subject: `=?utf-8?B?${Buffer.from('Привет, МИР').toString('base64')}?=` })
  await send({ From: '"100% _real_" <percent@c.test>', Subject: '50% off_now [x]' })
  expect(await subjects({ from: 'ÉLODIE' })).toEqual(['ÜBER ALLES'])
  expect(await subjects({ subject: 'ÜBER' })).toEqual(['ÜBER ALLES'])
  expect(await subjects({ subject: 'МИР' })).toEqual(['Привет, МИР'])
  expect(await subjects({ from: 'Иван' })).toEqual(['Привет, МИР'])
  expect(await subjects({ from: 'ELODIE@A' })).toEqual(['ÜBER ALLES'])
  expect(await subjects({ subject: 'alles' })).toEqual(['ÜBER ALLES'])
  expect(await subjects({ from: '%' })).toEqual(['50% off_now [x]'])
  expect(await subjects({ subject: '_' })).toEqual(['50% off_now [x]'])
  expect(await subjects({ subject: '[x]' })).toEqual(['50% off_now [x]'])
  for (const injected of ["' OR '1'='1", "%' --", '*', '\\', '"; DROP TABLE emails; --']) {
    expect([injected, await subjects({ subject: injected }), await subjects({ from: injected })]).toEqual([injected, [], []])
  }
})

test('a label is found whole, never as a part of another', async () => {
  const { box, path, send, subjects } = await mailbox()
  const labels = ['work', 'homework', 'say "work"', 'a,"work', '["work"]', 'wörk', 'WORK', '\\', '"', 'work"', '%', '😀']
  for (const label of labels) await send({ Subject: label })
  const { body: list } = await box.call('GET', `${path}/emails`)
  for (const { id, subject } of list.data) {
    const told = await box.call('PATCH', `${path}/emails/${id}`, { labels: { add: [subject, 'common'] } })
    expect(told.body['labels']).toEqual([subject, 'common'])
  }
  for (const label of labels) expect([label, await subjects({ label })]).toEqual([label, [label]])
  expect(await subjects({ label: 'common' })).toHaveLength(labels.length)
  expect(await subjects({ label: 'wor' })).toEqual([])
})

test('labels are added once, removed, bounded, and clean', async () => {
  const { box, path, send } = await mailbox()
  await send({ Subject: 'Labelled' })
  const { body: list } = await box.call('GET', `${path}/emails`)
  const email = `${path}/emails/${list.data[0].id}`
  const change = async (labels: object): Promise<unknown> => (await box.call('PATCH', email, { labels })).body['labels']
  expect(await change({ add: ['b', 'a', ' b '] })).toEqual(['b', 'a'])
  expect(await change({ add: ['c'], remove: ['a', 'never'] })).toEqual(['b', 'c'])
  expect(await change({ add: ['d'], remove: ['d'] })).toEqual(['b', 'c'])
  expect(await change({})).toEqual(['b', 'c'])
  for (const add of [
    [''],
    ['  '],
    ['x'.repeat(65)],
    ['a\nb'],
    ['a\u0000'],
    [1],
    'a',
    Array.from({ length: 51 }, (_, n) => `n${n}`),
  ]) {
    expect((await box.call('PATCH', email, { labels: { add } })).status).toBe(400)
  }
  for (const part of ['x', 'y']) await change({ add: Array.from({ length: 49 }, (_, n) => `${part}${n}`) })
  const many = await box.call('PATCH', email, { labels: { add: ['one too many'] } })
  expect(many).toMatchObject({ status: 400, body: { error: { param: 'labels' } } })
  expect(await change({ remove: ['x0'], add: ['in its place'] })).toHaveLength(100)
})

test('read and unread are one flag, told by either name, and a GET does not change it', async () => {
  const { box, path, send, subjects } = await mailbox()
  await send({ Subject: 'One' })
  const { body: list } = await box.call('GET', `${path}/emails`)
  const email = `${path}/emails/${list.data[0].id}`
  const mark = async (change: object): Promise<unknown> => (await box.call('PATCH', email, change)).body['read']
  const unread = async (): Promise<unknown> => (await box.call('GET', `${path}/threads`)).body.data[0].unread_count
  expect([(await box.call('GET', email)).body['read'], await unread()]).toEqual([false, 1])
  expect([await mark({ read: true }), await mark({ read: true }), await unread()]).toEqual([true, true, 0])
  expect(await subjects({ unread: 'true' })).toEqual([])
  expect([await mark({ unread: true }), await unread()]).toEqual([false, 1])
  expect(await mark({ read: true, unread: false })).toBe(true)
  expect(await mark({})).toBe(true)
  for (const [read, wrong] of [
    [true, true],
    [false, false],
  ]) {
    expect((await box.call('PATCH', email, { read, unread: wrong })).body.error).toMatchObject({ status: 400, param: 'unread' })
  }
  await Promise.all(Array.from({ length: 20 }, (_, turn) => box.call('PATCH', email, { read: turn % 2 === 0 })))
  const { body } = await box.call('GET', email)
  expect(await unread()).toBe(body['read'] ? 0 : 1)
})

test('times bound a list on both sides, in any offset', async () => {
  const clock = { time: Date.parse('2026-11-20T10:00:00Z'), now: () => clock.time }
  const box = await appliance({}, clock)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  for (const Subject of ['ten', 'eleven', 'twelve']) {
    await deliver(box.smtp, { to: ada.email, raw: message({ Subject }, 'x\n') })
    clock.time += 3_600_000
  }
  const list = async (query: Record<string, string>): Promise<string[]> => {
    const { body } = await box.call('GET', `/v1/identities/${ada.id}/emails?${new URLSearchParams(query).toString()}`)
    return body.data.map(({ subject }) => subject as string)
  }
  expect(await list({ after: '2026-11-20T10:00:00Z' })).toEqual(['twelve', 'eleven'])
  expect(await list({ before: '2026-11-20T13:00:00+01:00' })).toEqual(['eleven', 'ten'])
  expect(await list({ after: '2026-11-20T09:59:59.999Z', before: '2026-11-20T11:00:00.001Z' })).toEqual(['eleven', 'ten'])
  expect(await list({ before: '9999-12-31T23:59:59Z' })).toHaveLength(3)
  // a date is its midnight; an escaped space is the plus of an offset, which a query turns into one
  expect(await list({ before: '2026-11-20' })).toEqual([])
  expect(await list({ before: '2026-11-21' })).toHaveLength(3)
  expect(await list({ before: '2026-11-20T13:00:00 01:00' })).toEqual(['eleven', 'ten'])
  for (const wrong of ['2026-11-31', '2026-1-1', '2026-11-20 10:00', 'yesterday']) {
    const { body } = await box.call('GET', `/v1/identities/${ada.id}/emails?after=${encodeURIComponent(wrong)}`)
    expect(body).toMatchObject({ error: { status: 400, param: 'after' } })
  }
})

test('true and false are understood as 1 and 0 and in capitals too', async () => {
  const { send, subjects } = await mailbox()
  await send({ Subject: 'One' })
  for (const yes of ['true', 'True', 'TRUE', '1']) expect(await subjects({ unread: yes })).toEqual(['One'])
  for (const no of ['false', 'False', 'FALSE', '0']) expect(await subjects({ unread: no })).toEqual([])
})

test('a message sent again after a lost answer is one message, and deleting the mailbox’s copy frees its room', async () => {
  const { box, path, send } = await mailbox({ PILLARBOX_MAIL__QUOTA: '2000' })
  const fields = { Subject: 'Twice', 'Message-ID': '<twice@sender.test>' }
  expect(await send(fields, `${'x'.repeat(60)}\n`)).toMatch(/^250 /)
  expect(await send(fields, `${'x'.repeat(60)}\n`)).toMatch(/^250 /)
  const { body: list } = await box.call('GET', `${path}/emails`)
  expect(list.data).toHaveLength(1)
  const { body: all } = await box.call('GET', `${path}/emails?duplicates=true`)
  expect(all.data).toHaveLength(2)
  expect((await box.call('GET', `${path}/emails/${all.data[0].id}`)).body['duplicate_of']).toBe(all.data[1].id)
  expect((await box.call('GET', `${path}/threads`)).body.data).toMatchObject([{ message_count: 1, unread_count: 1 }])
  expect((await box.call('GET', `${path}/events?type=email.received`)).body.data).toHaveLength(1)

  for (
    let turn = 0;
    turn < 50 && (await send({ Subject: `Filler ${turn}` }, `${'x'.repeat(60)}\n`.repeat(5))).startsWith('250');
    turn += 1
  );
  expect(await send({ Subject: 'Too much' }, `${'x'.repeat(60)}\n`.repeat(5))).toMatch(/^452 4\.2\.2 /)
  const { body: full } = await box.call('GET', `${path}/emails?duplicates=true`)
  for (const { id } of full.data) expect((await box.call('DELETE', `${path}/emails/${id}`)).status).toBe(200)
  expect(await send({ Subject: 'Room again' })).toMatch(/^250 /)
})

test('one answer never carries more than the box can bear; the rest is on the next page, whole', async () => {
  const { box, path, send } = await mailbox()
  const line = `${'words '.repeat(150)}\n`
  for (let turn = 0; turn < 8; turn += 1)
    await send({ Subject: `${turn}`, 'Message-ID': `<${turn}@x.test>`, References: '<0@x.test>' }, `${turn} ${line.repeat(150)}`)
  const { body: threads } = await box.call('GET', `${path}/threads`)
  expect(threads.data).toMatchObject([{ message_count: 8 }])
  for (const [from, field] of [
    [`${path}/threads/${threads.data[0].id}`, 'messages'],
    [`${path}/messages`, 'data'],
    [`${path}/events?since=2001-01-01T00:00:00Z&type=email.received`, 'data'],
    [`${path}/events?type=email.received`, 'data'],
  ] as const) {
    const shown: string[] = []
    let pages = 0
    for (let cursor: string | null = ''; cursor !== null; pages += 1) {
      const { body } = await box.call('GET', `${from}${cursor && `${from.includes('?') ? '&' : '?'}cursor=${cursor}`}`)
      expect(JSON.stringify(body).length).toBeLessThan(1.25 * 1024 * 1024)
      expect(body['has_more']).toBe(body['next_cursor'] !== null)
      for (const one of body[field] as { subject?: string; body_text?: string; data: { subject: string } }[]) {
        if (field === 'messages' || one.subject !== undefined) expect(one.body_text!.length).toBeGreaterThan(130_000)
        shown.push(one.subject ?? one.data.subject)
      }
      cursor = body['next_cursor'] as string | null
    }
    expect(from.endsWith('/events?type=email.received') ? shown.toReversed() : shown).toEqual([
      '0',
      '1',
      '2',
      '3',
      '4',
      '5',
      '6',
      '7',
    ])
    expect([from, pages > 1]).toEqual([from, true])
  }
})

test('what a message says beside its bodies counts too: links, addresses, ids', async () => {
  const { box, path, send } = await mailbox()
  for (let turn = 0; turn < 30; turn += 1) {
    const body = Array.from({ length: 100 }, (_, number) => `https://x.test/${turn * 100 + number}/${'a'.repeat(900)}\n`).join('')
    await send({ Subject: 'Links', 'Message-ID': `<${turn}@x.test>`, References: '<0@x.test>' }, body)
  }
  const { body: threads } = await box.call('GET', `${path}/threads`)
  const at = `${path}/threads/${threads.data[0].id}`
  const shown: string[] = []
  let pages = 0
  for (let cursor: string | null = ''; cursor !== null; pages += 1) {
    const { body } = await box.call('GET', `${at}${cursor && `?cursor=${cursor}`}`)
    expect(JSON.stringify(body).length).toBeLessThan(1.5 * 1024 * 1024)
    expect(body['message_count']).toBe(30)
    shown.push(...body['messages'].map((one: { message_id: string }) => one.message_id))
    cursor = body['next_cursor'] as string | null
  }
  expect(shown).toEqual(Array.from({ length: 30 }, (_, turn) => `<${turn}@x.test>`))
  expect(pages).toBeGreaterThan(1)
  expect((await box.call('GET', `${at}?limit=2`)).body['messages']).toHaveLength(2)
})

test('a list of messages whose headers are large comes in parts', async () => {
  const { box, path, send } = await mailbox()
  for (let turn = 0; turn < 90; turn += 1)
    expect(await send({ Subject: `${turn}`, From: `"${`${'x'.repeat(900)}\r\n `.repeat(60)}" <sam@x.test>` }, 'x\n')).toContain(
      '250',
    )
  const subjects: string[] = []
  for (const kind of ['emails?limit=100&', 'emails/search?query=x&limit=100&', 'messages?limit=100&']) {
    for (let cursor = ''; ;) {
      const { body } = await box.call('GET', `${path}/${kind}${cursor}`)
      expect(JSON.stringify(body).length).toBeLessThan(1.25 * 1024 * 1024)
      subjects.push(...body.data.map(({ subject }: { subject: string }) => subject))
      if (!body['has_more']) break
      cursor = `cursor=${body['next_cursor']}`
    }
  }
  const all = Array.from({ length: 90 }, (_, index) => `${89 - index}`)
  expect(subjects).toEqual([...all, ...all, ...all.toReversed()])
})

test('so does a list of messages that went to many', async () => {
  const { box, path } = await mailbox({ PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '0' })
  for (let turn = 0; turn < 60; turn += 1) {
    const to = Array.from({ length: 100 }, (_, place) => `a${turn}.${place}@pillarbox.test`)
    const sent = await box.call('POST', `${path}/emails`, { to, subject: `${turn}`, body_text: 'Words.' })
    expect([sent.status, sent.body]).toMatchObject([201, { subject: `${turn}` }])
  }
  const subjects: string[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const { body } = await box.call('GET', `${path}/messages?limit=100${cursor && `&cursor=${cursor}`}`)
    expect(JSON.stringify(body).length).toBeLessThan(1.25 * 1024 * 1024)
    subjects.push(...body.data.map(({ subject }: { subject: string }) => subject))
    cursor = body['next_cursor'] as string | null
  }
  expect(subjects).toEqual(Array.from({ length: 60 }, (_, turn) => `${turn}`))
})

test('with include=body rows of lists, searches and the trash have their bodies, and others have none', async () => {
  const { box, path, send } = await mailbox()
  const html = 'text/html; charset=utf-8'
  await send({ Subject: 'plain one' }, 'First.\n')
  await send({ Subject: 'marked one', 'Content-Type': html }, '<p>Second.</p>\n')
  await send({ Subject: 'deleted one' }, 'Third.\n')
  const { body: all } = await box.call('GET', `${path}/emails`)
  for (const row of all.data) expect(Object.keys(row)).not.toContain('body_text')
  await box.call('DELETE', `${path}/emails/${all.data[0].id}`)
  for (const query of ['emails?', 'emails/search?q=one&']) {
    const { body } = await box.call('GET', `${path}/${query}include=body`)
    expect(body.data).toMatchObject([
      { subject: 'marked one', body_text: null, body_html: expect.stringContaining('<p>Second.</p>'), text: 'Second.' },
      { subject: 'plain one', body_text: 'First.\n', body_html: null, text: 'First.' },
    ])
    expect(body.data[0]).toMatchObject({ read: false, snippet: expect.any(String) })
    const first = await box.call('GET', `${path}/${query}include=body&limit=1`)
    expect(first.body).toMatchObject({ data: [{ subject: 'marked one' }], has_more: true })
    const rest = await box.call('GET', `${path}/${query}include=body&limit=1&cursor=${first.body['next_cursor']}`)
    expect(rest.body).toMatchObject({ data: [{ subject: 'plain one' }], has_more: false })
  }
  const { body: trash } = await box.call('GET', `${path}/emails?trash=true&include=body`)
  expect(trash.data).toMatchObject([{ subject: 'deleted one', body_text: 'Third.\n', deleted_at: expect.any(String) }])
  expect(await box.call('GET', `${path}/emails?include=bodies`)).toMatchObject({
    status: 400,
    body: { error: { param: 'include' } },
  })
})

test('a page with long bodies has as many rows as fit into about 1 MiB, and the next goes on', async () => {
  const { box, path, send } = await mailbox()
  for (const subject of ['1', '2', '3', '4', '5']) await send({ Subject: subject }, 'a long line of words\n'.repeat(19_000))
  for (const query of ['emails?', 'emails/search?q=words&']) {
    const found: string[][] = []
    let cursor = ''
    do {
      const { body } = await box.call('GET', `${path}/${query}include=body${cursor}`)
      expect(JSON.stringify(body).length).toBeLessThan(2 * 1024 * 1024)
      found.push(body.data.map(({ subject }) => subject))
      cursor = body['has_more'] ? `&cursor=${body['next_cursor']}` : ''
    } while (cursor !== '')
    expect([query, found.flat()]).toEqual([query, ['5', '4', '3', '2', '1']])
    expect(found.length).toBeGreaterThan(1)
  }
})
