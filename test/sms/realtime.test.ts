import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { WebSocket } from 'ws'

test('a socket hears of messages that come and go', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true })
  const { body: opened } = await box.call('POST', '/v1/realtime/token', { identity_id: ada.id, channels: ['sms_messages'] })
  const socket = new WebSocket(`${opened['url'] as string}?token=${opened['token'] as string}`)
  const heard: Record<string, ReturnType<typeof JSON.parse>>[] = []
  socket.on('message', (data: Buffer) => void heard.push(JSON.parse(data.toString()) as (typeof heard)[number]))
  await new Promise((resolve) => socket.once('open', resolve))
  socket.send(JSON.stringify({ type: 'subscribe', channel: 'sms_messages', identity_id: ada.id }))
  await expect.poll(() => heard.map(({ type }) => type as string)).toContain('subscribed')
  await box.call('POST', `/v1/identities/${ada.id}/sms`, { to: ada['phone_number'], body: 'to myself' })
  const types = (): string[] => heard.filter(({ type }) => type === 'event').map(({ event }) => event.type as string)
  await expect.poll(() => types().toSorted()).toEqual(['sms.delivered', 'sms.received', 'sms.sent'])
  expect(heard.find(({ event }) => event?.type === 'sms.received')!['event'].data).toMatchObject({
    body: 'to myself',
    direction: 'inbound',
  })
  socket.close()
})
