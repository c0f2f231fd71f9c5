import { join } from 'node:path'
import { type AddressInfo, createServer } from 'node:net'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { bootstrapKey, deliver, message } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { live } from '../support/live.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { killsOr } from '../support/kills.ts'

const kills = killsOr(2)

type Event = { id: string; data: { subject?: string } }

test(
  `killed ${kills} times while mail flows, a subscriber that comes back with since hears every event once, in order`,
  { timeout: 60_000 + kills * 10_000 },
  async () => {
    const home = folder()
    const port = await freePort()
    const env = {
      ...testBox,
      PILLARBOX_HTTP__LISTEN: `127.0.0.1:${port}`,
      PILLARBOX_DATA_DIR: join(home, 'data'),
      PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
      PILLARBOX_DNS__SERVERS: '127.0.0.1:9',
    }
    const api = `http://127.0.0.1:${port}`
    const headers = { Authorization: `Bearer ${bootstrapKey}`, 'Content-Type': 'application/json' }
    const post = async (path: string, body: object): Promise<Record<string, string>> =>
      (await (await fetch(`${api}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).json()) as never
    const all = async (url: string, cursor = ''): Promise<Event[]> => {
      const page = (await (await fetch(`${url}${cursor}`, { headers })).json()) as { data: Event[]; next_cursor: string | null }
      if (page.next_cursor === null) return page.data
      return [...page.data, ...(await all(url, `&cursor=${encodeURIComponent(page.next_cursor)}`))]
    }
    const heard: Event[] = []
    let identity: Record<string, string> = {}
    let address = ''
    let since: string | null = null
    let number = 0
    const acknowledged: string[] = []
    for (let round = 0; round <= kills; round += 1) {
      const box = boxProcess(env)
      const { smtp } = await box.said('started')
      if (round === 0) {
        identity = await post('/v1/identities', { name: 'Ada' })
        // good for every round: nothing is kept of a token but its key
        const made = await post('/v1/realtime/token', { expires_in: 3600 })
        address = `${made['url']}?token=${made['token']}`
      }
      const socket = await live(address)
      socket.say({ type: 'subscribe', channel: 'email_messages', identity_id: identity['id'], since: since ?? undefined })
      since ??= (await socket.until('subscribed'))[0].since
      const start = heard.length
      socket.webSocket.on('message', (data: Buffer) => {
        const frame = JSON.parse(data.toString()) as { type: string; event: Event }
        if (frame.type === 'event') heard.push(frame.event)
      })
      heard.push(...socket.frames.filter(({ type }) => type === 'event').map(({ event }) => event as Event))
      if (round === kills) {
        while (!acknowledged.every((subject) => heard.some(({ data }) => data.subject === subject))) {
          await new Promise((resolve) => setTimeout(resolve, 20))
        }
        const data = await all(
          `${api}/v1/identities/${identity['id']}/events?type=email.received&since=2001-01-01T00:00:00Z&limit=200`,
        )
        await socket.until('event', data.length - start)
        expect(heard.map(({ id }) => id)).toEqual(data.map(({ id }) => id))
        expect(await box.end('SIGTERM')).toBe(0)
        expect((await socket.closed).code).toBe(1001)
        return
      }
      for (let index = 0; index < 3 + (round % 8); index += 1) {
        const subject = `Message ${(number += 1)}`
        const reply = await deliver(smtp[0], { to: identity['email']!, raw: message({ Subject: subject }, 'x\n') })
        if (reply.startsWith('250')) acknowledged.push(subject)
      }
      const last = deliver(smtp[0], { to: identity['email']!, raw: message({ Subject: `Cut ${round}` }, 'x\n') }).catch(() => '')
      await box.end('SIGKILL')
      await Promise.all([last, socket.closed])
      since = heard.at(-1)?.id ?? since
    }
  },
)

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
