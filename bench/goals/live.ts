import { join } from 'node:path'
import { identityIds, realtime } from '../api.ts'
import { type Bench, finding } from '../finding.ts'
import { coldRounds, startIngestBox } from '../ingest.ts'
import type { Paced } from '../load/pace.ts'
import { figure, inTurn, quantile, shown, type Spread, spreadOf, warmUp } from '../measure.ts'
import { senderDomain } from '../messages.ts'
import { startProgram } from '../program.ts'
import { boxDomain } from '../seed.ts'

const perSecond = 500
const mailboxes = 200

/** Mail at a fixed rate to mailboxes that each have a subscriber: from the 250 to the frame (P7). */
export const live: Bench = {
  name: 'live',
  goals: ['P7'],
  async run({ directory, rounds, scale }) {
    const work = { message: { size: 0 }, sessions: 1, messages: mailboxes }
    const box = await startIngestBox(join(directory, 'box'), work, 0, {
      env: { PILLARBOX_REALTIME__MAX_SOCKETS_PER_KEY: '10000' },
    })
    const listeners = startProgram('load/listeners.ts')
    const mail = startProgram('load/paced-mail.ts')
    const count = Math.round(perSecond * 10 * scale)
    try {
      const frames = (await identityIds(box)).map((identity_id) => subscribe(identity_id))
      await listeners.ask('join', { ...(await realtime(box)), frames })
      const side = {
        name: 'box',
        async round(round: number) {
          await listeners.ask('reset', { pattern: '"subject":"paced (\\d+)"' })
          const names = { from: `feedback@${senderDomain}`, to: `r0@${boxDomain}`, recipients: frames.length }
          const sent = await mail.ask<Paced[]>('send', {
            ...box.smtp,
            ...names,
            size: 2048,
            perSecond,
            count,
            first: round * count,
          })
          await listeners.ask('until', count)
          const { times } = await listeners.ask<{ times: [string, number][] }>('told')
          const came = new Map(times.map(([number, at]) => [Number(number), at]))
          const after = sent.map(({ number, answered }) => came.get(number)! - answered)
          const whole = sent.map(({ number, scheduled }) => came.get(number)! - scheduled)
          return {
            'ms p50': quantile(after, 0.5),
            'ms p99': quantile(after, 0.99),
            'ms p50 whole': quantile(whole, 0.5),
            'ms p99 whole': quantile(whole, 0.99),
          }
        },
      }
      const compiling = coldRounds({ messages: count })
      const cold = await warmUp(side, compiling)
      const samples = (await inTurn([side], rounds, compiling)).get('box')
      const what = `250 to the frame on the subscriber’s socket at ${perSecond} msg/s`
      const from = (share: string): string =>
        `from the moment it was to be sent to the frame, ${share} ${shown(spreadOf(samples, `ms ${share} whole`))} ms`
      const late = (share: string): Spread => spreadOf(samples, `ms ${share}`)
      return [
        finding({
          goal: 'P7',
          what: `${what}, p99`,
          against: '–',
          value: late('p99').median,
          most: 5,
          unit: 'ms',
          figures: [
            `after the 250 was read, p50 ${shown(late('p50'))} ms, p99 ${shown(late('p99'))} ms, ${figure(cold['ms p99']!)} in the first round after its start`,
            from('p50'),
            from('p99'),
            `${mailboxes} mailboxes, each with its socket`,
          ],
        }),
      ]
    } finally {
      listeners.stop()
      mail.stop()
      await box.stop()
    }
  },
}

function subscribe(identity_id: string): string {
  return JSON.stringify({ type: 'subscribe', channel: 'email_messages', identity_id })
}
