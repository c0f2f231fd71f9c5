import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { benchKey, type Box } from '../box.ts'
import { type Bench, finding, type Finding } from '../finding.ts'
import { startIngestBox } from '../ingest.ts'
import { call } from '../load/calls.ts'
import { send } from '../load/smtp-source.ts'
import { figure, inTurn, type Sample, shown, type Side, spreadOf, warmUp } from '../measure.ts'
import { senderDomain } from '../messages.ts'
import { startBareKoa } from '../peers/koa.ts'
import { usageOf } from '../process-tree.ts'
import { boxDomain } from '../seed.ts'

interface Question {
  goal: 'P9' | 'P10'
  what: string
  path: string
  least: number
}

export const connections = 64

/** Rounds in which a box is warmed up before those that count. */
export const warmUpRounds = 3

/** Calls that read, over 64 connections, against the bare libraries: P9 and P10. */
export const calls: Bench = {
  name: 'calls',
  goals: ['P9', 'P10'],
  async run({ directory, rounds, scale }) {
    const box = await startIngestBox(join(directory, 'box'), { message: { size: 0 }, sessions: 1, messages: 1 }, 0)
    try {
      const id = await mailbox(box, 25)
      const questions: Question[] = [
        { goal: 'P9', what: 'List 20 e-mails', path: `/v1/identities/${id}/emails?limit=20`, least: 0.5 },
        { goal: 'P10', what: 'Get one identity', path: `/v1/identities/${id}`, least: 0.8 },
      ]
      const answers: Record<string, string> = {}
      for (const { path } of questions) answers[path] = await ask(box.url + path)
      const koa = await startBareKoa(directory, answers)
      try {
        const findings: Finding[] = []
        for (const question of questions) {
          const seconds = Math.max(1, Math.round(5 * scale))
          const sides = [side('box', box, question, seconds), side('bare Koa', koa, question, seconds)]
          const cold = await warmUp(sides[0]!, warmUpRounds)
          findings.push(...judge(question, cold, await inTurn(sides, rounds)))
        }
        return findings
      } finally {
        koa.stop()
      }
    } finally {
      await box.stop()
    }
  },
}

/** An identity with this much plain mail; answers its id. */
export async function mailbox(box: Box, messages: number): Promise<string> {
  const { data } = JSON.parse(await ask(`${box.url}/v1/identities`)) as { data: { id: string }[] }
  for (let number = 1; number <= messages; number++) {
    const message = { sessions: 1, messages: 1, message: { size: 2048 }, to: `r0@${boxDomain}`, from: `feedback@${senderDomain}` }
    await send({ ...box.smtp, ...message })
  }
  await pause(500)
  return data[0]!.id
}

/** The answer to one call. */
export async function ask(url: string, body?: string, more: Record<string, string> = {}): Promise<string> {
  const headers = { Authorization: `Bearer ${benchKey}`, 'Content-Type': 'application/json', ...more }
  const response = await fetch(url, body === undefined ? { headers } : { method: 'POST', headers, body })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  return response.text()
}

/** Calls over 64 connections for some seconds. */
export function side(
  name: string,
  server: { url: string; pid: number },
  { path, body }: { path: string; body?: string },
  seconds: number,
): Side {
  return {
    name,
    async round() {
      const before = usageOf(server.pid)
      const { perSecond, p99, total } = await call({
        url: server.url + path,
        connections,
        seconds,
        ...(body === undefined ? {} : { body }),
      })
      const cpu = usageOf(server.pid).cpu - before.cpu
      return { 'calls/s': perSecond, 'ms p99': p99, 'µs CPU/call': cpu / total }
    },
  }
}

function judge({ goal, what, least }: Question, cold: Sample, samples: Map<string, Sample[]>): Finding[] {
  const of = (name: string, field: string) => spreadOf(samples.get(name), field)
  const [ours, bare] = [of('box', 'calls/s'), of('bare Koa', 'calls/s')]
  const [oursP99, bareP99] = [of('box', 'ms p99'), of('bare Koa', 'ms p99')]
  const cpu = (name: string) => shown(of(name, 'µs CPU/call'))
  const against = 'bare Koa and router, the same bytes by one statement'
  const rate = finding({
    goal,
    what: `${what}, ${connections} connections`,
    against,
    value: ours.median / bare.median,
    least,
    figures: [
      `box ${shown(ours)} calls/s, ${cpu('box')} µs CPU a call, ${figure(cold['µs CPU/call']!)} in the first round after its start`,
      `bare ${shown(bare)} calls/s, ${cpu('bare Koa')} µs CPU a call`,
    ],
  })
  if (goal !== 'P9') return [rate]
  const late = finding({
    goal,
    what: `${what}, p99`,
    against,
    value: oursP99.median / bareP99.median,
    most: 2,
    figures: [`box ${shown(oursP99)} ms`, `bare ${shown(bareP99)} ms`],
  })
  return [rate, late]
}
