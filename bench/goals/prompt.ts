import { join } from 'node:path'
import { authorized, post } from '../api.ts'
import { startIngestBox } from '../ingest.ts'
import { type Bench, finding } from '../finding.ts'
import type { Paced } from '../load/pace.ts'
import { inTurn, quantile, shown, type Side, spreadOf } from '../measure.ts'
import { type Program, startProgram } from '../program.ts'

const perSecond = 200
const pattern = '"name":"paced-(\\d+)"'

/** Events at a fixed rate: from the commit to the webhook, against an undici client that posts at the same rate (P8). */
export const prompt: Bench = {
  name: 'prompt',
  goals: ['P8'],
  async run({ directory, rounds, scale }) {
    const [sink, poster] = [startProgram('load/sink.ts'), startProgram('load/paced-posts.ts')]
    const env = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' }
    const box = await startIngestBox(join(directory, 'box'), { message: { size: 0 }, sessions: 1, messages: 1 }, 0, { env })
    try {
      const endpoint = `http://127.0.0.1:${await sink.ask<number>('listen')}/events`
      const identity = await post<object>(box, '/v1/identities', { name: 'paced-#' })
      await post(box, '/v1/webhooks', { url: endpoint, events: ['identity.created'] })
      const count = Math.round(perSecond * 10 * scale)
      const envelope = {
        id: 'evt_01k00000000000000000000000',
        event: 'identity.created',
        type: 'identity.created',
        data: identity,
      }
      const create = { url: `${box.url}/v1/identities`, headers: authorized, body: JSON.stringify({ name: 'paced-#' }) }
      const plain = { url: endpoint, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(envelope) }
      const sides = [
        side('box', { sink, poster, count }, create, ({ answered }) => answered),
        side('bare undici', { sink, poster, count }, plain, ({ scheduled }) => scheduled),
      ]
      const samples = await inTurn(sides, rounds)
      const of = (name: string, figure: string) => spreadOf(samples.get(name), figure)
      const [ours, bare] = [of('box', 'ms p99'), of('bare undici', 'ms p99')]
      const whole = `from the moment the call was to be made to the webhook, p50 ${shown(of('box', 'ms p50 whole'))} ms, p99 ${shown(of('box', 'ms p99 whole'))} ms`
      return [
        finding({
          goal: 'P8',
          what: `Commit to webhook received, at ${perSecond} events/s, p99`,
          against: 'a bare undici client posting at the same rate',
          value: ours.median / bare.median,
          most: 3,
          figures: [
            `box, after the answer to the call that made the event: p50 ${shown(of('box', 'ms p50'))} ms, p99 ${shown(ours)} ms; ${whole}`,
            `bare, after the moment to post: p50 ${shown(of('bare undici', 'ms p50'))} ms, p99 ${shown(bare)} ms`,
          ],
        }),
      ]
    } finally {
      sink.stop()
      poster.stop()
      await box.stop()
    }
  },
}

interface Means {
  sink: Program
  poster: Program
  count: number
}

function side(name: string, { sink, poster, count }: Means, posting: object, from: (paced: Paced) => number): Side {
  return {
    name,
    async round(round) {
      await sink.ask('reset', { pattern })
      const posted = await poster.ask<Paced[]>('post', { ...posting, perSecond, count, first: round * count })
      await sink.ask('until', count)
      const { times } = await sink.ask<{ times: [string, number][] }>('told')
      const came = new Map(times.map(([number, at]) => [Number(number), at]))
      const late = posted.map((one) => came.get(one.number)! - from(one))
      const whole = posted.map(({ number, scheduled }) => came.get(number)! - scheduled)
      return {
        'ms p50': quantile(late, 0.5),
        'ms p99': quantile(late, 0.99),
        'ms p50 whole': quantile(whole, 0.5),
        'ms p99 whole': quantile(whole, 0.99),
      }
    },
  }
}
