import { expect, test } from 'vitest'
import type { Event } from '../../src/events/model.ts'
import { EventBodies } from '../../src/webhooks/event-bodies.ts'

const event: Event = {
  seq: 1,
  id: 'evt_1',
  type: 'email.received',
  account_id: 'acct_1',
  identity_id: 'ident_1',
  created_at: '2026-11-20T10:05:00.000Z',
  data: { id: 'email_1', subject: 'Secret' },
}

/** Events of a log in which another box may delete, and how often one was read. */
function logOf(knowsRedactions: boolean): {
  events: ConstructorParameters<typeof EventBodies>[0]
  reads: () => number
  remove: () => void
} {
  let [reads, here] = [0, true]
  const read = async <Value>(value: Value): Promise<Value | undefined> => {
    reads += 1
    return here ? value : undefined
  }
  const events = {
    knowsRedactions,
    onRedaction: () => undefined,
    find: () => read(event),
    sizeOf: () => read({ account_id: 'acct_1', octets: 100 }),
  }
  return {
    events,
    reads: () => reads,
    remove: () => void (here = false),
  }
}

test('an event that many webhooks get is read once', async () => {
  const { events, reads } = logOf(true)
  const bodies = new EventBodies(events)
  expect(await Promise.all([bodies.get('evt_1', false), bodies.get('evt_1', false)])).toMatchObject([{}, {}])
  expect(reads()).toBe(1)
})

test('while another box may have deleted what is not known here yet, it is read again', async () => {
  const { events, remove } = logOf(false)
  const bodies = new EventBodies(events)
  expect(await bodies.sizeOf('evt_1')).toBeDefined()
  expect(await bodies.get('evt_1', false)).toBeDefined()
  remove()
  expect(await bodies.sizeOf('evt_1')).toBeUndefined()
  expect(await bodies.get('evt_1', false)).toBeUndefined()
})
