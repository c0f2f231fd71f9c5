import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { authorized, realtime } from '../api.ts'
import { startIngestBox } from '../ingest.ts'
import { type Bench, finding } from '../finding.ts'
import { inTurn, shown, type Side, spreadOf } from '../measure.ts'
import { monotonic, type Program, startProgram } from '../program.ts'
import { usageOf } from '../process-tree.ts'

/** Who sends, and to how many: `listeners` hear it, and nothing else. */
interface Sender {
  name: string
  pid: number
  listeners: Program
  sockets: number
  /** Makes one event, which every socket hears. */
  tell: (number: number) => Promise<unknown>
}

/** One event to thousands of sockets against ws alone (P13): from the call that makes it until the last socket has it. */
export const fanOut: Bench = {
  name: 'fan-out',
  goals: ['P13'],
  async run({ directory, rounds, scale }) {
    // each process has a descriptor for every socket, and some of its own
    const sockets = Math.min(5000, descriptors() - 500)
    const events = Math.max(2, Math.round(20 * scale))
    const [bareListeners, boxListeners, bare] = [
      startProgram('load/listeners.ts'),
      startProgram('load/listeners.ts'),
      startProgram('peers/bare-ws.ts'),
    ]
    const limits = Object.fromEntries(
      ['MAX_SOCKETS', 'MAX_SOCKETS_PER_KEY', 'MAX_SOCKETS_PER_ACCOUNT'].map((name) => [`PILLARBOX_REALTIME__${name}`, '20000']),
    )
    const work = { message: { size: 0 }, sessions: 1, messages: 1 }
    const box = await startIngestBox(join(directory, 'box'), work, 0, { env: limits })
    try {
      const frames = Array.from({ length: sockets }, () => '{"type":"subscribe","channel":"agent_events"}')
      const at = await realtime(box)
      await boxListeners.ask('join', { ...at, frames })
      const port = await bare.ask<number>('listen')
      await bareListeners.ask('join', { host: '127.0.0.1', port, path: '/', frames })
      const create = async (number: number): Promise<string> =>
        ok(
          fetch(`${box.url}/v1/identities`, {
            method: 'POST',
            headers: authorized,
            body: JSON.stringify({ name: `told ${number}` }),
          }),
        )
      const body = frameLike(await create(-1))
      const sides = [
        side({ name: 'box', pid: box.pid, listeners: boxListeners, sockets, tell: create }, events),
        side(
          {
            name: 'bare ws',
            pid: bare.pid,
            listeners: bareListeners,
            sockets,
            tell: () => ok(fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body })),
          },
          events,
        ),
      ]
      const samples = await inTurn(sides, rounds)
      const of = (name: string, figure: string) => spreadOf(samples.get(name), figure)
      const [ours, theirs] = [of('box', 'frames/s'), of('bare ws', 'frames/s')]
      const said = (name: string): string =>
        `${shown(of(name, 'frames/s'))} frames/s, ${shown(of(name, 'ms an event'))} ms an event, ${shown(of(name, 'µs CPU/frame'))} µs CPU a frame`
      return [
        finding({
          goal: 'P13',
          what: `One event to ${sockets.toLocaleString('en')} sockets, until the last has it`,
          against: 'bare ws, the same octets, nothing stored',
          value: ours.median / theirs.median,
          least: 0.9,
          figures: [
            `box ${said('box')}`,
            `bare ${said('bare ws')}`,
            ...(sockets < 5000 ? ['as many as there are descriptors for'] : []),
          ],
        }),
      ]
    } finally {
      for (const program of [bareListeners, boxListeners, bare]) program.stop()
      await box.stop()
    }
  },
}

function side({ name, pid, listeners, sockets, tell }: Sender, events: number): Side {
  return {
    name,
    async round(round) {
      const before = usageOf(pid)
      let took = 0
      for (let number = 0; number < events; number++) {
        await listeners.ask('reset', {})
        const began = monotonic()
        const [last] = await Promise.all([listeners.ask<number>('until', sockets), tell(round * events + number)])
        took += last - began
      }
      const cpu = usageOf(pid).cpu - before.cpu
      const frames = events * sockets
      return { 'frames/s': (frames / took) * 1000, 'ms an event': took / events, 'µs CPU/frame': cpu / frames }
    },
  }
}

/** What the box sends for an identity it made, as far as its size matters. */
function frameLike(identity: string): string {
  const { id, created_at } = JSON.parse(identity) as { id: string; created_at: string }
  const event = { id: `evt_${id.slice(-26)}`, event: 'identity.created', type: 'identity.created', identity_id: id, created_at }
  return `{"type":"event","channel":"agent_events","event":${JSON.stringify({ ...event, data: JSON.parse(identity) as unknown })}}`
}

async function ok(answer: Promise<Response>): Promise<string> {
  const response = await answer
  const text = await response.text()
  if (!response.ok) throw new Error(`${response.status}: ${text}`)
  return text
}

/** Files a process may have open. */
function descriptors(): number {
  const said = execFileSync('/bin/sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim()
  return said === 'unlimited' ? Infinity : Number(said)
}
