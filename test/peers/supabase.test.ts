import { RealtimeClient } from '@supabase/realtime-js'
import { createClient } from '@supabase/supabase-js'
import { RealtimeClient as OldRealtimeClient } from 'realtime-js-old'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { identity, token } from '../support/live.ts'

type Row = ReturnType<typeof JSON.parse>

/** What the tests use of a client, old or new. */
interface Channel {
  on(type: 'postgres_changes', filter: object, callback: (payload: Row) => void): Channel
  subscribe(callback: (status: string, error?: Error) => void): unknown
  unsubscribe(): unknown
}

interface Client {
  channel(name: string): Channel
  setAuth(token: string): unknown
}

/** Subscribes, and collects what comes. */
function follow(channel: Channel, filter: object) {
  const rows: Row[] = []
  const states: string[] = []
  const waiting = new Set<() => void>()
  const wake = (): void => {
    for (const look of waiting) look()
  }
  const reached = (done: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (done()) resolve()
      }
      waiting.add(look)
      look()
    })
  channel
    .on('postgres_changes', filter, (row) => {
      rows.push(row)
      wake()
    })
    .subscribe((state, error) => {
      states.push(error ? `${state} ${error.message}` : state)
      wake()
    })
  return {
    channel,
    rows,
    states,
    state: (wanted: string, times = 1) => reached(() => states.filter((state) => state.startsWith(wanted)).length >= times),
    count: (wanted: number) => reached(() => rows.length >= wanted),
  }
}

async function realtime(kind: string, box: Appliance, input: object = {}): Promise<Client> {
  const { token: text, supabase_url } = await token(box, input)
  const url = `${supabase_url.replace('http', 'ws')}/realtime/v1`
  const [name, vsn] = kind.split(' ')
  if (name === 'supabase-js') {
    const client = createClient(supabase_url, 'any-public-key', { auth: { persistSession: false } })
    await client.realtime.setAuth(text)
    onTestFinished(async () => void (await client.removeAllChannels()))
    return { channel: (topic) => client.channel(topic), setAuth: (fresh) => client.realtime.setAuth(fresh) }
  }
  const options = { params: { apikey: text }, ...(vsn === undefined ? {} : { vsn }) }
  if (name === 'old') {
    const client = new OldRealtimeClient(url, { ...options, transport: WebSocket as never })
    onTestFinished(() => client.disconnect())
    return client
  }
  const client = new RealtimeClient(url, options)
  onTestFinished(() => void client.disconnect())
  return client
}

const clients = ['supabase-js', 'newest 2.0.0', 'newest 1.0.0', 'old']

test.each(clients)('%s subscribes and receives the rows of one identity', async (kind) => {
  const box = await appliance()
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const client = await realtime(kind, box)
  const input = { event: 'INSERT', schema: 'public', table: 'email_messages', filter: `identity_id=eq.${ada.id}` }
  const mail = follow(client.channel('mail'), input)
  const events = follow(client.channel('events'), { event: '*', schema: 'public', table: 'agent_events' })
  await Promise.all([mail.state('SUBSCRIBED'), events.state('SUBSCRIBED')])
  await deliver(box.smtp, { to: bob.email, raw: message({ Subject: 'For Bob' }, 'x\n') })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'For Ada' }, 'Your code is 493817\n') })
  await Promise.all([mail.count(1), events.count(2)])
  expect(mail.rows).toHaveLength(1)
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/events?type=email.received`)
  expect(mail.rows[0]).toMatchObject({ schema: 'public', table: 'email_messages', eventType: 'INSERT', old: {}, errors: null })
  expect(mail.rows[0].new).toEqual(body.data[0].data)
  expect(events.rows.map((row) => row.new.data.subject)).toEqual(['For Bob', 'For Ada'])
  expect(events.rows[1].new).toEqual(body.data[0])
})

test.each(clients)('%s has several bindings on one channel, each with its own filter, event and callback', async (kind) => {
  const box = await appliance()
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const client = await realtime(kind, box)
  const filters: Record<string, string | undefined> = {
    any: undefined,
    ada: `identity_id=eq.${ada.id}`,
    notAda: `identity_id=neq.${ada.id}`,
    listed: `identity_id=in.(${bob.id},ident_x)`,
    large: 'size=gt.2000',
    small: 'size=lte.2000',
    early: 'subject=lt.M',
    late: 'subject=gte.M',
    both: `identity_id=eq.${ada.id},size=lt.2000`,
  }
  const heard: string[] = []
  let channel: Channel = client.channel('several')
  const insert = { event: 'INSERT', schema: 'public', table: 'email_messages' }
  for (const [name, filter] of Object.entries(filters)) {
    const input = filter === undefined ? insert : { ...insert, filter }
    channel = channel.on('postgres_changes', input, (row) => heard.push(`${name} ${row.new.subject}`))
  }
  channel.on('postgres_changes', { ...insert, event: 'UPDATE' }, () => heard.push('update'))
  const all = follow(channel, { event: '*', schema: 'public' })
  await all.state('SUBSCRIBED')
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Alpha' }, 'x\n') })
  await deliver(box.smtp, { to: bob.email, raw: message({ Subject: 'Zulu' }, 'x\n'.repeat(2000)) })
  await all.count(4)
  expect(all.rows.map(({ table, eventType }) => `${eventType} ${table}`)).toEqual([
    'INSERT agent_events',
    'INSERT email_messages',
    'INSERT agent_events',
    'INSERT email_messages',
  ])
  const [alpha, zulu] = [
    ['any', 'ada', 'small', 'early', 'both'],
    ['any', 'notAda', 'listed', 'large', 'late'],
  ]
  expect(heard).toEqual([...alpha.map((name) => `${name} Alpha`), ...zulu.map((name) => `${name} Zulu`)])
})

test.each(clients)('%s gives a fresh token with setAuth, leaves, and joins the same topic again', async (kind) => {
  const box = await appliance()
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const client = await realtime(kind, box, { identity_id: ada.id })
  const input = { event: '*', schema: 'public', table: 'agent_events' }
  const events = follow(client.channel('events'), input)
  await events.state('SUBSCRIBED')
  const fresh = await token(box, { identity_id: bob.id })
  await client.setAuth(fresh.token)
  const mail = async (subject: string): Promise<void> => {
    for (const { email } of [ada, bob]) await deliver(box.smtp, { to: email, raw: message({ Subject: subject }, 'x\n') })
  }
  // the client sends it without waiting for anything
  await new Promise((resolve) => setTimeout(resolve, 200))
  await mail('Fresh')
  await events.count(1)
  await events.channel.unsubscribe()
  const again = follow(client.channel('events'), input)
  await again.state('SUBSCRIBED')
  await mail('Again')
  await again.count(1)
  expect([...events.rows, ...again.rows].map((row) => `${row.new.identity_id} ${row.new.data.subject}`)).toEqual([
    `${bob.id} Fresh`,
    `${bob.id} Again`,
  ])
  expect(events.states).toEqual(['SUBSCRIBED', 'CLOSED'])
})

test.each(clients)('%s has a text message as a row that is inserted, and updated when its status changes', async (kind) => {
  const box = await appliance()
  const make = async (name: string) => (await box.call('POST', '/v1/identities', { name, provision_phone: true })).body
  const [ada, bob] = [await make('Ada'), await make('Bob')]
  const client = await realtime(kind, box)
  const input = { event: '*', schema: 'public', table: 'sms_messages' }
  const all = follow(client.channel('all'), input)
  const inserts = follow(client.channel('inserts'), { ...input, event: 'INSERT', filter: `identity_id=eq.${ada.id}` })
  const updates = follow(client.channel('updates'), { ...input, event: 'UPDATE' })
  await Promise.all([all, inserts, updates].map((one) => one.state('SUBSCRIBED')))
  const { body: sent } = await box.call('POST', `/v1/identities/${ada.id}/sms`, { to: bob['phone_number'], body: 'Hello' })
  const { body: lost } = await box.call('POST', `/v1/identities/${ada.id}/sms`, { to: '+15550100177', body: 'Anybody?' })
  await Promise.all([all.count(4), inserts.count(2), updates.count(1)])
  const story = (id: string) =>
    all.rows.filter((row) => row.new.id === id).map((row) => [row.eventType, row.table, row.new.status, row.old])
  expect(story(sent['id'])).toEqual([
    ['INSERT', 'sms_messages', 'sent', {}],
    ['UPDATE', 'sms_messages', 'delivered', { id: sent['id'] }],
  ])
  // no client has heard of it before
  expect(story(lost['id'])).toEqual([['INSERT', 'sms_messages', 'failed', {}]])
  const received = all.rows.find((row) => row.new.identity_id === bob.id)
  expect(received).toMatchObject({ eventType: 'INSERT', new: { body: 'Hello', direction: 'inbound', status: 'received' } })
  expect(updates.rows.map((row) => row.new.id)).toEqual([sent['id']])
  const kept = await box.call('GET', `/v1/identities/${ada.id}/sms/${sent['id']}`)
  expect(updates.rows[0].new).toEqual(kept.body)
})

test.each(clients)('%s has an e-mail that is sent as a row that is inserted, and updated when it is delivered', async (kind) => {
  const box = await appliance()
  const [ada, bob] = [await identity(box, 'Ada'), await identity(box, 'Bob')]
  const client = await realtime(kind, box)
  const input = { event: '*', schema: 'public', table: 'email_messages' }
  const all = follow(client.channel('all'), input)
  const own = follow(client.channel('own'), { ...input, event: 'UPDATE', filter: `identity_id=eq.${ada.id}` })
  await Promise.all([all.state('SUBSCRIBED'), own.state('SUBSCRIBED')])
  const { body: sent } = await box.call('POST', `/v1/identities/${ada.id}/emails`, { to: bob.email, subject: 'Hello', body: 'x' })
  await Promise.all([all.count(3), own.count(1)])
  const story = all.rows.filter((row) => row.new.id === sent['id']).map((row) => [row.eventType, row.new.status, row.old])
  expect(story).toEqual([
    ['INSERT', 'queued', {}],
    ['UPDATE', 'delivered', { id: sent['id'] }],
  ])
  expect(all.rows.find((row) => row.new.identity_id === bob.id)).toMatchObject({
    eventType: 'INSERT',
    new: { subject: 'Hello', direction: 'inbound', status: 'received' },
  })
  expect(own.rows.map((row) => row.new)).toEqual([all.rows.findLast((row) => row.new.id === sent['id']).new])
})

test('supabase-js, which falls back to its apikey with every heartbeat, keeps what it joined with a token', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const { token: text, supabase_url } = await token(box)
  const beats: string[] = []
  const client = createClient(supabase_url, 'any-public-key', {
    auth: { persistSession: false },
    realtime: { heartbeatIntervalMs: 100, heartbeatCallback: (status) => void beats.push(status) },
  })
  onTestFinished(async () => void (await client.removeAllChannels()))
  await client.realtime.setAuth(text)
  const events = follow(client.channel('events'), { event: '*', schema: 'public', table: 'agent_events' })
  await events.state('SUBSCRIBED')
  await client.realtime.setAuth((await token(box)).token)
  await expect.poll(() => beats.filter((status) => status === 'ok').length).toBeGreaterThan(5)
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Still here' }, 'x\n') })
  await events.count(1)
  expect(events.states).toEqual(['SUBSCRIBED'])
})

test('a bad token is told, and the client comes by itself once it has a good one', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const { token: text, supabase_url } = await token(box)
  const client = createClient(supabase_url, 'any-public-key', { accessToken: async () => text })
  onTestFinished(async () => void (await client.removeAllChannels()))
  const events = follow(client.channel('events'), { event: '*', schema: 'public', table: 'agent_events' })
  await events.state('SUBSCRIBED')
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Here' }, 'x\n') })
  await events.count(1)
  expect(events.rows[0].new.data.subject).toBe('Here')
})

test('a table that is none, or is not permitted, is told as the reason', async () => {
  const box = await appliance()
  const { token: text, supabase_url } = await token(box, { channels: ['email_messages'] })
  const client = new RealtimeClient(`${supabase_url.replace('http', 'ws')}/realtime/v1`, { params: { apikey: text } })
  onTestFinished(() => void client.disconnect())
  const wrong = follow(client.channel('a'), { event: '*', schema: 'public', table: 'emails' })
  const closed = follow(client.channel('b'), { event: '*', schema: 'public', table: 'agent_events' })
  await Promise.all([wrong.state('CHANNEL_ERROR'), closed.state('CHANNEL_ERROR')])
  expect(wrong.states[0]).toContain('There is no table emails')
  expect(closed.states[0]).toContain('Unauthorized')
})

test('after a restart of the box the client joins again and hears what happens', async () => {
  const box = await appliance()
  const ada = await identity(box, 'Ada')
  const client = await realtime('newest 2.0.0', box)
  const events = follow(client.channel('events'), { event: '*', schema: 'public', table: 'agent_events' })
  await events.state('SUBSCRIBED')
  const { port } = new URL(box.url)
  box.env['PILLARBOX_HTTP__LISTEN'] = `127.0.0.1:${port}`
  await box.restart()
  await events.state('SUBSCRIBED', 2)
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Again' }, 'x\n') })
  await events.count(1)
  expect(events.rows[0].new.data.subject).toBe('Again')
})
