import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { bootstrapKey, deliver, message } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { live, type Live } from '../support/live.ts'
import { boxProcess, testBox } from '../support/process.ts'

/** What may be held is this part of what would be held without a bound: garbage that was not collected yet counts with it. */
const share = 4

/** Sockets that read nothing: as many as one key may have. */
const crowd = 20

/** What an event carries: metadata about as large as an identity may have. */
const note = 'All work and no play makes a dull box. '.repeat(400)

const metricsToken = 'a-long-random-word-of-the-test'

interface Box {
  /** Octets of memory the process holds. */
  resident(): number
  /** The most it held while something was done. */
  peak(work: () => Promise<unknown>): Promise<number>
  /** How many were closed because they did not read. */
  closed(): Promise<number>
  /** Changes the identity so often; each change is an event that carries its number. */
  change(count: number): Promise<void>
  /** Sends so many large messages to the identity. */
  mail(count: number): Promise<void>
  /** Sockets that have subscribed to everything, and then stopped reading. */
  stuck(since?: string): Promise<{ socket: Live; since: string }[]>
  open(): Promise<Live>
}

/** A box as a process of its own, whose memory is nobody else's. */
async function start(): Promise<Box> {
  const box = boxProcess({
    ...testBox,
    PILLARBOX_DATA_DIR: folder(),
    PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
    PILLARBOX_DNS__SERVERS: '127.0.0.1:9',
    PILLARBOX_METRICS__TOKEN: metricsToken,
    // garbage is collected early: it is no cost of those who do not read
    NODE_OPTIONS: '--max-semi-space-size=1',
  })
  const { api, smtp } = await box.said('started')
  const call = async <Body>(method: string, path: string, body: object): Promise<Body> => {
    const headers = { Authorization: `Bearer ${bootstrapKey}`, 'Content-Type': 'application/json' }
    const answer = await fetch(`${api}${path}`, { method, headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as Body
  }
  const { id, email } = await call<{ id: string; email: string }>('POST', '/v1/identities', { name: 'Ada' })
  const resident = (): number =>
    1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${box.child.pid}/status`, 'utf8'))![1])
  const open = async (): Promise<Live> => {
    const { url, token } = await call<{ url: string; token: string }>('POST', '/v1/realtime/token', {})
    return live(`${url}?token=${token}`)
  }
  let number = 0
  return {
    resident,
    open,
    async peak(work) {
      let most = resident()
      const timer = setInterval(() => (most = Math.max(most, resident())), 20)
      try {
        await work()
      } finally {
        clearInterval(timer)
      }
      return Math.max(most, resident())
    },
    async closed() {
      const answer = await fetch(`${api}/metrics`, { headers: { Authorization: `Bearer ${metricsToken}` } })
      return Number(/^pillarbox_realtime_slow_total (\d+)$/m.exec(await answer.text())![1])
    },
    async change(count) {
      const last = number + count
      const one = async (): Promise<void> => {
        while (number < last) await call('PATCH', `/v1/identities/${id}`, { metadata: { number: (number += 1), note } })
      }
      await Promise.all([one(), one(), one(), one()])
    },
    async mail(count) {
      const body = `${'All work and no play makes a dull box. '.repeat(20)}\n`.repeat(340)
      for (let index = 0; index < count; index += 1) {
        const fields = { Subject: `Number ${index}`, 'Content-Type': 'multipart/alternative; boundary=x' }
        const parts = ['plain', 'html'].map((kind) => `--x\nContent-Type: text/${kind}\n\n${body}\n`)
        const reply = await deliver(smtp[0], { to: email, raw: message(fields, `${parts.join('')}--x--\n`) })
        if (!reply.startsWith('250')) throw new Error(reply)
      }
    },
    async stuck(since) {
      const opened = Array.from({ length: crowd }, async () => {
        const socket = await open()
        if (since !== undefined) socket.webSocket.pause()
        socket.say({ type: 'subscribe', channel: 'agent_events', since })
        if (since !== undefined) return { socket, since }
        const [subscribed] = await socket.until('subscribed')
        socket.webSocket.pause()
        return { socket, since: subscribed.since as string }
      })
      return Promise.all(opened)
    },
  }
}

/** The changes that a socket has heard of: the box has events of its own, such as of a domain that it could not look up. */
const changes = ({ frames }: Live): Live['frames'] => frames.filter(({ event }) => event?.type === 'identity.updated')

test('who never reads is closed with 1013, costs the process next to nothing, and misses nothing by coming back', async () => {
  const box = await start()
  const count = 1600
  await box.change(count)
  const before = box.resident()
  let first: { socket: Live; since: string } | undefined
  const most = await box.peak(async () => {
    const clients = await box.stuck()
    first = clients[0]!
    // in steps: a client that does not read that it was closed is cut after 30 s
    let made = 0
    for (; (await box.closed()) < crowd && made < count; made += 100) await box.change(100)
    for (const { socket } of clients) socket.webSocket.resume()
    for (const { socket } of clients) expect((await socket.closed).code).toBe(1013)
    await box.change(count - made)
  })
  expect(most - before).toBeLessThan((crowd * count * note.length) / share)
  const { socket, since } = first!
  const heard = changes(socket)
  expect(heard.length).toBeLessThan(count)
  const again = await box.open()
  again.say({ type: 'subscribe', channel: 'agent_events', since: heard.at(-1)?.event.id ?? since })
  await expect.poll(() => changes(again).length).toBe(count - heard.length)
  const numbers = [...heard, ...changes(again)].map(({ event }) => event.data.metadata.number as number)
  expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, index) => count + 1 + index))
})

test('who asks for what is stored and does not read it costs next to nothing either', async () => {
  const box = await start()
  await box.mail(30)
  const reader = await box.open()
  const since = '2001-01-01T00:00:00Z'
  reader.say({ type: 'subscribe', channel: 'agent_events', since })
  const stored = await reader.until('event', 31)
  reader.webSocket.close()
  await reader.closed
  const before = box.resident()
  const most = await box.peak(async () => {
    const clients = await box.stuck(since)
    await new Promise((resolve) => setTimeout(resolve, 1000))
    for (const { socket } of clients) socket.webSocket.terminate()
    for (const { socket } of clients) await socket.closed
  })
  expect(most - before).toBeLessThan((crowd * Buffer.byteLength(JSON.stringify(stored))) / share)
})
