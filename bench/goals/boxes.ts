import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { post, realtime } from '../api.ts'
import type { Box } from '../box.ts'
import { startNameServer } from '../dns.ts'
import { type Bench, finding, type Finding } from '../finding.ts'
import { boxSide, startIngestBox, type Work } from '../ingest.ts'
import type { Paced } from '../load/pace.ts'
import { send } from '../load/smtp-source.ts'
import { figure, inTurn, quantile, type Sample, shown, type Side, spreadOf } from '../measure.ts'
import { senderDomain, senderZone } from '../messages.ts'
import { usageOf } from '../process-tree.ts'
import { startProgram } from '../program.ts'
import { boxDomain } from '../seed.ts'
import { type Server, startPostgresBoxes, startServer } from '../several.ts'

const perSecond = 200
const mailboxes = 200

/** Several boxes on one PostgreSQL, one on it, and one on SQLite: how much mail they take, when others hear of it, and what they do without any. */
export const boxes: Bench = {
  name: 'boxes',
  goals: ['#19'],
  async run({ directory, rounds, scale }) {
    const work = { message: { size: 4096 }, sessions: 50, messages: Math.round(2000 * scale) }
    const half = { ...work, sessions: 25, messages: Math.round(work.messages / 2) }
    await using ending = new AsyncDisposableStack()
    const server = await startServer()
    ending.defer(() => server.close())
    const dns = await startNameServer(directory, senderZone)
    ending.defer(() => dns.stop())
    const env = { PILLARBOX_REALTIME__MAX_SOCKETS_PER_KEY: '10000' }
    const seeded = (parts: string[]): string[] =>
      Array.from({ length: rounds + 1 }, (_, round) => parts.map((part) => `${part}${round}`)).flat()
    const common = { server, dns: dns.address, env }
    const sqlite = await startIngestBox(join(directory, 'sqlite'), work, rounds)
    ending.defer(() => sqlite.stop())
    const alone = { ...common, database: 'alone', boxes: 1, names: seeded(['r']), identities: work.messages }
    const [one] = (await startPostgresBoxes({ ...alone, directory: join(directory, 'alone') })) as [Box]
    ending.defer(() => one.stop())
    const shared = { ...common, database: 'several', boxes: 2, names: seeded(['r', 's']), identities: half.messages }
    const [first, second] = (await startPostgresBoxes({ ...shared, directory: join(directory, 'several') })) as [Box, Box]
    ending.defer(async () => void (await Promise.all([first.stop(), second.stop()])))
    const idle = await idleCost({ several: [first, second], alone: one, sqlite }, server, Math.max(10, 60 * scale))
    const taking = [
      boxSide(sqlite, work, 'SQLite'),
      onServer(boxSide(one, work, 'one box'), server, 'alone', work.messages),
      onServer(twoBoxes([first, second], half), server, 'several', 2 * half.messages),
    ]
    const taken = ingest(await inTurn(taking, rounds))
    return [taken, await hearing(first, second, rounds, Math.round(perSecond * 10 * scale)), idle]
  },
}

/** Half of the mail to each of two boxes, at the same time. */
function twoBoxes(pair: readonly [Box, Box], half: Work): Side {
  return {
    name: 'two boxes',
    async round(number) {
      const before = pair.map(({ pid }) => usageOf(pid).cpu)
      const began = performance.now()
      await Promise.all(
        pair.map(({ smtp }, index) => {
          const to = `${index === 0 ? 'r' : 's'}${number}@${boxDomain}`
          return send({ host: smtp.host, port: smtp.port, ...half, to, from: `feedback@${senderDomain}` })
        }),
      )
      const seconds = (performance.now() - began) / 1000
      await pause(500)
      const cpu = pair.reduce((sum, { pid }, index) => sum + usageOf(pid).cpu - before[index]!, 0)
      return { 'msg/s': (2 * half.messages) / seconds, 'µs CPU/msg': cpu / (2 * half.messages) }
    },
  }
}

/** With what the server used for it, the transactions that ran again, and how many of its sessions waited for a lock. */
function onServer(side: Side, server: Server, database: string, messages: number): Side {
  const rolledBack = async (): Promise<number> => {
    const query = `SELECT xact_rollback::int AS n FROM pg_stat_database WHERE datname = '${database}'`
    return (await server.run('postgres', query))[0]!['n'] as number
  }
  return {
    name: side.name,
    async round(number) {
      const [again, cpu] = [await rolledBack(), usageOf(server.pid).cpu]
      const ended = new AbortController()
      const waits = lockWaits(server, database, ended.signal)
      const sample = await side.round(number)
      ended.abort()
      const waiting = await waits
      return {
        ...sample,
        'µs CPU/msg of the server': (usageOf(server.pid).cpu - cpu) / messages,
        'sessions waiting for a lock': waiting,
        'rolled back/1,000 msg': ((await rolledBack()) - again) / (messages / 1000),
      }
    },
  }
}

/** The mean number of sessions that wait for a lock, looked at each 50 ms. */
async function lockWaits(server: Server, database: string, signal: AbortSignal): Promise<number> {
  const query = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = '${database}' AND wait_event_type = 'Lock'`
  let [looks, waiting] = [0, 0]
  while (!signal.aborted) {
    waiting += (await server.run('postgres', query))[0]!['n'] as number
    looks += 1
    await pause(50)
  }
  return waiting / looks
}

function ingest(samples: Map<string, Sample[]>): Finding {
  const of = (side: string, name: string) => spreadOf(samples.get(side), name)
  const said = (side: string): string =>
    `${side}: ${shown(of(side, 'msg/s'))} msg/s, ${shown(of(side, 'µs CPU/msg'))} µs CPU a message, ${shown(of(side, 'µs CPU/msg of the server'))} of the server, ` +
    `${shown(of(side, 'sessions waiting for a lock'))} sessions waiting for a lock, ${shown(of(side, 'rolled back/1,000 msg'))} transactions rolled back a thousand messages`
  return finding({
    goal: '#19',
    what: 'Durable ingest of one box on PostgreSQL, 4 KB plain, 50 sessions',
    against: 'the same box on SQLite',
    value: of('one box', 'msg/s').median / of('SQLite', 'msg/s').median,
    least: 0.5,
    figures: [
      `SQLite: ${shown(of('SQLite', 'msg/s'))} msg/s, ${shown(of('SQLite', 'µs CPU/msg'))} µs CPU a message`,
      said('one box'),
      said('two boxes'),
    ],
  })
}

/** Mail at a fixed rate to one box, whose events are heard at the other: from the 250 to the frame. */
async function hearing(taker: Box, teller: Box, rounds: number, count: number): Promise<Finding> {
  const [listeners, mail] = [startProgram('load/listeners.ts'), startProgram('load/paced-mail.ts')]
  try {
    const numbers = Array.from({ length: mailboxes }, (_, index) => `${index + 1}heard`)
    const made = await Promise.all(
      numbers.map((name) => post<{ id: string }>(taker, '/v1/identities', { name, email_username: name })),
    )
    const frames = made.map(({ id }) => JSON.stringify({ type: 'subscribe', channel: 'email_messages', identity_id: id }))
    await listeners.ask('join', { ...(await realtime(teller)), frames })
    const side: Side = {
      name: 'two boxes',
      async round(round) {
        await listeners.ask('reset', { pattern: '"subject":"paced (\\d+)"' })
        const to = { from: `feedback@${senderDomain}`, to: `heard@${boxDomain}`, recipients: mailboxes, size: 2048 }
        const sent = await mail.ask<Paced[]>('send', { ...taker.smtp, ...to, perSecond, count, first: round * count })
        await listeners.ask('until', count)
        const { times } = await listeners.ask<{ times: [string, number][] }>('told')
        const came = new Map(times.map(([number, at]) => [Number(number), at]))
        const after = sent.map(({ number, answered }) => came.get(number)! - answered)
        return { 'ms p50': quantile(after, 0.5), 'ms p99': quantile(after, 0.99) }
      },
    }
    const samples = (await inTurn([side], rounds)).get(side.name)
    const late = spreadOf(samples, 'ms p99')
    return finding({
      goal: '#19',
      what: `250 of one box to the frame on a socket of the other at ${perSecond} msg/s, p99`,
      against: '–',
      value: late.median,
      most: 50,
      unit: 'ms',
      figures: [
        `p50 ${shown(spreadOf(samples, 'ms p50'))} ms, p99 ${shown(late)} ms; ${mailboxes} mailboxes, each with its socket`,
      ],
    })
  } finally {
    listeners.stop()
    mail.stop()
  }
}

/** Percent of a core that boxes use while nothing happens: what several look for takes, beyond what one box does. */
async function idleCost(
  { several, alone, sqlite }: { several: readonly [Box, Box]; alone: Box; sqlite: Box },
  server: Server,
  seconds: number,
): Promise<Finding> {
  // what follows a start has ended
  await pause(Math.min(20_000, seconds * 500))
  const processes = { several: several[1].pid, other: several[0].pid, alone: alone.pid, sqlite: sqlite.pid, server: server.pid }
  const cpu = (): Record<string, number> =>
    Object.fromEntries(Object.entries(processes).map(([name, pid]) => [name, usageOf(pid).cpu]))
  const [before, began] = [cpu(), performance.now()]
  await pause(seconds * 1000)
  const [after, lasted] = [cpu(), performance.now() - began]
  const percent = (name: string): number => (after[name]! - before[name]!) / lasted / 10
  return finding({
    goal: '#19',
    what: 'Idle cost of polling, of one of two boxes',
    against: 'one box alone on PostgreSQL, idle',
    value: Math.max(0, (percent('several') + percent('other')) / 2 - percent('alone')),
    most: 1,
    unit: '% of a core',
    figures: [
      `two boxes ${figure(percent('several'))} and ${figure(percent('other'))} %, one alone ${figure(percent('alone'))} %, one on SQLite ${figure(percent('sqlite'))} %`,
      `the server, of all three ${figure(percent('server'))} %`,
    ],
  })
}
