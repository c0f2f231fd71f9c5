import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { AttachmentReader } from '../../src/mail/workers/attachment-reader.ts'
import { Examiner } from '../../src/mail/workers/examiner.ts'
import type { ExamineOrder, ExamineSettings } from '../../src/mail/workers/examine.ts'
import type { WorkerThread } from '../../src/mail/workers/worker-slot.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { warmThread } from '../support/warm-threads.ts'

const mebibyte = 1024 * 1024
const row = (megabytes: number) => ({ raw_id: 1, raw_expired_at: null, size: megabytes * mebibyte })
const never = new AbortController().signal

/** A reader over a store that counts the messages read, and an examiner whose one worker never answers. */
function held() {
  const given: number[] = []
  const thread: WorkerThread = {
    on: (event, listener) => {
      if (event === 'message') setImmediate(() => (listener as (report: { alive: true }) => void)({ alive: true }))
    },
    postMessage: (order: ExamineOrder) =>
      void ('tasks' in order && given.push(...order.tasks.map(({ end, start }) => end - start))),
    terminate: async () => undefined,
  }
  const settings: ExamineSettings = {
    hostname: 'mx.test',
    dmarc: 'reject',
    deadline: 60_000,
    trusted_sealers: [],
    dns: { servers: [], timeout: 500 },
    verify: false,
  }
  const examiner = new Examiner(settings, undefined, { workers: 1, parseTimeout: 60_000, timeout: 0, thread: () => thread })
  const store = { read: 0 }
  const rawMessage = async (): Promise<Buffer> => {
    store.read += 1
    return Buffer.alloc(5 * mebibyte)
  }
  const reader = new AttachmentReader({ emails: { rawMessage }, examiner })
  return { examiner, reader, store, given }
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await nextTurn()
}

test('of the large messages that are read at once, one is in memory, some wait, and the rest of an account are refused', async () => {
  const { examiner, reader, store } = held()
  const refused: unknown[] = []
  const all: Promise<unknown>[] = []
  const read = (account: string): void => {
    const reading = reader.read({ row: row(24), account, signal: never }, (decode) => decode([0]))
    all.push(reading.catch((error: unknown) => void refused.push(error)))
  }
  for (let call = 0; call < 40; call += 1) read('a')
  await settled()
  expect(store.read).toBe(1)
  expect(refused).toHaveLength(36)
  expect(refused[0]).toMatchObject({ type: 'rate_limited', code: 'too_much_at_once', retryAfter: 1 })
  read('b')
  await settled()
  expect(store.read).toBe(1)
  expect(refused).toHaveLength(36)
  await examiner.stop()
  await Promise.all(all)
})

test('a message above the limit of all is read, alone', async () => {
  const { examiner, reader, store } = held()
  const reading = reader.read({ row: row(500), account: 'a', signal: never }, (decode) => decode([0]))
  const second = reader.read({ row: row(1), account: 'a', signal: never }, (decode) => decode([0]))
  await expect(second).rejects.toMatchObject({ code: 'too_much_at_once' })
  await settled()
  expect(store.read).toBe(1)
  await Promise.all([examiner.stop(), expect(reading).rejects.toMatchObject({ type: 'internal_error' })])
})

test('a call that ends while it waits leaves nothing to be read', async () => {
  const { examiner, reader, store, given } = held()
  const calls = Array.from({ length: 3 }, () => new AbortController())
  const rejected = calls.map(({ signal }) => {
    const reading = reader.read({ row: row(5), account: 'a', signal }, (decode) => decode([0]))
    return expect(reading).rejects.toBeDefined()
  })
  await settled()
  // the worker has one; the others are still to be read
  expect([given.length, examiner.waiting, store.read]).toEqual([1, 0, 1])
  calls[2]!.abort()
  calls[1]!.abort()
  await Promise.all(rejected.slice(1))
  expect([given.length, examiner.waiting, store.read]).toEqual([1, 0, 1])
  await examiner.stop()
  await rejected[0]
})

/** A box that counts the messages its workers were given to extract attachments from. */
async function counted(): Promise<{ box: Appliance; extractions: () => number }> {
  let extractions = 0
  const box = await appliance({}, undefined, {
    examiner: {
      thread: (start, memory) => {
        const worker = warmThread(start, memory)
        const post = worker.postMessage.bind(worker)
        worker.postMessage = (order, transfer) => {
          if ('tasks' in order) extractions += order.tasks.filter(({ envelope }) => envelope === null).length
          post(order, transfer)
        }
        return worker
      },
    },
  })
  return { box, extractions: () => extractions }
}

const picture = Buffer.from('picture').toString('base64')
const images = Array.from({ length: 12 }, (_, number) => number)
const letter = message(
  { Subject: 'Pictures', 'Content-Type': 'multipart/related; boundary=b' },
  [
    `Content-Type: text/html\n\n<p>${images.map((number) => `<img src="cid:i${number}@x">`).join('')}</p>`,
    ...images.map(
      (number) =>
        `Content-Type: image/png\nContent-ID: <i${number}@x>\nContent-Disposition: attachment; filename=${number}.png\nContent-Transfer-Encoding: base64\n\n${picture}`,
    ),
  ]
    .map((part) => `--b\n${part}\n`)
    .join('') + '--b--\n',
)

test('a message is parsed once for all the images of its page, and once for all the attachments that are forwarded', async () => {
  const { box, extractions } = await counted()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  await deliver(box.smtp, { to: ada.email, raw: letter })
  const at = `/v1/identities/${ada.id}/emails`
  const { body: list } = await box.call('GET', at)
  const { body: page } = await box.call<string>('GET', `${at}/${list.data[0].id}/html`)
  expect(page.split(`src="data:image/png;base64,${picture}"`)).toHaveLength(13)
  expect(extractions()).toBe(1)
  const { status, body: forwarded } = await box.call('POST', `${at}/${list.data[0].id}/forward`, { to: bob.email })
  expect(status).toBe(201)
  expect(forwarded.attachments.map(({ filename, size }: { filename: string; size: number }) => [filename, size])).toEqual(
    images.map((number) => [`${number}.png`, 7]),
  )
  expect(extractions()).toBe(2)
})
