import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { post } from '../api.ts'
import { startNameServer } from '../dns.ts'
import type { Finding } from '../finding.ts'
import { sendingBox } from '../goals/outbound.ts'
import { boxSide, startIngestBox } from '../ingest.ts'
import { startSmtpSink } from '../load/smtp-sink.ts'
import { figure } from '../measure.ts'
import { attachmentMail } from '../messages.ts'
import { usageOf } from '../process-tree.ts'
import { costOf, each, told } from './cost.ts'

/** Octets of the attachment: in base64 just below the limit of 25 MiB. */
const octets = 18_200_000

/** Messages of 25 MB: in by SMTP, and out by a call of the API, through a relay. */
export async function largeMessages(directory: string, scale: number): Promise<Finding[]> {
  return [
    await received(directory, Math.max(2, Math.round(12 * scale))),
    await sent(directory, Math.max(1, Math.round(6 * scale))),
  ]
}

/** Two at a time: as many as are always admitted. */
async function received(directory: string, messages: number): Promise<Finding> {
  const { file, size } = await attachmentMail(directory, octets)
  const work = { message: { file }, sessions: 2, messages }
  const box = await startIngestBox(join(directory, 'in'), work, 0)
  try {
    const { resident } = usageOf(box.pid)
    const sample = await boxSide(box, work).round(0)
    return told(
      'P28',
      `Messages of ${megabytes(size)} MB in by SMTP, signature verified, 2 at a time: peak memory`,
      sample['MB peak']!,
      'MB',
      [
        `${messages} messages, ${figure(1000 / sample['msg/s']!)} ms and ${figure(sample['µs CPU/msg']! / 1000)} ms CPU each`,
        `resident before ${resident.toFixed(0)} MB`,
      ],
    )
  } finally {
    await box.stop()
  }
}

async function sent(directory: string, messages: number): Promise<Finding> {
  await using ending = new AsyncDisposableStack()
  const sink = await startSmtpSink()
  ending.defer(() => sink.stop())
  const dns = await startNameServer(directory, { txt: {}, a: { 'relay.test': '127.0.0.1' } })
  ending.defer(() => dns.stop())
  const box = await sendingBox(join(directory, 'out'), dns.address, sink.port)
  ending.defer(() => box.stop())
  const path = `/v1/identities/${(await post<{ id: string }>(box, '/v1/identities', { name: 'Ada' })).id}/emails`
  const content = randomBytes(octets).toString('base64')
  const body = {
    to: 'bob@far.test',
    subject: 'A film',
    body_text: 'It is attached.',
    attachments: [{ filename: 'film.bin', content }],
  }
  const { resident } = usageOf(box.pid)
  let answered = 0
  const cost = await costOf(box, async () => {
    for (let number = 1; number <= messages; number++) {
      const began = performance.now()
      await post(box, path, body)
      answered += performance.now() - began
      await sink.until(number)
    }
  })
  const what = `Messages of ${megabytes(content.length)} MB out by the API, one after the other: peak memory`
  return told('P28', what, usageOf(box.pid).peak, 'MB', [
    `${messages} messages, ${each(cost, messages)} each until the relay has it, the call ${figure(answered / messages)} ms of it`,
    `resident before ${resident.toFixed(0)} MB`,
  ])
}

function megabytes(size: number): string {
  return (size / 1e6).toFixed(1)
}
