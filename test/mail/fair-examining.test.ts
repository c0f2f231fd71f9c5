import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { ExamineOrder, WorkerReport } from '../../src/mail/workers/examine.ts'
import type { WorkerThread } from '../../src/mail/workers/worker-slot.ts'
import { accountKey } from '../support/account-key.ts'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'

/** A worker that reads nothing until it is told to: what it was given, by subject, in order. */
class HeldWorker extends EventEmitter<{ message: [WorkerReport]; error: [Error]; exit: [] }> implements WorkerThread {
  readonly given: string[] = []
  readonly #waiting: number[] = []
  readonly #listeners: (() => void)[] = []

  postMessage(order: ExamineOrder): void {
    if ('settings' in order) return
    for (const { id, start, end } of order.tasks) {
      const text = Buffer.from(order.octets, start, end - start).toString('latin1')
      this.given.push(/^Subject: (.*)\r$/m.exec(text)?.[1] ?? '')
      this.#waiting.push(id)
    }
    for (const listener of this.#listeners) listener()
  }

  /** Is done with the first of those it has. */
  finish(): void {
    const id = this.#waiting.shift()!
    this.emit('message', { results: [{ id, spans: [], failure: 'not read' }], octets: new ArrayBuffer(0) })
  }

  /** Is done with all it has, and with what it is given from now on. */
  finishAll(): void {
    const finish = (): void => {
      while (this.#waiting.length > 0) this.finish()
    }
    this.#listeners.push(() => setImmediate(finish))
    finish()
  }

  /** Resolves when it has been given so many. */
  async holds(count: number): Promise<void> {
    while (this.given.length < count) await new Promise<void>((resolve) => this.#listeners.push(resolve))
  }

  async terminate(): Promise<void> {}
}

test('mail for one account is read while a flood for another waits for the workers', async () => {
  const worker = new HeldWorker()
  const thread = (): WorkerThread => {
    setImmediate(() => worker.emit('message', { alive: true }))
    return worker
  }
  const box = await appliance({}, undefined, { examiner: { workers: 1, depth: 2, parseTimeout: 60_000, thread } })
  onTestFinished(() => worker.finishAll())
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' }, { key: accountKey(box) })
  const send = (to: string, subject: string): Promise<string> =>
    deliver(box.smtp, { to, raw: message({ Subject: subject }, 'x\n') })
  const waiting = async (count: number): Promise<void> => {
    const line = `pillarbox_examiner_messages{state="waiting"} ${count}`
    while (!(await box.app.metrics.text()).includes(line)) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const flood = Array.from({ length: 6 }, () => send(ada.email, 'flood'))
  await waiting(4)
  // a worker has room left that the flood did not get
  const one = send(bob.email, 'one')
  await worker.holds(3)
  expect(worker.given).toEqual(['flood', 'flood', 'one'])
  const two = send(bob.email, 'two')
  await waiting(5)
  worker.finish()
  await worker.holds(4)
  worker.finish()
  await worker.holds(5)
  expect(worker.given.slice(3)).toEqual(['flood', 'two'])
  worker.finishAll()
  for (const reply of await Promise.all([...flood, one, two])) expect(reply).toContain('250')
})

test('what a filter refuses counts as held in memory while it waits for the workers, and is refused then', async () => {
  let asked = 0
  const filter = createServer((request, response) => {
    asked += 1
    request.resume().on('end', () => response.end(JSON.stringify({ action: 'reject', score: 99, required_score: 5 })))
  }).listen(0, '127.0.0.1')
  await once(filter, 'listening')
  onTestFinished(() => void filter.close())
  const worker = new HeldWorker()
  const thread = (): WorkerThread => {
    setImmediate(() => worker.emit('message', { alive: true }))
    return worker
  }
  const url = `http://127.0.0.1:${(filter.address() as AddressInfo).port}`
  const examiner = { workers: 1, depth: 1, parseTimeout: 60_000, thread }
  const box = await appliance({ PILLARBOX_MAIL__RSPAMD__URL: url }, undefined, { examiner })
  onTestFinished(() => worker.finishAll())
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const raw = message({ Subject: 'bad' }, 'x\n'.repeat(50_000))
  const send = (): Promise<string> => deliver(box.smtp, { to: ada.email, raw })
  const replies = [send(), send(), send()]
  await expect.poll(() => figure(box, 'pillarbox_examiner_messages{state="waiting"}')).toBe(2)
  await expect.poll(() => asked).toBe(3)
  // the filter has refused them all
  await new Promise((resolve) => setTimeout(resolve, 200))
  const octets = raw.replaceAll(/\r?\n/g, '\r\n').length
  expect(await figure(box, 'pillarbox_smtp_held_bytes')).toBe(3 * octets)
  worker.finishAll()
  for (const reply of await Promise.all(replies)) expect(reply).toMatch(/^55\d /)
  await expect.poll(() => figure(box, 'pillarbox_smtp_held_bytes')).toBe(0)
})

async function figure(box: Appliance, name: string): Promise<number> {
  const line = (await box.app.metrics.text()).split('\n').find((one) => one.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1))
}
