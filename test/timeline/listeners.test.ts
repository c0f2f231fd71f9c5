import { expect, test, vi } from 'vitest'
import { Substring } from '../../src/timeline/substring.ts'
import type { Event } from '../../src/events/model.ts'
import { Listeners } from '../../src/timeline/listeners.ts'
import { MessageFilter } from '../../src/timeline/message-filter.ts'

const types = ['email.received']

const message = (seq: number, subject: string, account_id = 'acct_1'): Event => ({
  seq,
  id: `evt_${seq}`,
  type: 'email.received',
  account_id,
  identity_id: `ident_of_${account_id}`,
  created_at: '',
  data: { from: 'bank@bank.test', from_name: 'The Bank', subject },
})

/** Somebody who listens for subjects; `told` has the positions of what it was told of. */
function listener(subject_contains: string) {
  const told: number[] = []
  const filter = new MessageFilter({ from: undefined, subject_contains, spam: false }, types)
  return {
    told,
    filter,
    onMessage: ({ seq }: { seq: number }) => void told.push(seq),
    onDeleted: () => undefined,
    onStopped: () => undefined,
  }
}

test('equal filters are compared once for a message, however they are written', () => {
  const listeners = new Listeners()
  const compared = vi.spyOn(Substring.prototype, 'isIn')
  const all = Array.from({ length: 20 }, (_, number) => listener(number % 2 === 0 ? 'YOUR code' : 'your CODE'))
  for (const one of all) listeners.add('ident_of_acct_1', one)
  listeners.tell(message(1, 'Your code is 123'))
  expect(compared).toHaveBeenCalledTimes(1)
  expect(all.map(({ told }) => told)).toEqual(all.map(() => [1]))
})

test('each is told of messages in their order, and of none that came before it listened or after it left', async () => {
  const listeners = new Listeners()
  const many = Array.from({ length: 200 }, (_, number) => listener(`code ${number}`))
  for (const one of many) listeners.add('ident_of_acct_1', one)
  const leaving = listener('code')
  const leave = listeners.add('ident_of_acct_1', leaving)
  const seqs = Array.from({ length: 20 }, (_, number) => number + 1)
  const subject = many.map((_, number) => `code ${number}`).join(' ')
  for (const seq of seqs) listeners.tell(message(seq, subject.slice(-1000)))
  leave()
  const late = listener('code')
  listeners.add('ident_of_acct_1', late)
  listeners.tell(message(21, subject.slice(-1000)))
  await vi.waitFor(() => expect(late.told).toEqual([21]), 100_000)
  expect(leaving.told).toEqual(seqs)
  expect(many.at(-1)!.told).toEqual([...seqs, 21])
  expect(listeners.size).toBe(201)
})

test('who waits for one message is told before those of another account are compared with all of theirs', async () => {
  const listeners = new Listeners()
  const dear = Array.from({ length: 1000 }, (_, number) => listener(`${'a'.repeat(400)}b${'a'.repeat(400)}${number}`))
  for (const one of dear) listeners.add('ident_of_many', one)
  const last = listener('a')
  listeners.add('ident_of_many', last)
  const honest = listener('code')
  listeners.add('ident_of_one', honest)
  for (let seq = 1; seq <= 50; seq += 1) listeners.tell(message(seq, 'a'.repeat(1000), 'many'))
  listeners.tell(message(51, 'Your code', 'one'))
  await vi.waitFor(() => expect(honest.told).toEqual([51]), 100_000)
  expect(last.told.length).toBeLessThan(25)
})

test('of a subject the first 1,000 characters are looked at', () => {
  const listeners = new Listeners()
  const [within, beyond] = [listener('xCODE'), listener('code and')]
  for (const one of [within, beyond]) listeners.add('ident_of_acct_1', one)
  listeners.tell(message(1, `${'x'.repeat(996)}Code and more`))
  expect([within.told, beyond.told]).toEqual([[1], []])
})
