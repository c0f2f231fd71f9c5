import { expect, onTestFinished, test, vi } from 'vitest'
import type { Clock } from '../../../src/core/clock.ts'
import { SmsCourier } from '../../../src/sms/courier.ts'
import { Heartbeat } from '../../../src/store/postgres/heartbeat.ts'
import type { Appliance } from '../../support/appliance.ts'
import { allAttempts } from '../../support/attempts.ts'
import { movable } from '../../support/held-clock.ts'
import { TwilioStub, twilioSettings } from '../../support/twilio-stub.ts'
import { severalBoxes } from './boxes.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { emptyDatabase, serverOfFile } from './server.ts'

const postgres = serverOfFile()
const friend = '+14155550123'

/** Boxes whose messages are carried by a stand-in for Twilio, and Ada, who has a number there. */
async function twilioBoxes(count: number, env: Record<string, string> = {}, clock?: Clock) {
  const stub = await TwilioStub.start()
  const origin = 'https://box.example.com'
  const boxes = await severalBoxes(postgres(), count, { ...twilioSettings(stub), PILLARBOX_PUBLIC_URL: origin, ...env }, clock)
  // the public name of the boxes is not where the test reaches them
  for (const box of boxes) box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
  const [box] = boxes
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true, phone_country: 'US' })
  const send = async () => (await box.call('POST', `/v1/identities/${ada['id']}/sms`, { to: friend, body: 'Hello' })).body
  const status = async (id: string) => (await box.call('GET', `/v1/identities/${ada['id']}/sms/${id}`)).body['status']
  const name = new URL(box.env['PILLARBOX_DATABASE__URL']!).pathname.slice(1)
  const rows = (query: string): Promise<Record<string, unknown>[]> => postgres().run(name, query)
  return { stub, boxes, ada, send, status, rows }
}

/** Calls this in the transaction that records the first attempt to send a message. */
function atFirstAttempt(work: () => void): void {
  const begin = Reflect.get(SmsCourier.prototype, 'begin')
  let done = false
  vi.spyOn(SmsCourier.prototype, 'begin').mockImplementation(async function (this: SmsCourier, tx, load) {
    await begin.call(this, tx, load)
    if (!done) work()
    done = true
  })
}

const job = (box: Appliance, wanted: string): Promise<void> => box.app.jobs.find(({ name }) => name === wanted)!.run()

test('a text message is sent whose attempt ended before it was made, as others may have taken it up', async () => {
  const { stub, boxes, send, status, rows } = await twilioBoxes(1)
  let away = false
  const alive = Object.getOwnPropertyDescriptor(Heartbeat.prototype, 'alive')!
  vi.spyOn(Heartbeat.prototype, 'alive', 'get').mockImplementation(function (this: Heartbeat) {
    return !away && (alive.get!.call(this) as boolean)
  })
  atFirstAttempt(() => (away = true))
  const { id } = await send()
  const outcomes = `SELECT outcome FROM ${allAttempts} JOIN deliveries_queue ON deliveries_queue.seq = delivery_seq WHERE kind = 'sms' ORDER BY number`
  await expect.poll(() => rows(outcomes)).toEqual([{ outcome: 'interrupted' }])
  away = false
  await job(boxes[0], 'sweep-deliveries')
  await expect.poll(() => status(id)).not.toBe('queued')
  expect(await status(id)).toBe('sent')
  expect(stub.messages).toHaveLength(1)
})

test('a text message is sent whose attempt was recorded without an answer of the database', async () => {
  const proxy = await cuttingProxy(postgres().port)
  onTestFinished(() => proxy.close())
  await emptyDatabase(postgres(), 'unsure')
  const through = new URL(postgres().url('unsure'))
  through.port = String(proxy.port)
  const { stub, send, status } = await twilioBoxes(1, { PILLARBOX_DATABASE__URL: through.href })
  atFirstAttempt(() => proxy.cutAt('COMMIT', 'after'))
  const { id } = await send()
  await expect.poll(() => status(id)).not.toBe('queued')
  expect(await status(id)).toBe('sent')
  expect(stub.messages).toHaveLength(1)
})

/**
 * A purchase at the first of two boxes that Twilio has made and not answered; the second compares numbers then, `later` milliseconds
 * later, and Twilio's answer arrives after that, or is `lost`.
 */
async function comparedMeanwhile(purchase: 'for an identity' | 'with an identity', later = 0, lost = false) {
  const clock = movable()
  const { stub, boxes, rows } = await twilioBoxes(2, {}, clock)
  const [one, other] = boxes
  const bought = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<void>()
  stub.holds('POST /2010-04-01/Accounts', answer.promise, bought.resolve)
  const { body: bob } =
    purchase === 'for an identity' ? await one.call('POST', '/v1/identities', { name: 'Bob' }) : { body: null }
  const buying = bob
    ? one.call('POST', `/v1/identities/${bob['id']}/phone`, {})
    : one.call('POST', '/v1/identities', { name: 'Bob', provision_phone: true })
  await bought.promise
  clock.ahead += later
  await job(other, 'reconcile-numbers')
  if (lost) answer.reject(new Error('lost'))
  else answer.resolve()
  const answered = await buying
  for (const box of boxes) {
    await job(box, 'reconcile-numbers')
    await box.settled()
  }
  const { body: list } = await other.call('GET', '/v1/identities?name=Bob')
  const identities = list['data'] as { phone_number: string | null }[]
  const held = [...stub.numbers.values()].map(({ phone_number }) => phone_number)
  const states = (await rows('SELECT status FROM phone_numbers ORDER BY seq')).map((row) => row['status'])
  return { answered, identities, held, states }
}

test.each(['for an identity', 'with an identity'] as const)(
  'of two boxes each leaves a purchase alone that is under way at the other (%s)',
  async (purchase) => {
    const { answered, identities, held, states } = await comparedMeanwhile(purchase)
    expect(answered.status).toBeLessThan(300)
    const number = answered.body['phone_number'] as string
    expect(identities).toMatchObject([{ phone_number: number }])
    expect([held.length, held.includes(number), states]).toEqual([2, true, ['active', 'active']])
  },
)

test('a number that another box has assigned, as its purchase took very long, stays with its identity', async () => {
  const { answered, identities, held, states } = await comparedMeanwhile('for an identity', 3_600_000)
  expect(answered.status).toBeLessThan(300)
  expect(identities).toMatchObject([{ phone_number: answered.body['phone_number'] }])
  expect([held.length, states]).toEqual([2, ['active', 'active']])
})

test('a number that another box has assigned stays with its identity, also where the answer about its purchase is lost', async () => {
  const { answered, identities, held, states } = await comparedMeanwhile('for an identity', 3_600_000, true)
  expect(answered.body.error).toMatchObject({ status: 500, code: 'sms_provider_error' })
  expect(identities).toMatchObject([{ phone_number: held[1] }])
  expect([held.length, states]).toEqual([2, ['active', 'active']])
})

test('a number that another box has given back, as its purchase took very long, is not assigned', async () => {
  const { answered, identities, held, states } = await comparedMeanwhile('with an identity', 3_600_000)
  expect(answered.body.error).toMatchObject({ status: 500, code: 'sms_provider_error' })
  expect([identities, held.length, states]).toEqual([[], 1, ['active', 'released']])
})
