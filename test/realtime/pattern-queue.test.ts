import { expect, test } from 'vitest'
import { PacedWork } from '../../src/core/work/paced-work.ts'
import type { Event } from '../../src/events/model.ts'
import { Frames } from '../../src/realtime/frames.ts'
import { PatternQueue } from '../../src/realtime/pattern-queue.ts'

const event = (seq: number): Event => ({
  seq,
  id: `evt_${seq}`,
  type: 'x',
  account_id: 'a',
  identity_id: null,
  created_at: '',
  data: {},
})

/** One that notes what it is asked about. */
function matcher(account_id: string, order: string[] = []) {
  return {
    account_id,
    order,
    misses: 0,
    match: (frames: Frames) => void order.push(`${account_id} ${frames.event.seq}`),
    missed() {
      this.misses += 1
    },
  }
}

function queue(read: number[] = []) {
  const at = async (seq: number): Promise<Event | undefined> => {
    read.push(seq)
    return seq === 3 ? undefined : event(seq)
  }
  return new PatternQueue({
    paced: new PacedWork(),
    events: { findAt: at },
    failed: (error) => {
      throw error
    },
  })
}

test('events are matched in their order, accounts by turn, and read from the log but for the first', async () => {
  const read: number[] = []
  const patterns = queue(read)
  const order: string[] = []
  const [flood, other] = [matcher('flood', order), matcher('other', order)]
  for (const seq of [1, 2, 3, 4]) patterns.add(flood, new Frames(event(seq)))
  patterns.add(other, new Frames(event(5)))
  while (order.length < 4) await new Promise((resolve) => setImmediate(resolve))
  expect(order).toEqual(['flood 1', 'other 5', 'flood 2', 'flood 4'])
  expect(read).toEqual([2, 3, 4])
})

test('who falls a thousand events behind is told so, and nobody else', async () => {
  const patterns = queue()
  const [slow, other] = [matcher('slow'), matcher('other')]
  for (let seq = 10; seq < 1012; seq += 1) patterns.add(slow, new Frames(event(seq)))
  patterns.add(other, new Frames(event(2000)))
  expect([slow.misses, other.misses]).toEqual([2, 0])
  while (slow.order.length < 1000) await new Promise((resolve) => setTimeout(resolve, 1))
  expect(slow.order.at(-1)).toBe('slow 1009')
  expect(other.order).toEqual(['other 2000'])
})
