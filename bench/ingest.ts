import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Box, startBox } from './box.ts'
import { startNameServer } from './dns.ts'
import { send, type Sending } from './load/smtp-source.ts'
import type { Side } from './measure.ts'
import { senderDomain, senderZone } from './messages.ts'
import type { Haraka } from './peers/haraka.ts'
import type { Postfix } from './peers/postfix.ts'
import { usageOf } from './process-tree.ts'
import { boxDomain, openStore, seedIdentities } from './seed.ts'

/** What every side of one comparison is sent in one round. */
export interface Work {
  message: Sending['message']
  sessions: number
  messages: number
}

/** Messages until most of what a box runs is compiled, and its cost a message changes no more. */
const compiled = 15_000

/** Rounds of this work in which a box is warmed up, before those that count. */
export function coldRounds({ messages }: Pick<Work, 'messages'>): number {
  return Math.min(10, Math.ceil(compiled / messages))
}

/** A box with an identity for every message of every round, and the name server it asks. */
export async function startIngestBox(
  directory: string,
  work: Work,
  rounds: number,
  options: { env?: Record<string, string>; preload?: string } = {},
): Promise<Box> {
  mkdirSync(directory, { recursive: true })
  const store = await openStore(join(directory, 'data'))
  for (let round = 0; round <= rounds; round++) await seedIdentities(store, nameOf(round), work.messages)
  await store.close()
  const server = await startNameServer(directory, senderZone)
  const box = await startBox({ directory: join(directory, 'data'), dns: server.address, ...options })
  return {
    ...box,
    async stop() {
      await box.stop()
      server.stop()
    },
  }
}

/** The box's rounds: every message is parsed, judged, indexed and on disk when its 250 comes. */
export function boxSide(box: Box, work: Work, name = 'box'): Side {
  return {
    name,
    async round(number) {
      const before = usageOf(box.pid)
      const seconds = await send(sending(box.smtp, work, number))
      // checkpoints trail behind
      await pause(500)
      const after = usageOf(box.pid)
      return { 'msg/s': work.messages / seconds, 'µs CPU/msg': (after.cpu - before.cpu) / work.messages, 'MB peak': after.peak }
    },
  }
}

/** Postfix's rounds, timed to the last 250; its CPU is taken when all lies in the maildir, as is the second rate. */
export function postfixSide(postfix: Postfix, work: Work): Side {
  return {
    name: 'Postfix',
    async round(number) {
      const before = usageOf(postfix.pid)
      const began = performance.now()
      const seconds = await send(sending(postfix, work, number))
      await postfix.delivered(work.messages)
      const drained = (performance.now() - began) / 1000
      await pause(500)
      const after = usageOf(postfix.pid)
      postfix.clear()
      return {
        'msg/s': work.messages / seconds,
        'msg/s delivered': work.messages / drained,
        'µs CPU/msg': (after.cpu - before.cpu) / work.messages,
        'MB peak': after.peak,
      }
    },
  }
}

export function harakaSide(haraka: Haraka, work: Work): Side {
  return {
    name: 'Haraka',
    async round(number) {
      const before = usageOf(haraka.pid)
      const seconds = await send(sending(haraka, work, number))
      const after = usageOf(haraka.pid)
      haraka.clear()
      return { 'msg/s': work.messages / seconds, 'µs CPU/msg': (after.cpu - before.cpu) / work.messages, 'MB peak': after.peak }
    },
  }
}

function sending({ host, port }: { host: string; port: number }, work: Work, round: number): Sending {
  return { host, port, ...work, to: `${nameOf(round)}@${boxDomain}`, from: `feedback@${senderDomain}` }
}

/** No identity gets the same message twice: the second would be marked a repeat and not be indexed. */
function nameOf(round: number): string {
  return `r${round}`
}
