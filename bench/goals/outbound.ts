import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { authorized, post } from '../api.ts'
import { type Box, startBox } from '../box.ts'
import { startNameServer } from '../dns.ts'
import { type Bench, finding } from '../finding.ts'
import { send as sendCalls } from '../load/posts.ts'
import { send } from '../load/smtp-source.ts'
import { type SmtpSink, startSmtpSink } from '../load/smtp-sink.ts'
import { inTurn, shown, type Side, spreadOf, warmUp } from '../measure.ts'
import { startPostfix } from '../peers/postfix.ts'
import { usageOf } from '../process-tree.ts'

/** Calls, and SMTP sessions, at a time. */
const together = 20

const text = `${'These are the figures of October, as you asked for them in your letter. '.repeat(4)}\n`.repeat(12)

/** Mail out: the call, composing, two signatures, the queue, and the way to smtp-sink, against Postfix that passes the same on (P15). */
export const outbound: Bench = {
  name: 'outbound',
  goals: ['P15'],
  async run({ directory, rounds, scale }) {
    const messages = Math.round(2000 * scale)
    await using ending = new AsyncDisposableStack()
    const sink = await startSmtpSink()
    ending.defer(() => sink.stop())
    const dns = await startNameServer(directory, { txt: {}, a: { 'relay.test': '127.0.0.1' } })
    ending.defer(() => dns.stop())
    const postfix = await startPostfix(join(directory, 'postfix'), sink.port)
    ending.defer(() => postfix.stop())
    const box = await sendingBox(join(directory, 'data'), dns.address, sink.port)
    ending.defer(() => box.stop())
    const path = `/v1/identities/${(await post<{ id: string }>(box, '/v1/identities', { name: 'Ada' })).id}/emails`
    const before = sink.taken
    const { id } = await post<{ id: string }>(box, path, { to: 'bob@far.test', subject: 'The figures 0', body_text: text })
    await sink.until(before + 1)
    const file = join(directory, 'message.eml')
    const raw = await signed(box, `${path}/${id}`)
    writeFileSync(file, raw.replaceAll('\r\n', '\n'))
    const body = { to: 'bob@far.test', subject: 'The figures [<id>]', body_text: text }
    const calls = (): Promise<void> => sendCalls({ url: box.url + path, connections: together, count: messages, body })
    const relay = { host: '127.0.0.1', port: postfix.port, sessions: together, messages }
    const letters = (): Promise<unknown> => send({ ...relay, to: 'bob@far.test', from: 'ada@pillarbox.test', message: { file } })
    const sides = [side('box', box.pid, sink, messages, calls), side('Postfix', postfix.pid, sink, messages, letters)]
    await warmUp(sides[0]!, 2)
    const samples = await inTurn(sides, rounds)
    const of = (name: string, figure: string) => spreadOf(samples.get(name), figure)
    const said = (name: string): string => `${shown(of(name, 'msg/s'))} msg/s, ${shown(of(name, 'µs CPU/msg'))} µs CPU a message`
    return [
      finding({
        goal: 'P15',
        what: `Mail out: call, compose, sign (RSA and Ed25519), queue on disk, deliver; ${raw.length.toLocaleString('en')} octets, ${together} at a time`,
        against: 'Postfix relaying the same signed message to the same smtp-sink',
        value: of('box', 'msg/s').median / of('Postfix', 'msg/s').median,
        least: 1.2,
        figures: [`box ${said('box')}`, `Postfix ${said('Postfix')}, composing and signing nothing`],
      }),
    ]
  },
}

/** A box whose domain counts as verified, and whose mail leaves through a relay at this port. */
export async function sendingBox(directory: string, dns: string, port: number): Promise<Box> {
  const env = {
    PILLARBOX_OUTBOUND__MODE: 'relay',
    PILLARBOX_OUTBOUND__RELAY__HOST: 'relay.test',
    PILLARBOX_OUTBOUND__RELAY__PORT: String(port),
    PILLARBOX_OUTBOUND__RELAY__TLS: 'none',
    PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '127.0.0.0/8',
    PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '0',
    PILLARBOX_OUTBOUND__RATE_PER_DOMAIN: '0',
  }
  await (await startBox({ directory, dns, env })).stop()
  const database = new DatabaseSync(join(directory, 'pillarbox.db'))
  database.exec(`UPDATE domains SET status = 'verified', verified_at = created_at`)
  database.close()
  return startBox({ directory, dns, env })
}

/** The message as it leaves; throws when it does not bear both signatures. */
async function signed(box: Box, path: string): Promise<string> {
  const raw = await (await fetch(`${box.url}${path}/raw`, { headers: authorized })).text()
  if (raw.match(/^DKIM-Signature:/gm)?.length !== 2) throw new Error('The message is not signed twice.')
  return raw
}

function side(name: string, pid: number, sink: SmtpSink, messages: number, begin: () => Promise<unknown>): Side {
  return {
    name,
    async round() {
      const [before, taken] = [usageOf(pid), sink.taken]
      const began = performance.now()
      const [last] = await Promise.all([sink.until(taken + messages), begin()])
      // the last outcomes are written down
      await pause(1000)
      if (sink.taken !== taken + messages) throw new Error(`${sink.taken - taken} messages of ${name} came of ${messages}`)
      return { 'msg/s': (messages / (last - began)) * 1000, 'µs CPU/msg': (usageOf(pid).cpu - before.cpu) / messages }
    },
  }
}
