import { once } from 'node:events'
import { expect, test, vi } from 'vitest'
import { SmsCourier } from '../../src/sms/courier.ts'
import { account, announced, refuses } from '../support/twilio-stub.ts'
import { inbox, twilioBox } from './twilio-box.ts'

const friend = '+14155550123'

/** A message that Twilio put off for an hour. */
async function putOff() {
  const box = await twilioBox()
  const { stub, clock, opened, send } = box
  stub.next('POST', refuses(429, 20429, 'Too Many Requests', { 'Retry-After': '3600' }))
  const sms = await send(friend)
  await opened.settled()
  expect(stub.asked.filter(({ path }) => path.endsWith('/Messages.json')).length).toBe(1)
  const later = async (): Promise<void> => {
    clock.ahead += 3_700_000
    await opened.settled()
  }
  return { ...box, sms, later }
}

test('who says STOP while a message waits is not sent it', async () => {
  const { stub, ada, sms, told, later, becomes, get } = await putOff()
  await told(announced(ada['phone_number'], 'STOP', { From: friend }))
  await later()
  await becomes(sms.id, 'failed')
  expect(await get(sms.id)).toMatchObject({ error: { code: 'recipient_opted_out' } })
  expect(stub.messages).toEqual([])
})

test('what waited for an identity that is deleted is not sent, also when it was tried before', async () => {
  const { stub, opened, ada, later } = await putOff()
  await opened.call('DELETE', `/v1/identities/${ada.id}`)
  await later()
  const { body: bob } = await opened.call('POST', '/v1/identities', { name: 'Bob', provision_phone: true })
  await opened.call('POST', `/v1/identities/${bob.id}/sms`, { to: friend, body: 'of Bob' })
  await opened.settled()
  expect(stub.messages.map(({ Body }) => Body)).toEqual(['of Bob'])
})

test('what waited for a number that was given back has failed; what waits for a suspended identity goes on waiting', async () => {
  const { stub, opened, ada, sms, get, becomes, later } = await putOff()
  await opened.call('PATCH', `/v1/identities/${ada.id}`, { status: 'suspended' })
  await later()
  expect([(await get(sms.id))['status'], stub.messages]).toEqual(['queued', []])
  await opened.call('DELETE', `/v1/identities/${ada.id}/phone`)
  await opened.call('PATCH', `/v1/identities/${ada.id}`, { status: 'active' })
  await later()
  await becomes(sms.id, 'failed')
  expect(await get(sms.id)).toMatchObject({ error: { code: 'number_given_back' } })
  expect(stub.messages).toEqual([])
})

test('what waited for a suspended identity is sent when it is active again; what Twilio put off goes on waiting', async () => {
  const { stub, opened, ada, sms, send, get, becomes, later } = await putOff()
  stub.next('POST', refuses(429, 20429, 'Too Many Requests', { 'Retry-After': '7200' }))
  const other = await send(friend, 'of two hours')
  await opened.settled()
  await opened.call('PATCH', `/v1/identities/${ada.id}`, { status: 'suspended' })
  await later()
  expect([(await get(sms.id))['status'], stub.messages]).toEqual(['queued', []])
  await opened.call('PATCH', `/v1/identities/${ada.id}`, { status: 'active' })
  await becomes(sms.id, 'sent')
  expect((await get(other.id))['status']).toBe('queued')
  expect(stub.messages.map(({ Body }) => Body)).toEqual(['Hello'])
})

test('a message that Twilio was not asked to take when the box stopped is sent after the start', async () => {
  const { stub, opened, send, becomes } = await twilioBox()
  const { promise: began, resolve: begin } = Promise.withResolvers<void>()
  const deliver = Reflect.get(SmsCourier.prototype, 'deliver')
  // as when the database answers slowly
  const slow = vi.spyOn(SmsCourier.prototype, 'deliver').mockImplementation(async function (
    this: SmsCourier,
    load,
    number,
    signal,
    noted,
  ) {
    begin()
    await once(signal, 'abort')
    return deliver.call(this, load, number, signal, noted)
  })
  const sms = await send(friend)
  await began
  const stopped = opened.restart()
  await Promise.all(slow.mock.results.map(({ value }) => (value as Promise<unknown>).catch(() => undefined)))
  slow.mockRestore()
  await stopped
  await becomes(sms.id, 'sent')
  expect(stub.messages).toHaveLength(1)
}, 12_000)

const bytes = 900

/** A message to Ada with a picture, and calls of it. */
async function withPicture(box: Awaited<ReturnType<typeof twilioBox>>) {
  const { stub, opened, ada, told } = box
  stub.media.set('ME1', Buffer.alloc(bytes, 1))
  const url = `${stub.url}/2010-04-01/Accounts/${account}/Messages/MM1/Media/ME1`
  await told(announced(ada['phone_number'], 'look', { NumMedia: '1', MediaUrl0: url, MediaContentType0: 'image/png' }))
  const [{ id }] = await inbox(opened, ada.id)
  const path = `/v1/identities/${ada.id}/sms/${id}`
  const media = async () => (await opened.call('GET', path)).body['media'][0]
  const storage = async () => (await opened.call('GET', `/v1/identities/${ada.id}`)).body['storage']
  return {
    media,
    storage,
    delete: (query = '') => opened.call('DELETE', path + query),
    restore: () => opened.call('POST', `${path}/restore`),
  }
}

test('the picture of a message that is deleted while it cannot be fetched is there once both are over', async () => {
  const box = await twilioBox()
  const { stub, clock, opened } = box
  stub.next('GET', refuses(503, 20503, 'Service unavailable'))
  const sms = await withPicture(box)
  await opened.settled()
  expect(await sms.media()).toMatchObject({ status: 'pending' })
  const before = await sms.storage()
  await sms.delete()
  clock.ahead += 7_000
  await opened.settled()
  const { media, trash } = await sms.storage()
  expect([media - before.media, trash - before.media]).toEqual([bytes, bytes])
  await sms.restore()
  expect(await sms.media()).toMatchObject({ status: 'kept', size: bytes })
  expect(await sms.storage()).toMatchObject({ media, trash: 0 })
})

test('a picture that arrives after its message was deleted is restored with it, and nothing of it stays after a purge', async () => {
  const box = await twilioBox()
  const { stub, opened } = box
  stub.held = []
  const sms = await withPicture(box)
  await expect.poll(() => stub.held!.length).toBe(1)
  await sms.delete()
  stub.held[0]!()
  await opened.settled()
  await sms.restore()
  expect(await sms.media()).toMatchObject({ status: 'kept', size: bytes })
  await sms.delete('?purge=true')
  expect(await sms.storage()).toMatchObject({ media: 0, trash: 0 })
})

test('of a message that is purged while its picture is fetched nothing is kept', async () => {
  const box = await twilioBox()
  const { stub, opened } = box
  stub.held = []
  const sms = await withPicture(box)
  await expect.poll(() => stub.held!.length).toBe(1)
  await sms.delete('?purge=true')
  stub.held[0]!()
  await opened.settled()
  expect(await sms.storage()).toMatchObject({ media: 0, trash: 0 })
})
