import { createHash, X509Certificate } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { describe, expect, onTestFinished, test } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'
import { folder } from '../support/folder.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'
import { peer } from '../support/peer.ts'
import { rows } from '../support/sent.ts'
import { nameServer } from './dns.ts'

const knotd = peer('knotd', 'apt-get install knot')
const possible = knotd !== undefined && peer('setpriv', 'apt-get install util-linux') !== undefined

/**
 * Stands before a name server in place of a resolver that validates: says that it vouches for every answer, or for those only that match.
 * What is here is that its word is heeded; whether it may be believed is the resolver's matter.
 */
async function vouching(server: string, vouches: (type: number) => boolean, drops?: number): Promise<string> {
  const [host = '', port] = server.split(':')
  const front = createSocket('udp4')
  front.on('message', (query, from) => {
    const type = query.readUInt16BE(query.indexOf(0, 12) + 1)
    if (type === drops) return
    const back = createSocket('udp4')
    back.on('message', (answer) => {
      answer[3] = vouches(type) ? answer[3]! | 0x20 : answer[3]! & ~0x20
      front.send(answer, from.port, from.address)
      back.close()
    })
    back.send(query, Number(port), host)
  })
  front.bind(0, '127.0.0.1')
  await once(front, 'listening')
  onTestFinished(() => void front.close())
  return `127.0.0.1:${front.address().port}`
}

const tlsa = 52

async function far({
  vouches = () => true,
  drops,
  wrong = false,
}: {
  vouches?: (type: number) => boolean
  drops?: number
  wrong?: boolean
}) {
  const pair = await certificate(folder(), 'other.test')
  const sink = await MailSink.start({ tls: pair })
  const key = new X509Certificate(pair.cert).publicKey.export({ type: 'spki', format: 'der' })
  const digest = createHash('sha256')
    .update(wrong ? 'another' : key)
    .digest('hex')
  const { server } = await nameServer(knotd!, [
    'far.test. MX 10 mx.far.test.',
    'mx.far.test. A 127.0.0.1',
    `_${sink.port}._tcp.mx.far.test. TLSA 3 1 1 ${digest}`,
  ])
  const settings = {
    PILLARBOX_DNS__SERVERS: await vouching(server, vouches, drops),
    PILLARBOX_DNS__TIMEOUT: '2 s',
    PILLARBOX_OUTBOUND__DANE: 'true',
    PILLARBOX_REPORTS__TLS: 'true',
  }
  const sending = await sendingBox(sink.port, settings)
  /** The results that a report would tell (RFC 8460 4.4). */
  const reported = async (): Promise<unknown[]> => {
    await sending.box.app.jobs.find(({ name }) => name === 'write-report-results')!.run()
    return rows<{ record: string }>(sending.box, 'SELECT record FROM outbound_report_counts').map(({ record }) =>
      JSON.parse(record),
    )
  }
  const policy = { type: 'tlsa', domain: 'mx.far.test', strings: [`3 1 1 ${digest}`], mx_hosts: ['mx.far.test'] }
  return { sink, reported, policy, ...sending }
}

describe.runIf(possible)('DANE', { timeout: 60_000 }, () => {
  test('the certificate that the records name is taken, though no authority signed it', async () => {
    const { send, until, reported, policy } = await far({})
    expect((await until(await send('bob@far.test'), 'delivered')).tls).toMatch(/, certificate checked$/)
    expect(await reported()).toEqual([{ policy, failure: null }])
  })

  test('another certificate, or none, gets no octet of the message', async () => {
    const { send, until, sink, reported, policy } = await far({ wrong: true })
    expect(await until(await send('bob@far.test'), 'deferred')).toMatchObject({
      enhanced_code: '4.7.5',
      response: expect.stringMatching(/^TLS failed: DANE verification failed/),
    })
    expect(await reported()).toEqual([{ policy, failure: expect.objectContaining({ type: 'validation-failure' }) }])
    sink.script = (line) => (line === 'STARTTLS' ? '454 4.7.0 Not now' : undefined)
    await until(await send('eve@far.test'), 'deferred')
    expect(await reported()).toContainEqual({ policy, failure: expect.objectContaining({ type: 'starttls-not-supported' }) })
    expect(sink.commands.filter((line) => /^(?:MAIL|DATA)/.test(line))).toEqual([])
  })

  test('records that nobody vouches for mean nothing', async () => {
    for (const unvouched of [[tlsa], [15], [1]]) {
      const { send, until } = await far({ wrong: true, vouches: (type) => !unvouched.includes(type) })
      expect((await until(await send('bob@far.test'), 'delivered')).tls).toMatch(/, certificate not checked$/)
    }
  })

  test('where the records cannot be asked for, mail waits: who keeps the answer away gains nothing', async () => {
    const { send, until, sink } = await far({ drops: tlsa })
    await until(await send('bob@far.test'), 'deferred')
    expect(sink.connections).toBe(0)
  })
})
