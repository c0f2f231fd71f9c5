import { expect, test } from 'vitest'
import { announced, refuses } from '../support/twilio-stub.ts'
import { twilioBox } from './twilio-box.ts'

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
  await opened.call('PATCH', `/v1/identities/${ada.id}`, { status: 'active' })
  await opened.call('DELETE', `/v1/identities/${ada.id}/phone`)
  await later()
  await becomes(sms.id, 'failed')
  expect(await get(sms.id)).toMatchObject({ error: { code: 'number_given_back' } })
  expect(stub.messages).toEqual([])
})
