import { expect, test } from 'vitest'
import { AttemptBounds } from '../../src/outbound/transport/attempt-bounds.ts'

const mebibyte = 1024 * 1024
const never = new AbortController().signal

/** An attempt with a message of this size, which lasts until it is ended. */
function attempt(bounds: AttemptBounds, account: string, megabytes: number): { begun: Promise<void>; end: () => void } {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const { promise: begun, resolve, reject } = Promise.withResolvers<void>()
  bounds
    .run({ account, size: megabytes * mebibyte }, never, async (_signal, reserve) => {
      reserve()
      resolve()
      await ended
    })
    .catch(reject)
  return { begun, end }
}

test('messages that servers do not read hold up those of their account, not of another', async () => {
  const bounds = new AttemptBounds()
  const slow = ['acct_a', 'acct_a', 'acct_b'].map((account) => attempt(bounds, account, 32))
  for (const { begun } of slow) await begun
  const waits = { answer: { outcome: 'deferred', response: 'too much mail is being sent; this message waits' } }
  await expect(attempt(bounds, 'acct_a', 1).begun).rejects.toMatchObject(waits)
  await expect(attempt(bounds, 'acct_c', 17).begun).rejects.toMatchObject(waits)
  const small = attempt(bounds, 'acct_c', 1)
  await small.begun
  small.end()
  slow[0]!.end()
  const next = (): Promise<string> => {
    const { begun, end } = attempt(bounds, 'acct_a', 1)
    return begun.then(
      () => (end(), 'sent'),
      () => 'waits',
    )
  }
  await expect.poll(next).toBe('sent')
  for (const { end } of slow) end()
})
