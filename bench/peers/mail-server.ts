import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { greets } from '../../test/torture/peers/servers.ts'
import { setTimeout as pause } from 'node:timers/promises'
import { send } from '../load/smtp-source.ts'
import { shown, type Sample, type Side, spreadOf } from '../measure.ts'
import { senderDomain } from '../messages.ts'
import { usageOf } from '../process-tree.ts'
import { boxDomain } from '../seed.ts'
import type { Work } from '../ingest.ts'

/** A mail server of somebody else that is sent what the box is sent. */
export interface MailServer {
  name: string
  /** What it does with a message. */
  does: string
  host: string
  port: number
  pid: number
  /** The most connections that it takes at once. */
  sessions?: number
  /** Part of the messages of a round that it is sent: fewer where it is slow. */
  share?: number
  /** Waits until it has delivered this many messages since `clear`; left out where it delivers before its 250, or not at all. */
  delivered?(count: number): Promise<void>
  /** Forgets what it has stored. */
  clear?(): void
  stop(): Promise<void>
  /** The end of what it has written to its standard output and error. */
  said(): string
  /** Why it is sent nothing more: a round went wrong. */
  failure?: string
}

/** Starts each, one after the other; says which cannot be had, and why. */
export async function startThose(starts: Record<string, () => Promise<MailServer>>): Promise<MailServer[]> {
  const servers: MailServer[] = []
  for (const [name, start] of Object.entries(starts)) {
    try {
      servers.push(await start())
    } catch (error) {
      process.stderr.write(`  without ${name}: ${error instanceof Error ? error.message : String(error)}\n`)
    }
  }
  return servers
}

/** What is sent to a server with this share in one round. */
export function shareOf(work: Work, share = 1): Work {
  return { ...work, messages: Math.max(1, Math.round(work.messages * share)) }
}

/** Its rounds, timed to the last 250; its CPU is taken when all is delivered, as is the second rate. After a round that goes wrong there are none. */
export function serverSide(server: MailServer, whole: Work): Side {
  const { name } = server
  const work = shareOf(whole, server.share)
  return {
    name,
    async round() {
      if (server.failure !== undefined) return {}
      try {
        return await sent(server, work)
      } catch (error) {
        server.failure = error instanceof Error ? error.message.trim() : String(error)
        process.stderr.write(`  ${name} is left out: ${server.failure}\n${server.said()}\n`)
        return {}
      }
    },
  }
}

async function sent(server: MailServer, work: Work): Promise<Sample> {
  const { host, port, pid, sessions = Infinity } = server
  const before = usageOf(pid)
  const began = performance.now()
  const to = { to: `box@${boxDomain}`, from: `feedback@${senderDomain}` }
  const seconds = await send({ host, port, ...work, ...to, sessions: Math.min(work.sessions, sessions) })
  await server.delivered?.(work.messages)
  const drained = (performance.now() - began) / 1000
  await pause(500)
  const after = usageOf(pid)
  server.clear?.()
  return {
    'msg/s': work.messages / seconds,
    ...(server.delivered ? { 'msg/s delivered': work.messages / drained } : {}),
    'µs CPU/msg': (after.cpu - before.cpu) / work.messages,
    'MB peak': after.peak,
  }
}

/** A line of figures of each. */
export function serverFigures(servers: MailServer[], samples: Map<string, Sample[]>, work: Work): string[] {
  return servers.map((server) => {
    const { name, does, sessions = Infinity, failure } = server
    if (failure !== undefined) return `${name} (${does}) left out: ${failure}`
    const of = (figure: string): string => shown(spreadOf(samples.get(name), figure))
    const stored = server.delivered ? `, ${of('msg/s delivered')} msg/s until all is delivered` : ''
    const fewer = sessions < work.sessions ? ` over ${sessions} sessions, the most it takes at once` : ''
    return `${name} (${does}) ${of('msg/s')} msg/s accepted${fewer}${stored}, ${of('µs CPU/msg')} µs CPU a message`
  })
}

/**
 * Waits for the greeting of a server that was started; throws with what it said when it ends instead, or does not come within half a minute. Answers how
 * to ask for the end of what it says.
 */
export async function greeting(name: string, child: ChildProcess, at: { host: string; port: number }): Promise<() => string> {
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-10_000)))
  for (let attempt = 0; !(await greets(at)); attempt++) {
    if (attempt === 300 || child.exitCode !== null || child.signalCode !== null) {
      child.kill('SIGKILL')
      throw new Error(`${name} does not start: ${said.trim()}`)
    }
    await pause(100)
  }
  return () => said
}

/** Ends a server that has nobody else to end it, also when the bench is interrupted. */
export function ender(child: ChildProcess, signal: NodeJS.Signals): () => Promise<void> {
  const end = (): void => void child.kill(signal)
  process.once('exit', end)
  return async () => {
    process.off('exit', end)
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    end()
    await ended
  }
}

/** Waits until so many files are there; throws after two minutes. */
export async function waitForFiles(name: string, count: () => number, wanted: number): Promise<void> {
  const end = performance.now() + 120_000
  while (count() < wanted) {
    if (performance.now() > end) throw new Error(`${name} has delivered ${count()} of ${wanted} messages`)
    await pause(50)
  }
}
