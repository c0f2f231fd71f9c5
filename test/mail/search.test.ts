import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { randomFrom } from '../support/random.ts'
import { runs } from '../support/runs.ts'

const pieces = [
  ...`" ' \` * ^ + - ( ) { } : ; , . / \\ | & ! ? % _ [ ] < > = ~ # @ $ \t \r \n`.split(' '),
  ' ',
  '  ',
  'a',
  'A',
  '0',
  'ä',
  'ß',
  'é',
  '京',
  '都',
  '한',
  'ま',
  'ا',
  'א',
  '😀',
  '👩‍👩‍👧',
  '\u200b',
  '\u202e',
  '\u0301',
  '\ufffd',
  '²',
  '½',
  'Ⅷ',
  '\u{1F1E6}',
  '\u{10FFFF}',
  '\uE000',
  'AND',
  'OR',
  'NOT',
  'NEAR',
  'NEAR(',
  'NEAR/3',
  'from:',
  'subject:',
  'has:',
  'has:attachment',
  'owner:',
  'owner :',
  '{owner}',
  'sender:',
  'body:',
  '-from:',
  '--',
  '/*',
  '*/',
  '""',
  '"*',
  '*"',
  "' OR 1=1 --",
  '; DROP TABLE emails',
  'x'.repeat(200),
  'NULL',
  'rowid',
  'emails_search',
  'MATCH',
  '-',
  '-"',
  ':',
  '^a',
  'a*',
  'a**',
  '*a',
]

test('no words that a caller can write break the search, or find another’s mail', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const text = 'a A 0 x owner body subject sender NOT OR AND NEAR rowid\n'
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'For Ada' }, text) })
  await deliver(box.smtp, { to: bob.email, raw: message({ Subject: 'For Bob' }, text) })
  const roll = randomFrom(20_261_120)
  const queries = Array.from({ length: runs(500) }, () =>
    Array.from({ length: 1 + roll(9) }, () => pieces[roll(pieces.length)]).join(roll(2) === 0 ? '' : ' '),
  )
  queries.push(
    'a '.repeat(17),
    '"'.repeat(999),
    '('.repeat(999),
    'x'.repeat(1000),
    `owner:${String(bob.id).slice(6)}`,
    `"${String(bob.id).slice(6)}"`,
    `* OR owner : ${String(bob.id).slice(6)}`,
  )
  const wrong: unknown[] = []
  let found = 0
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let query = queries.pop(); query !== undefined; query = queries.pop()) {
        const { status, body } = await box.call(
          'GET',
          `/v1/identities/${ada.id}/emails/search?query=${encodeURIComponent(query)}`,
        )
        if (status === 200) {
          found += body.data.length
          if (body.data.some(({ identity_id }) => identity_id !== ada.id)) wrong.push([query, 'found another’s mail'])
        } else if (status !== 400 || body.error['param'] !== 'query') wrong.push([query, status, body])
      }
    }),
  )
  expect(wrong).toEqual([])
  expect(found).toBeGreaterThan(10)
})

test('the words of a deleted message, of spam and of repeats are not found', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const raw = message({ Subject: 'Unusual zebra', 'Message-ID': '<zebra@x.test>' }, 'A giraffe too\n')
  for (let turn = 0; turn < 2; turn += 1) await deliver(box.smtp, { to: ada.email, raw })
  const find = async (query: string): Promise<{ id: string }[]> =>
    (await box.call('GET', `/v1/identities/${ada.id}/emails/search?query=${encodeURIComponent(query)}`)).body.data
  const [one, ...others] = await find('zebra giraffe')
  expect(others).toEqual([])
  expect(await find('zebra -giraffe')).toEqual([])
  expect(await find('"zebra unusual"')).toEqual([])
  expect(await find('ZÉBRA')).toHaveLength(1)
  expect(await find('-elephant')).toHaveLength(1)
  expect(await find('subject:giraffe')).toEqual([])
  await box.call('DELETE', `/v1/identities/${ada.id}/emails/${one!.id}`)
  expect(await find('zebra')).toEqual([])
  expect(await find('-elephant')).toEqual([])
})

test('a search can be bounded in time, sender and unread, alone or with words', async () => {
  const clock = { time: Date.parse('2026-11-20T10:00:00Z'), now: () => clock.time }
  const box = await appliance({}, clock)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  for (const From of ['one@a.test', 'two@b.test', 'three@a.test']) {
    await deliver(box.smtp, { to: ada.email, raw: message({ From, Subject: From }, 'invoice\n') })
    clock.time += 3_600_000
  }
  const find = async (query: Record<string, string>): Promise<string[]> => {
    const { body } = await box.call('GET', `/v1/identities/${ada.id}/emails/search?${new URLSearchParams(query).toString()}`)
    return body.data.map(({ subject }) => subject as string)
  }
  expect(await find({ from: '@a.test' })).toEqual(['three@a.test', 'one@a.test'])
  expect(await find({ query: 'invoice', from: '@b' })).toEqual(['two@b.test'])
  expect(await find({ query: 'invoice', after: '2026-11-20T10:30:00Z', before: '2026-11-20T11:30:00Z' })).toEqual(['two@b.test'])
  expect(await find({ unread: 'true', limit: '1' })).toEqual(['three@a.test'])
  expect(await find({ unread: 'false' })).toEqual([])
  expect(await find({ query: 'invoice', offset: '1' })).toEqual(['two@b.test', 'one@a.test'])
})

test('q is query, in the mailbox and in the list of identities, and two different ones are refused', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await box.call('POST', '/v1/identities', { name: 'Bob' })
  for (const subject of ['apple', 'pear', 'apple pie'])
    await deliver(box.smtp, { to: ada.email, raw: message({ Subject: subject }, 'Hello\n') })
  const path = `/v1/identities/${ada.id}/emails/search`
  const { body: first } = await box.call('GET', `${path}?q=apple&limit=1`)
  // a page goes on in either spelling
  const { body: second } = await box.call('GET', `${path}?query=apple&limit=1&cursor=${first.next_cursor}`)
  expect([...first.data, ...second.data].map(({ subject }) => subject)).toEqual(['apple pie', 'apple'])
  expect((await box.call('GET', `${path}?q=apple&query=apple`)).body.data).toHaveLength(2)
  const names = await box.call('GET', '/v1/identities?q=ad')
  expect(names.body.data.map(({ name }) => name)).toEqual(['Ada'])
  for (const place of [path, '/v1/identities']) {
    expect(await box.call('GET', `${place}?q=apple&query=pear`)).toMatchObject({ status: 400, body: { error: { param: 'q' } } })
  }
})

test('list and search have the same default direction: what was received', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const path = `/v1/identities/${ada.id}/emails`
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'apple in' }, 'Hello\n') })
  await box.call('POST', path, { to: 'abuse@pillarbox.test', subject: 'apple out' })
  const subjects = async (query: string): Promise<string[]> =>
    (await box.call('GET', `${path}${query}`)).body.data.map(({ subject }) => subject as string)
  for (const [direction, expected] of [
    ['', ['apple in']],
    ['direction=inbound', ['apple in']],
    ['direction=outbound', ['apple out']],
    ['direction=all', ['apple out', 'apple in']],
  ] as const) {
    expect([direction, await subjects(`?${direction}`)]).toEqual([direction, expected])
    expect([direction, await subjects(`/search?q=apple&${direction}`)]).toEqual([direction, expected])
  }
  expect(await box.call('GET', `${path}/search?direction=all`)).toMatchObject({
    status: 400,
    body: { error: { param: 'query' } },
  })
})
