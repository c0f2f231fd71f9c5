import { expect, onTestFinished, test, vi } from 'vitest'
import { bodyMemory } from '../../src/http/body.ts'
import { WorkLimiter } from '../../src/net/work-limiter.ts'
import { fetchLimits } from '../../src/net/outside.ts'

const mebibyte = 1024 * 1024
const { signal } = new AbortController()

/** Something under way until it is ended. */
function held(limiter: WorkLimiter, account: string, begun: string[]): { end: () => void; done: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>()
  const work = (): Promise<void> => {
    begun.push(account)
    return promise
  }
  return { end: resolve, done: limiter.share(account).run(signal, work) }
}

test('an account fetches for four messages at once, all together for sixteen, by turn', async () => {
  const limiter = new WorkLimiter(fetchLimits)
  const begun: string[] = []
  const all = ['a', 'b', 'c', 'd', 'e'].flatMap((account) => Array.from({ length: 6 }, () => held(limiter, account, begun)))
  await new Promise(setImmediate)
  expect(begun.toSorted().join('')).toBe('aaaabbbbccccdddd')
  all[0]!.end()
  await all[0]!.done
  await new Promise(setImmediate)
  expect(begun.toSorted().join('')).toMatch(/e$|^aaaaa/)
  for (const { end } of all) end()
  await Promise.all(all.map(({ done }) => done))
  expect(begun).toHaveLength(30)
})

test('what hangs up while it waits is not fetched, and leaves its place', async () => {
  const limiter = new WorkLimiter(fetchLimits)
  const begun: string[] = []
  const four = Array.from({ length: 4 }, () => held(limiter, 'a', begun))
  const gone = new AbortController()
  const waiting = limiter.share('a').run(gone.signal, async () => void begun.push('gone'))
  gone.abort()
  await expect(waiting).rejects.toThrow('aborted')
  for (const { end } of four) end()
  await Promise.all(four.map(({ done }) => done))
  expect(begun).toEqual(['a', 'a', 'a', 'a'])
})

test('octets count until they are given back: 48 MiB of one account, 96 MiB of all', () => {
  const limiter = new WorkLimiter(fetchLimits)
  const [one, other, third] = [limiter.share('acct_a'), limiter.share('acct_b'), limiter.share('acct_c')]
  one.reserve(48 * mebibyte)
  expect(() => limiter.share('acct_a').reserve(1)).toThrow(
    expect.objectContaining({ type: 'rate_limited', code: 'too_much_at_once' }),
  )
  other.reserve(48 * mebibyte)
  expect(() => third.reserve(1)).toThrow(expect.objectContaining({ code: 'too_much_at_once' }))
  one.release()
  third.reserve(48 * mebibyte)
  for (const share of [other, third]) share.release()
})

test('strangers take 24 MiB together, of whatever kind, and an account 64 MiB', () => {
  const bodies = new WorkLimiter(bodyMemory)
  const fetches = new WorkLimiter(fetchLimits)
  const strangers = ['192.0.2.1', '198.51.100.1'].map((network) => bodies.share(network))
  for (const share of strangers) share.reserve(12 * mebibyte)
  const tooMuch = expect.objectContaining({ code: 'too_much_at_once' }) as Error
  expect(() => bodies.share('203.0.113.1').reserve(1)).toThrow(tooMuch)
  const shares = [bodies.share('acct_a'), fetches.share('acct_a'), new WorkLimiter(fetchLimits).share('acct_a')]
  for (const share of shares.slice(0, 2)) share.reserve(31 * mebibyte)
  expect(() => shares[2]!.reserve(3 * mebibyte)).toThrow(tooMuch)
  shares[2]!.reserve(2 * mebibyte)
  // another account still has its own
  const other = bodies.share('acct_b')
  other.reserve(8 * mebibyte)
  for (const share of [...strangers, ...shares, other]) share.release()
  const after = bodies.share('203.0.113.1')
  after.reserve(1)
  after.release()
})

test('whatever others have taken, the body of a small call is read', () => {
  const limiter = new WorkLimiter(bodyMemory)
  const [one, other, third] = [limiter.share('acct_a'), limiter.share('acct_b'), limiter.share('acct_c')]
  const fourth = limiter.share('acct_d')
  one.reserve(40 * mebibyte)
  other.reserve(16 * mebibyte)
  fourth.reserve(8 * mebibyte)
  third.reserve(mebibyte)
  expect(() => third.reserve(1)).toThrow(expect.objectContaining({ code: 'too_much_at_once' }))
  for (const share of [one, other, third, fourth]) share.release()
})

test('large bodies whose calls wait for a server of theirs do not hold up those of others', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const limiter = new WorkLimiter(bodyMemory)
  const begun: string[] = []
  const all = ['acct_1', 'acct_2', 'acct_3', 'acct_4'].map((account) => {
    const share = limiter.share(account)
    onTestFinished(share.release)
    share.reserve(2 * mebibyte)
    return share.begin().then(() => begun.push(account.slice(-1)))
  })
  await vi.advanceTimersByTimeAsync(1000)
  expect(begun).toEqual(['1', '2', '3'])
  await vi.advanceTimersByTimeAsync(1000)
  await Promise.all(all)
  expect(begun).toEqual(['1', '2', '3', '4'])
})

test('of the largest bodies one is handled at a time, and small ones of others meanwhile', async () => {
  const limiter = new WorkLimiter(bodyMemory)
  const begun: string[] = []
  const asked = (account: string, megabytes: number): { end: () => void; done: Promise<void> } => {
    const share = limiter.share(account)
    share.reserve(megabytes * mebibyte)
    const { promise, resolve } = Promise.withResolvers<void>()
    const done = share.run(signal, () => {
      begun.push(account)
      return promise
    })
    return { end: resolve, done: done.finally(share.release) }
  }
  const calls = [asked('acct_a', 25), asked('acct_b', 25), asked('acct_c', 2), asked('acct_d', 2)]
  await new Promise(setImmediate)
  expect(begun).toEqual(['acct_a', 'acct_c', 'acct_d'])
  calls[0]!.end()
  await calls[0]!.done
  await new Promise(setImmediate)
  expect(begun.at(-1)).toBe('acct_b')
  for (const { end } of calls) end()
  await Promise.all(calls.map(({ done }) => done))
})
