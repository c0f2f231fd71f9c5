import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { expect, vi } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { parse } from '../../src/message/parse.ts'
import type { Report } from '../../src/message/reports/reported.ts'
import type { TransportTest } from '../../src/outbound/transport/outbound-transport.ts'
import { deliver, message } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { type Landed, MailSink } from '../support/mail-sink.ts'
import { sendingBox, type SendingBox } from '../support/outgoing.ts'
import { peer } from '../support/peer.ts'

export const hour = 3_600_000

/** A box that may send, with a clock that is held at 10:05 on 20 November 2026, and the server at which all its mail arrives. */
export interface Reporting extends SendingBox {
  clock: HeldClock
  sink: MailSink
  /** Does what is done at times. */
  job: (name: string) => Promise<void>
  /** What a query finds in the file. */
  rows: <Row = Record<string, unknown>>(query: string) => Row[]
  /** Takes up other settings, as at SIGHUP. */
  reload: (env: Record<string, string>) => Promise<void>
  /** Delivers a message to Ada from this author and envelope sender; answers the reply. */
  receive: (author: string, sender?: string, raw?: string | Buffer) => Promise<string>
  /** Moves to 05:00 of the next day, when all reports of a day are due, and sends them. */
  nextDay: () => Promise<void>
  /** Waits until so many messages have arrived in all. */
  arrived: (count: number) => Promise<Landed[]>
}

let serial = 0

export async function reporting(
  env: Record<string, string>,
  options: { testing?: TransportTest; sink?: Parameters<typeof MailSink.start>[0] } = {},
): Promise<Reporting> {
  const clock = new HeldClock()
  const sink = await MailSink.start(options.sink)
  const sending = await sendingBox(sink.port, env, { clock, testing: options.testing ?? {} })
  const { box } = sending
  const job = async (name: string): Promise<void> => {
    const found = box.app.jobs.find((one) => one.name === name)
    if (!found) throw new Error(`There is no job ${name}.`)
    await found.run()
  }
  const { body } = await box.call('GET', '/v1/identities?limit=1')
  const ada = body.data[0].email as string
  return {
    ...sending,
    clock,
    sink,
    job,
    rows: <Row>(query: string) => {
      const database = new DatabaseSync(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true, timeout: 60_000 })
      try {
        return database.prepare(query).all() as Row[]
      } finally {
        database.close()
      }
    },
    reload: async (more) => {
      await box.app.reload(await loadConfig({ env: { ...box.env, ...more }, cwd: box.directory }))
    },
    receive: (author, sender = author, raw) => deliver(box.smtp, { from: sender, to: ada, raw: raw ?? plain(author, ada) }),
    nextDay: async () => {
      await job('write-report-results')
      clock.advance(19 * hour)
      await job('send-reports')
    },
    arrived: (count) =>
      vi.waitFor(() => {
        expect(sink.messages).toHaveLength(count)
        return sink.messages
      }, 10_000),
  }
}

/** A message of which there is no other. */
export function plain(author: string, to: string): string {
  return message({ From: author, To: to, Subject: 'Hello', 'Message-ID': `<${++serial}@sender.test>` }, 'Hello\n')
}

/** A domain that asks for reports, whose mail comes from 127.0.0.1, and whose own mail goes there. */
export function publishDomain({ box: { dns } }: SendingBox, name: string, record: string): void {
  dns.txt(`_dmarc.${name}`, record).txt(name, 'v=spf1 ip4:127.0.0.1 -all').mx(name, `mx.${name}`).a(`mx.${name}`, '127.0.0.1')
}

/** The report in a message, as our own reader of reports sees it, its file's name, and its text unpacked. */
export async function reportIn({ octets }: Landed): Promise<{ report: Report | null; filename: string; text: string }> {
  const { report, attachments } = await parse(octets)
  const [, base64 = ''] = /\r\n\r\n(H4sI[A-Za-z0-9+/=\r\n]+)\r\n--/.exec(octets.toString('latin1')) ?? []
  return { report, filename: attachments[0]?.filename ?? '', text: gunzipSync(Buffer.from(base64, 'base64')).toString('utf8') }
}

/** Has libxml2 hold an aggregate report against the schema of RFC 9990. */
export function expectValid(xml: string): void {
  const xmllint = peer('xmllint', 'apt-get install libxml2-utils')
  if (xmllint === undefined) return
  const schema = fileURLToPath(new URL('dmarc-2.0.xsd', import.meta.url))
  execFileSync(xmllint, ['--noout', '--nonet', '--schema', schema, '-'], { input: xml, stdio: ['pipe', 'pipe', 'pipe'] })
}
