import { expect, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'

interface Shown {
  id: string
  subject: string
  message_count: number
  unread_count: number
  last_message_at: string
  snippet: string
  participants: string[]
}

async function resident(box: Appliance, name = 'Ada') {
  const { body } = await box.call('POST', '/v1/identities', { name })
  const path = `/v1/identities/${body.id}`
  return {
    path,
    send: (fields: Record<string, string>, text = 'Hello\n') => deliver(box.smtp, { to: body.email, raw: message(fields, text) }),
    threads: async (): Promise<Shown[]> => (await box.call('GET', `${path}/threads`)).body.data as Shown[],
    emails: async (): Promise<{ id: string; subject: string; thread_id: string }[]> =>
      (await box.call('GET', `${path}/emails`)).body.data,
  }
}

test('nothing of a deleted message stays in its thread', async () => {
  const clock = { time: Date.parse('2026-11-20T10:00:00Z'), now: () => clock.time }
  const box = await appliance({}, clock)
  const { path, send, threads, emails } = await resident(box)
  await send({ Subject: 'Talk', 'Message-ID': '<1@x.test>' }, 'The first words\n')
  clock.time += 60_000
  await send({ Subject: 'Other' }, 'Another talk\n')
  clock.time += 60_000
  await send({ Subject: 'Re: Talk', References: '<1@x.test>' }, 'My secret is out\n')
  expect((await threads()).map(({ subject }) => subject)).toEqual(['Talk', 'Other'])
  const [newest] = await emails()
  await box.call('DELETE', `${path}/emails/${newest!.id}`)
  const after = await threads()
  expect(after.map(({ subject }) => subject)).toEqual(['Other', 'Talk'])
  expect(after[1]).toMatchObject({
    message_count: 1,
    unread_count: 1,
    snippet: 'The first words',
    last_message_at: '2026-11-20T10:00:00.000Z',
  })
  const { body } = await box.call('GET', `${path}/threads/${after[1]!.id}`)
  expect(JSON.stringify(body)).not.toContain('secret')
  for (const { id } of await emails()) await box.call('DELETE', `${path}/emails/${id}`)
  expect(await threads()).toEqual([])
  expect((await box.call('GET', `${path}/threads/${after[1]!.id}`)).status).toBe(404)
})

test('subjects alone join only what the same people said within a month', async () => {
  const clock = { time: Date.parse('2026-11-20T10:00:00Z'), now: () => clock.time }
  const box = await appliance({}, clock)
  const { send, threads } = await resident(box)
  await send({ Subject: 'Lunch' })
  await send({ Subject: 'RE: Re: AW: Fwd: lunch' })
  await send({ Subject: '回复：Lunch' })
  await send({ Subject: 'Lunch', From: 'Other <other@other.test>' })
  await send({ Subject: 'Lunch', Cc: 'third@other.test' })
  await send({ Subject: 'Re: Lunch break' })
  expect((await threads()).map(({ message_count }) => message_count)).toEqual([1, 1, 1, 3])
  clock.time += 31 * 86_400_000
  await send({ Subject: 'Re: Lunch' })
  expect((await threads()).map(({ message_count }) => message_count)).toEqual([1, 1, 1, 1, 3])
  for (const Subject of ['', ' ', 'Re:', 'Re: Fwd:']) await send({ Subject })
  expect(await threads()).toHaveLength(9)
})

test('a reference into another’s mailbox, a loop, or a thousand of them lead nowhere', async () => {
  const box = await appliance()
  const ada = await resident(box, 'Ada')
  const bob = await resident(box, 'Bob')
  await ada.send({ Subject: 'Private', 'Message-ID': '<private@x.test>' })
  await bob.send({ Subject: 'Other', References: '<private@x.test>', 'In-Reply-To': '<private@x.test>' })
  const [theirs] = await ada.threads()
  const [his] = await bob.threads()
  expect(his!.id).not.toBe(theirs!.id)
  expect((await box.call('GET', `${bob.path}/threads/${theirs!.id}`)).status).toBe(404)
  await bob.send({ Subject: 'Loop', 'Message-ID': '<loop@x.test>', References: '<loop@x.test> <loop@x.test>' })
  const many = Array.from({ length: 1000 }, (_, n) => `<${n}@x.test>`).join('\r\n ')
  expect(await bob.send({ Subject: 'Many', References: many })).toMatch(/^250 /)
  expect(await bob.threads()).toHaveLength(3)
})

test('participants are each named once, at most a hundred', async () => {
  const box = await appliance()
  const { send, threads } = await resident(box)
  await send({ Subject: 'Crowd', 'Message-ID': '<crowd@x.test>' })
  for (let turn = 0; turn < 3; turn += 1) await send({ From: `p${turn % 2}@x.test`, Subject: 'x', References: '<crowd@x.test>' })
  const [thread] = await threads()
  expect(thread!.participants.toSorted()).toEqual(['ada@pillarbox.test', 'p0@x.test', 'p1@x.test', 'sender@sender.test'])
})

test('of many messages under one Message-ID a reference means the newest, and a repeat is looked for among the last two hundred', async () => {
  const box = await appliance()
  const { path, send, emails } = await resident(box)
  const same = { Date: 'Fri, 20 Nov 2026 10:00:00 +0000', 'Message-ID': '<same@x.test>' }
  for (let n = 0; n <= 200; n += 1) await send({ ...same, Subject: `Talk ${n}` }, `Text ${n}\n`)
  const original = async (): Promise<unknown> => {
    const { body } = await box.call('GET', `${path}/emails?duplicates=true&limit=1`)
    return (await box.call('GET', `${path}/emails/${body.data[0].id}`)).body['duplicate_of']
  }
  await send({ ...same, Subject: 'Talk 1' }, 'Text 1\n')
  expect(await original()).toEqual(expect.stringMatching(/^email_/))
  await send({ ...same, Subject: 'Talk 0' }, 'Text 0\n')
  expect(await original()).toBeNull()
  const [newest] = await emails()
  await send({ Subject: 'An answer', References: '<same@x.test>' })
  expect((await emails())[0]).toMatchObject({ subject: 'An answer', thread_id: newest!.thread_id })
})
