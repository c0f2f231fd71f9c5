import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, test } from 'vitest'
import { PacedWork } from '../../src/core/work/paced-work.ts'

/** Holds the thread for longer than a slice. */
function busy(): void {
  const end = performance.now() + 6
  while (performance.now() < end);
}

test('accounts take turns at what is paced', async () => {
  const paced = new PacedWork()
  const order: string[] = []
  const piece = (account: string): Promise<void> =>
    paced.run(account, () => {
      busy()
      order.push(account)
    })
  const flood = Array.from({ length: 6 }, () => piece('flood'))
  await piece('other')
  expect(order).toEqual(['flood', 'flood', 'other'])
  await Promise.all(flood)
})

test('the event loop goes on between one long piece and the next', async () => {
  const paced = new PacedWork()
  let turns = 0
  const counting = setInterval(() => (turns += 1), 1)
  const seen: number[] = []
  await Promise.all(
    Array.from({ length: 4 }, () =>
      paced.run('one', () => {
        busy()
        seen.push(turns)
      }),
    ),
  )
  clearInterval(counting)
  expect(new Set(seen).size).toBe(4)
})

test('a piece that throws is the fault of who asked for it, and the next is done', async () => {
  const paced = new PacedWork()
  const wrong = paced.run('one', () => {
    throw new Error('no good')
  })
  await expect(wrong).rejects.toThrow('no good')
  expect(await paced.run('one', async () => 'good')).toBe('good')
})

test('each piece runs in the context of who gave it, not of who began the loop', async () => {
  const context = new AsyncLocalStorage<string>()
  const paced = new PacedWork()
  const piece = (of: string): Promise<string | undefined> =>
    context.run(of, () =>
      paced.run(of, () => {
        busy()
        return context.getStore()
      }),
    )
  expect(await Promise.all(['one', 'other', 'third'].map(piece))).toEqual(['one', 'other', 'third'])
})
