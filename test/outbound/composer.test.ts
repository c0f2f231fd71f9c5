import { EventEmitter } from 'node:events'
import { afterEach, expect, test } from 'vitest'
import { pino } from 'pino'
import type { Draft } from '../../src/outbound/compose/compose.ts'
import type { ComposeResult, ComposeJob } from '../../src/outbound/compose/compose-worker.ts'
import { Composer, type ComposerOptions } from '../../src/outbound/compose/composer.ts'

const origin = { name: 'Ada', at: Date.UTC(2026, 10, 20, 10, 5) }
const long = 'a\n'.repeat(2_000_000)

let composer: Composer
afterEach(() => composer.stop())

function open(options: ComposerOptions = {}): Composer {
  composer = new Composer(pino({ level: 'silent' }), options)
  return composer
}

function draft(change: Partial<Draft>): Draft {
  return {
    from: 'ada@pillarbox.test',
    addressees: [{ field: 'to', address: { address: 'bob@pillarbox.test', name: 'Bob' } }],
    subject: 'Größe',
    text: null,
    html: null,
    reply_to: [],
    headers: [],
    attachments: [],
    labels: [],
    send_at: null,
    auto_submitted: null,
    require_tls: false,
    in_reply_to: null,
    references: [],
    thread_id: null,
    ...change,
  }
}

/** A thread that does nothing of its own accord. */
class IdleThread extends EventEmitter<{ message: [ComposeResult]; error: [Error]; exit: [] }> {
  readonly given: string[] = []
  terminated = false
  postMessage({ draft: { subject } }: ComposeJob): void {
    this.given.push(subject)
  }
  async terminate(): Promise<number> {
    this.terminated = true
    return 0
  }
}

function idleThreads(): { threads: IdleThread[]; thread: () => IdleThread } {
  const threads: IdleThread[] = []
  return { threads, thread: () => (threads.push(new IdleThread()), threads.at(-1)!) }
}

test.each([
  ['text', { text: long }],
  ['HTML', { html: long }],
  ['an enclosed message', { attachments: [enclosure('message/rfc822')] }],
])('a large %s is composed while the event loop turns', async (_, change) => {
  let turns = 0
  const count = (): void => void ((turns += 1), (timer = setImmediate(count)))
  let timer = setImmediate(count)
  const { raw, head, whole } = await open().compose('acc', draft(change), origin)
  clearImmediate(timer)
  // the loop would turn a few times for the steps of a composer on this thread
  expect(turns).toBeGreaterThan(1000)
  expect(head).toBe('Date: Fri, 20 Nov 2026 10:05:00 +0000\r\n')
  expect(Buffer.concat([Buffer.from(head), raw]).equals(whole)).toBe(true)
  expect(raw.toString()).toContain('To: Bob <bob@pillarbox.test>\r\n')
  expect(raw.length).toBeGreaterThan(4_000_000)
})

test.each([null, long])(
  'octets that share their memory with others are composed whole, and the others left as they were',
  async (text) => {
    const shared = Buffer.alloc(300_000, 'abc')
    const attachments = [0, 100_000, 200_000].map((at) => ({ ...enclosure(null), content: shared.subarray(at, at + 100_000) }))
    const { raw } = await open().compose('acc', draft({ attachments, text }), origin)
    expect(raw.toString('latin1').split('YWJj').length).toBeGreaterThan(30_000)
    expect(shared.equals(Buffer.alloc(300_000, 'abc'))).toBe(true)
  },
)

test('a large file needs no thread', async () => {
  const { threads, thread } = idleThreads()
  const { raw } = await open({ thread }).compose('acc', draft({ attachments: [enclosure(null)] }), origin)
  const encoded = raw.toString('latin1').split('\r\n\r\n').at(-1)!.split('\r\n--')[0]!
  expect(Buffer.from(encoded, 'base64').toString()).toBe(long)
  expect(threads).toEqual([])
})

test('a small message needs no thread', async () => {
  const { threads, thread } = idleThreads()
  const { raw } = await open({ thread }).compose('acc', draft({ text: 'Hi' }), origin)
  expect(raw.toString()).toContain('\r\n\r\nHi')
  expect(threads).toEqual([])
})

test('accounts take turns, one message at a time', async () => {
  const { threads, thread } = idleThreads()
  const pool = open({ thread })
  const inputs = [['flood', '1'], ['flood', '2'], ['flood', '3'], ['other', '4']] as const // prettier-ignore
  const all = inputs.map(([account, subject]) => pool.compose(account, draft({ subject, text: long }), origin))
  for (let count = 1; count <= 4; count += 1) {
    expect(threads[0]!.given).toHaveLength(count)
    threads[0]!.emit('message', { head: '', whole: new Uint8Array(1) })
  }
  await Promise.all(all)
  expect(threads[0]!.given).toEqual(['1', '2', '4', '3'])
})

test.each([
  ['ends', (thread: IdleThread) => thread.emit('exit')],
  ['runs out of memory', (thread: IdleThread) => thread.emit('error', new Error('memory'))],
  ['never answers', () => undefined],
])('a message over which the thread %s is refused, and the next is composed by another', async (_, kill) => {
  const { threads, thread } = idleThreads()
  const pool = open({ thread, deadline: 50 })
  const fatal = pool.compose('acc', draft({ text: long }), origin)
  const next = pool.compose('acc', draft({ text: long }), origin)
  kill(threads[0]!)
  await expect(fatal).rejects.toMatchObject({ type: 'internal_error', code: 'not_composed' })
  expect(threads.map(({ terminated }) => terminated)).toEqual([true, false])
  // what the dead one still says is not heard
  threads[0]!.emit('message', { head: '', whole: new Uint8Array(9) })
  threads[1]!.emit('message', { head: '', whole: new Uint8Array(1) })
  expect((await next).whole).toHaveLength(1)
})

test('what is not composed when the box stops is refused', async () => {
  const { threads, thread } = idleThreads()
  const pool = open({ thread })
  const all = [1, 2].map(() => pool.compose('acc', draft({ text: long }), origin).catch((error: Error) => error.message))
  await pool.stop()
  expect(await Promise.all(all)).toEqual(Array(2).fill('The box is stopping. Try again later.'))
  expect(threads).toMatchObject([{ terminated: true }])
})

function enclosure(content_type: string | null) {
  return { filename: 'a.bin', content_type, content: Buffer.from(long), content_id: null }
}
