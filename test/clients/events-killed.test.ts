import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Pillarbox } from '../../clients/typescript/src/index.ts'
import { PythonClient } from '../peers/python-client.ts'
import { bootstrapKey, deliver, message } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { boxProcess, type BoxProcess, testBox } from '../support/process.ts'
import { killsOr } from '../support/kills.ts'

interface Heard {
  id: string
  subject: string
}

/** Follows the mail of an identity until so many events came. Resolves when every event from now on will come. */
type Follow = (url: string, identity: string, count: number) => Promise<{ done: Promise<Heard[]> }>

const byTypeScript: Follow = async (baseUrl, identity, count) => {
  const stream = new Pillarbox({ baseUrl, apiKey: bootstrapKey }).events({ identity, types: ['email.received'] })
  onTestFinished(() => stream.close())
  await stream.ready
  const heard = async (): Promise<Heard[]> => {
    const events: Heard[] = []
    for await (const { id, data } of stream) {
      events.push({ id, subject: (data as { subject: string }).subject })
      if (events.length === count) break
    }
    return events
  }
  return { done: heard() }
}

function byPython(asyncio: boolean): Follow {
  return async (url, identity, count) => {
    const program = new PythonClient()
    onTestFinished(() => program.close())
    const options = { types: ['email.received'], identity }
    const job = { url, key: bootstrapKey, method: 'events', args: [count], options, asyncio }
    expect(await program.call(job)).toEqual({ ready: true })
    const done = program.next().then(({ answer, error }) => {
      expect(error).toBeUndefined()
      return (answer.events as { id: string; data: { subject: string } }[]).map(({ id, data }) => ({ id, subject: data.subject }))
    })
    return { done }
  }
}

const kills = killsOr(2)

/** Messages of a round. */
function each(round: number): number {
  return 3 + 2 * round
}

test.each([
  ['TypeScript', byTypeScript],
  ['Python, waiting', byPython(false)],
  ['Python, with asyncio', byPython(true)],
])(
  'killed again and again in the middle of events, the box loses none for the client in %s, and repeats none',
  async (_name, follow) => {
    const port = await freePort()
    const env = {
      ...testBox,
      PILLARBOX_HTTP__LISTEN: `127.0.0.1:${port}`,
      PILLARBOX_DATA_DIR: join(folder(), 'data'),
      PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
      PILLARBOX_DNS__SERVERS: '127.0.0.1:9',
    }
    const url = `http://127.0.0.1:${port}`
    let box = boxProcess(env)
    await box.said('started')
    const headers = { Authorization: `Bearer ${bootstrapKey}`, 'Content-Type': 'application/json' }
    const made = await fetch(`${url}/v1/identities`, { method: 'POST', headers, body: '{"name":"Ada"}' })
    const { id, email } = (await made.json()) as { id: string; email: string }

    const total = Array.from({ length: kills + 1 }, (_, round) => each(round)).reduce((sum, one) => sum + one)
    const { done } = await follow(url, id, total)
    const sent: string[] = []
    for (let round = 0; round <= kills; round += 1) {
      for (let index = 0; index < each(round); index += 1) {
        sent.push(`Number ${sent.length}`)
        expect(await mail(box, email, sent.at(-1)!)).toMatch(/^250 /)
      }
      if (round === kills) break
      // what was acknowledged last is on disk, and on its way to the client
      await box.end('SIGKILL')
      box = boxProcess(env)
      await box.said('started')
    }
    const heard = await done
    expect(heard.map(({ subject }) => subject)).toEqual(sent)
    const feed = await fetch(`${url}/v1/events?types=email.received&since=2001-01-01T00:00:00Z&limit=200`, { headers })
    const { data } = (await feed.json()) as { data: { id: string }[] }
    expect(heard.map((one) => one.id)).toEqual(data.map((one) => one.id))
  },
)

async function mail(box: BoxProcess, to: string, subject: string): Promise<string> {
  const { smtp } = (await box.said('started')) as { smtp: { host: string; port: number }[] }
  return deliver(smtp[0]!, { to, raw: message({ Subject: subject }, 'x\n') })
}
