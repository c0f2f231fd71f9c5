import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { benchKey, type Box, startBox } from '../box.ts'
import { startNameServer } from '../dns.ts'
import { commonWord, fill, rareWord } from '../fill.ts'
import { type Bench, finding, type Finding } from '../finding.ts'
import { inTurn, quantile, type Sample, shown, type Side, type Spread, spreadOf } from '../measure.ts'
import { senderZone } from '../messages.ts'
import { usageOf } from '../process-tree.ts'
import { openStore } from '../seed.ts'

/** A hundred messages an identity, in both boxes. */
const each = 100
const small = 1000

/** The same mailboxes in a box of 1,000 messages and in one of 1,000,000 (P12); its memory (P17) and its start (P18). */
export const million: Bench = {
  name: 'million',
  goals: ['P12', 'P17', 'P18'],
  async run({ directory, rounds, scale, messages }) {
    const few = await filled(join(directory, 'few'), small)
    const many = await filled(join(directory, 'many'), messages)
    const server = await startNameServer(directory, senderZone)
    const boxes: Box[] = []
    try {
      const starts: Sample[] = []
      for (let round = 0; round <= rounds; round++) {
        const box = await startBox({ directory: many.data, dns: server.address })
        if (round > 0) starts.push({ 's start': box.started_in / 1000 })
        await box.stop()
      }
      boxes.push(
        await startBox({ directory: few.data, dns: server.address }),
        await startBox({ directory: many.data, dns: server.address }),
      )
      const calls = Math.round(600 * scale)
      const sides = [side(`${small}`, boxes[0]!, few.ids, calls), side(`${messages}`, boxes[1]!, many.ids, calls)]
      const samples = await inTurn(sides, rounds)
      return [...judge(samples, messages), ...judgeRest(starts, usageOf(boxes[1]!.pid).peak, messages)]
    } finally {
      await Promise.all(boxes.map((box) => box.stop()))
      server.stop()
    }
  },
}

async function filled(directory: string, messages: number): Promise<{ data: string; ids: string[] }> {
  const data = join(directory, 'data')
  const store = await openStore(data)
  const began = performance.now()
  const ids = await fill(store, messages, Math.ceil(messages / each), (done) => {
    if (done % 50_000 === 0) process.stderr.write(`  filled ${done} in ${Math.round((performance.now() - began) / 1000)} s\n`)
  })
  await store.close()
  return { data, ids }
}

const kinds = ['list', 'get', 'search a word of few', 'search a word of all'] as const

/** Each round asks every kind of call of mailboxes drawn in a fixed order, one call after the other. */
function side(name: string, box: Box, ids: string[], calls: number): Side {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    name,
    async round(number) {
      const times: Record<string, number[]> = Object.fromEntries(kinds.map((kind) => [kind, []]))
      const timed = async (kind: string, path: string): Promise<string> => {
        const began = performance.now()
        const text = await ask(agent, box.url + path)
        times[kind]!.push(performance.now() - began)
        return text
      }
      for (let count = 0; count < calls; count++) {
        const mailbox = `/v1/identities/${ids[(number * calls + count * 7919) % ids.length]!}/emails`
        const { data } = JSON.parse(await timed('list', mailbox)) as { data: { id: string }[] }
        await timed('get', `${mailbox}/${data[count % data.length]!.id}`)
        await timed('search a word of few', `${mailbox}/search?query=${rareWord}`)
        await timed('search a word of all', `${mailbox}/search?query=${commonWord}`)
      }
      return Object.fromEntries(kinds.map((kind) => [`ms p99 ${kind}`, quantile(times[kind]!, 0.99)]))
    },
  }
}

function ask(agent: Agent, url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { agent, headers: { Authorization: `Bearer ${benchKey}` } }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => (response.statusCode === 200 ? resolve(text) : reject(new Error(`${url} answered ${text}`))))
    })
    asked.on('error', reject)
    asked.end()
  })
}

function judge(samples: Map<string, Sample[]>, messages: number): Finding[] {
  const against = `the same box with ${small.toLocaleString('en')}`
  const all = messages.toLocaleString('en')
  return kinds.flatMap((kind) => {
    const [before, after] = [`${small}`, `${messages}`].map((name) => spreadOf(samples.get(name), `ms p99 ${kind}`)) as [
      Spread,
      Spread,
    ]
    const isSearch = kind.startsWith('search')
    const figures = [`${all} messages: p99 ${shown(after)} ms`, `${small} messages: p99 ${shown(before)} ms`]
    const what = `${kind} in a box of ${all} messages`
    const ratio = finding({ goal: 'P12', what, against, value: after.median / before.median, most: 1.5, figures })
    if (!isSearch) return [ratio]
    return [ratio, finding({ goal: 'P12', what, against: '–', value: after.median, most: 50, unit: 'ms p99', figures })]
  })
}

function judgeRest(starts: Sample[], peak: number, messages: number): Finding[] {
  const all = messages.toLocaleString('en')
  const start = spreadOf(starts, 's start')
  return [
    finding({
      goal: 'P17',
      what: `Memory with ${all} messages stored, peak after reading and searching`,
      against: '–',
      value: peak,
      most: 350,
      unit: 'MB',
      figures: [`peak ${peak.toFixed(0)} MB`],
    }),
    finding({
      goal: 'P18',
      what: `Start with ${all} messages, to the first answer (files in the page cache)`,
      against: '–',
      value: start.median,
      most: 1,
      unit: 's',
      figures: [`${shown(start)} s`],
    }),
  ]
}
