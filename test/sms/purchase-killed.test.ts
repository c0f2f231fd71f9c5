import { expect, test } from 'vitest'
import { folder } from '../support/folder.ts'
import { boxProcess, type BoxProcess, testBox } from '../support/process.ts'
import { TwilioStub, twilioSettings } from '../support/twilio-stub.ts'

const key = 'test-key-with-every-scope-1234567890'

async function opened(stub: TwilioStub, directory: string): Promise<{ box: BoxProcess; call: Call }> {
  const box = boxProcess({
    ...testBox,
    ...twilioSettings(stub),
    PILLARBOX_DATA_DIR: `${directory}/data`,
    PILLARBOX_BOOTSTRAP_KEY: key,
  })
  const { api } = await box.said('started')
  const call: Call = async (method, path, body) => {
    const response = await fetch(`${api}${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...(body ? { 'Content-Type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return (await response.json()) as ReturnType<typeof JSON.parse>
  }
  return { box, call }
}

type Call = (method: string, path: string, body?: unknown) => Promise<ReturnType<typeof JSON.parse>>

/** Twilio sells the number, and the box dies before it hears so. */
function diesAtPurchase(stub: TwilioStub, box: BoxProcess): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  stub.next('POST /2010-04-01/Accounts', () => {
    box.child.kill('SIGKILL')
    resolve()
    return false
  })
  return promise
}

test('killed between purchase and commit: the number is adopted by the identity that still wants it', async () => {
  const stub = await TwilioStub.start()
  const directory = folder()
  const first = await opened(stub, directory)
  const ada = await first.call('POST', '/v1/identities', { name: 'Ada' })
  const dying = diesAtPurchase(stub, first.box)
  await first.call('POST', `/v1/identities/${ada.id}/phone`, {}).catch(() => undefined)
  await dying
  await first.box.ended
  expect(stub.numbers.size).toBe(1)
  const second = await opened(stub, directory)
  const now = async () => (await second.call('GET', `/v1/identities/${ada.id}`)).phone_number
  await expect.poll(now).toBe([...stub.numbers.values()][0]!.phone_number)
  const events = await second.call('GET', `/v1/identities/${ada.id}/events?type=phone.provisioned`)
  expect(events.data).toHaveLength(1)
  await second.box.end('SIGTERM')
  const third = await opened(stub, directory)
  expect((await third.call('GET', `/v1/identities/${ada.id}`)).phone_number).toBe([...stub.numbers.values()][0]!.phone_number)
  expect(stub.numbers.size).toBe(1)
}, 60_000)

test('killed between purchase and commit: a number for an identity that never came to be is given back', async () => {
  const stub = await TwilioStub.start()
  const directory = folder()
  const first = await opened(stub, directory)
  const dying = diesAtPurchase(stub, first.box)
  await first.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true }).catch(() => undefined)
  await dying
  await first.box.ended
  expect(stub.numbers.size).toBe(1)
  const second = await opened(stub, directory)
  await expect.poll(() => stub.numbers.size).toBe(0)
  expect((await second.call('GET', '/v1/identities')).data).toEqual([])
}, 60_000)

test('killed while a message is on its way: it is unknown, and Twilio has it once', async () => {
  const stub = await TwilioStub.start()
  const directory = folder()
  const first = await opened(stub, directory)
  const ada = await first.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true })
  const dying = diesAtPurchase(stub, first.box)
  const sms = await first.call('POST', `/v1/identities/${ada.id}/sms`, { to: '+14155550123', body: 'once' })
  await dying
  await first.box.ended
  const second = await opened(stub, directory)
  const status = async () => (await second.call('GET', `/v1/identities/${ada.id}/sms/${sms.id}`)).status
  await expect.poll(status).toBe('unknown')
  expect(stub.messages).toHaveLength(1)
}, 60_000)
