import { RealtimeClient } from '@supabase/realtime-js'
import { createClient } from '@supabase/supabase-js'
import { RealtimeClient as OldRealtimeClient } from 'realtime-js-old'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { appliance, deliver, message } from '../support/appliance.ts'
import type { Appliance } from '../support/appliance.ts'
import { identity, token } from '../support/live.ts'

type Row = ReturnType<typeof JSON.parse>

/** What the tests use of a client, old or new. */
interface Channel {
  on(type: 'postgres_changes', filter: object, callback: (payload: Row) => void): Channel
  subscribe(callback: (status: string, error?: Error) => void): unknown
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
    rows,
    states,
    state: (wanted: string, times = 1) => reached(() => states.filter((state) => state.startsWith(wanted)).length >= times),
    count: (wanted: number) => reached(() => rows.length >= wanted),
  }
}

async function realtime(kind: string, box: Appliance): Promise<{ channel(name: string): Channel }> {
  const { token: text, supabase_url } = await token(box)
  const url = `${supabase_url.replace('http', 'ws')}/realtime/v1`
  const [name, vsn] = kind.split(' ')
  if (name === 'supabase-js') {
    const client = createClient(supabase_url, 'any-public-key', { auth: { persistSession: false } })
    await client.realtime.setAuth(text)
    onTestFinished(async () => void (await client.removeAllChannels()))
    return client
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
  const wish = { event: 'INSERT', schema: 'public', table: 'email_messages', filter: `identity_id=eq.${ada.id}` }
  const mail = follow(client.channel('mail'), wish)
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
