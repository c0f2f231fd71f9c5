import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { post } from '../api.ts'
import { startNameServer } from '../dns.ts'
import { type Bench, finding, type Finding } from '../finding.ts'
import { boxSide, coldRounds, startIngestBox, type Work } from '../ingest.ts'
import { send as sendCalls } from '../load/posts.ts'
import { startSmtpSink } from '../load/smtp-sink.ts'
import { figure, inTurn, type Side, warmUp } from '../measure.ts'
import { realMail } from '../messages.ts'
import { usageOf } from '../process-tree.ts'
import { side } from './calls.ts'
import { sendingBox } from './outbound.ts'

const tenths = 10

/** What something costs in the last tenth of a long run, against the first (P23): growth hides in short runs. */
export const growth: Bench = {
  name: 'growth',
  goals: ['P23'],
  async run({ directory, scale }) {
    return [
      await ofMail(join(directory, 'plain'), 'Plain mail of 4 KB', { size: 4096 }, Math.round(4000 * scale)),
      await ofMail(join(directory, 'signed'), 'Signed mail of 4 KB', await realMail(directory), Math.round(2000 * scale)),
      await ofCalls(join(directory, 'calls'), Math.max(1, Math.round(6 * scale))),
      await ofOutgoing(join(directory, 'outgoing'), Math.round(1000 * scale)),
    ]
  },
}

async function ofMail(directory: string, what: string, message: Work['message'], messages: number): Promise<Finding> {
  const work = { message, sessions: 50, messages }
  const cold = coldRounds(work)
  const box = await startIngestBox(directory, work, cold + tenths)
  try {
    const taking = boxSide(box, work)
    await warmUp(taking, cold)
    return judge(`${what}, ${(tenths * messages).toLocaleString('en')} messages`, await costs(taking, 'µs CPU/msg', cold))
  } finally {
    await box.stop()
  }
}

async function ofCalls(directory: string, seconds: number): Promise<Finding> {
  const box = await startIngestBox(directory, { message: { size: 0 }, sessions: 1, messages: 1 }, 0)
  try {
    const creating = side('box', box, { path: '/v1/identities', body: '{}' }, seconds)
    return judge(`Creating identities, ${tenths * seconds} s`, await costs(creating, 'µs CPU/call'))
  } finally {
    await box.stop()
  }
}

async function ofOutgoing(directory: string, messages: number): Promise<Finding> {
  await using ending = new AsyncDisposableStack()
  mkdirSync(directory, { recursive: true })
  const sink = await startSmtpSink()
  ending.defer(() => sink.stop())
  const dns = await startNameServer(directory, { txt: {}, a: { 'relay.test': '127.0.0.1' } })
  ending.defer(() => dns.stop())
  const box = await sendingBox(join(directory, 'data'), dns.address, sink.port)
  ending.defer(() => box.stop())
  const { id } = await post<{ id: string }>(box, '/v1/identities', { name: 'Ada' })
  const body = { to: 'bob@far.test', subject: 'The figures [<id>]', body_text: 'These are the figures.\n' }
  const sending: Side = {
    name: 'box',
    async round() {
      const [before, taken] = [usageOf(box.pid), sink.taken]
      const calls = sendCalls({ url: `${box.url}/v1/identities/${id}/emails`, connections: 20, count: messages, body })
      await Promise.all([sink.until(taken + messages), calls])
      return { 'µs CPU/msg': (usageOf(box.pid).cpu - before.cpu) / messages }
    },
  }
  return judge(`Outgoing mail, ${(tenths * messages).toLocaleString('en')} messages`, await costs(sending, 'µs CPU/msg'))
}

/** What the rounds of a side cost, after one that warms up. */
async function costs(taking: Side, what: string, first = 0): Promise<number[]> {
  const samples = await inTurn([taking], tenths, first)
  return samples.get(taking.name)!.map((sample) => sample[what]!)
}

function judge(what: string, each: number[]): Finding {
  return finding({
    goal: 'P23',
    what: `${what}: CPU in the last tenth`,
    against: 'the first tenth',
    value: each.at(-1)! / each[0]!,
    most: 1.1,
    figures: [`µs CPU, by tenths: ${each.map(figure).join(', ')}`],
  })
}
