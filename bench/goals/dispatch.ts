import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { post } from '../api.ts'
import { startIngestBox } from '../ingest.ts'
import { type Bench, finding } from '../finding.ts'
import { inTurn, shown, type Side, spreadOf, warmUp } from '../measure.ts'
import { monotonic, type Program, startProgram } from '../program.ts'
import { usageOf } from '../process-tree.ts'

const endpoints = 1000

/** Attempts under way at once: as many as the box makes. */
const together = 256

/** Events to a thousand webhooks, each on an address of its own, against undici alone posting the same octets to the same (P14). */
export const dispatch: Bench = {
  name: 'dispatch',
  goals: ['P14'],
  async run({ directory, rounds, scale }) {
    const [sink, bare] = [startProgram('load/sink.ts'), startProgram('peers/bare-undici.ts')]
    const env = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }
    const work = { message: { size: 0 }, sessions: 1, messages: 1 }
    const box = await startIngestBox(join(directory, 'box'), work, 0, { env })
    try {
      const port = await sink.ask<number>('listen')
      const urls = Array.from({ length: endpoints }, (_, index) => `http://${addressOf(index)}:${port}/events`)
      for (const url of urls) await post(box, '/v1/webhooks', { url, events: ['identity.created'] })
      const events = Math.max(1, Math.round(10 * scale))
      const identity = await post<object>(box, '/v1/identities', { name: 'told' })
      await sink.ask('until', endpoints)
      const envelope = {
        id: 'evt_01k00000000000000000000000',
        event: 'identity.created',
        type: 'identity.created',
        data: identity,
      }
      const make = async (): Promise<unknown> =>
        Promise.all(Array.from({ length: events }, () => post(box, '/v1/identities', {})))
      const flood = (): Promise<unknown> => bare.ask('post', { urls, times: events, body: JSON.stringify(envelope), together })
      const posts = events * endpoints
      const sides = [side('box', box.pid, sink, posts, make), side('bare undici', bare.pid, sink, posts, flood)]
      await warmUp(sides[0]!, 2)
      const samples = await inTurn(sides, rounds)
      const of = (name: string, figure: string) => spreadOf(samples.get(name), figure)
      const said = (name: string): string =>
        `${shown(of(name, 'posts/s'))} posts/s, ${shown(of(name, 'µs CPU/post'))} µs CPU a post, the receiver ${shown(of(name, 'µs CPU/post of the receiver'))}`
      return [
        finding({
          goal: 'P14',
          what: `Webhook dispatch to ${endpoints.toLocaleString('en')} endpoints, signed, every attempt on disk before and after`,
          against: 'bare undici, the same octets, unsigned, nothing stored',
          value: of('box', 'posts/s').median / of('bare undici', 'posts/s').median,
          least: 0.6,
          figures: [`box ${said('box')}`, `bare ${said('bare undici')}`],
        }),
      ]
    } finally {
      sink.stop()
      bare.stop()
      await box.stop()
    }
  },
}

function side(name: string, pid: number, sink: Program, posts: number, begin: () => Promise<unknown>): Side {
  return {
    name,
    async round() {
      await sink.ask('reset', {})
      const [before, receiver] = [usageOf(pid), usageOf(sink.pid)]
      const began = monotonic()
      const [last] = await Promise.all([sink.ask<number>('until', posts), begin()])
      // the last outcomes are written down
      await pause(500)
      const { count, unsigned } = await sink.ask<{ count: number; unsigned: number }>('told')
      if (count !== posts) throw new Error(`${count} posts came of ${posts}`)
      if (unsigned !== (name === 'box' ? 0 : posts)) throw new Error(`${unsigned} posts of ${posts} by ${name} were not signed`)
      return {
        'posts/s': (posts / (last - began)) * 1000,
        'µs CPU/post': (usageOf(pid).cpu - before.cpu) / posts,
        'µs CPU/post of the receiver': (usageOf(sink.pid).cpu - receiver.cpu) / posts,
      }
    },
  }
}

/** A loopback address for each, as if each were another host. */
function addressOf(index: number): string {
  return `127.0.${1 + Math.floor(index / 250)}.${1 + (index % 250)}`
}
