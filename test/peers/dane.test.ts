import { createHash, X509Certificate } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { generate } from 'selfsigned'
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
const day = 86_400_000

/** The SHA-256 digest of the public key of a certificate, as the records have it. */
function digestOf(cert: string): string {
  const key = new X509Certificate(cert).publicKey.export({ type: 'spki', format: 'der' })
  return createHash('sha256').update(key).digest('hex')
}

interface Issued {
  /** A chain: the certificate, and those above it. */
  cert: string
  key: string
  issue: (name: string, more?: { ends?: number; ca?: boolean }) => Promise<Issued>
}

/** An authority, which sends its own certificate along; `ends` is from now, in milliseconds. */
async function authority(): Promise<Issued> {
  const issue = async (
    name: string,
    { ends = 365 * day, ca = false }: { ends?: number; ca?: boolean } = {},
    by?: Issued,
  ): Promise<Issued> => {
    const made = await generate([{ name: 'commonName', value: name }], {
      keyType: 'ec',
      curve: 'P-256',
      algorithm: 'sha256',
      notBeforeDate: new Date(Date.now() - 30 * day),
      notAfterDate: new Date(Date.now() + ends),
      ...(by ? { ca: { key: by.key, cert: by.cert } } : {}),
      extensions: [
        { name: 'basicConstraints', cA: ca, critical: true },
        ...(ca ? [] : [{ name: 'subjectAltName' as const, altNames: [{ type: 2 as const, value: name }] }]),
      ],
    })
    const issued: Issued = {
      cert: `${made.cert}\n${by?.cert ?? ''}`,
      key: made.private,
      issue: (other, more) => issue(other, more, issued),
    }
    return issued
  }
  return issue('Authority of a test', { ca: true })
}

async function far({
  vouches = () => true,
  drops,
  wrong = false,
  presents,
  records,
}: {
  vouches?: (type: number) => boolean
  drops?: number
  wrong?: boolean
  presents?: { cert: string; key: string }
  records?: string[]
}) {
  const pair = presents ?? (await certificate(folder(), 'other.test'))
  const sink = await MailSink.start({ tls: pair })
  const digest = wrong ? createHash('sha256').update('another').digest('hex') : digestOf(pair.cert)
  const { server } = await nameServer(knotd!, [
    'far.test. MX 10 mx.far.test.',
    'mx.far.test. A 127.0.0.1',
    ...(records ?? [`3 1 1 ${digest}`]).map((record) => `_${sink.port}._tcp.mx.far.test. TLSA ${record}`),
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

  test('of an authority that the records name, a certificate for the server or for the domain is taken', async () => {
    const root = await authority()
    const between = await root.issue('Between', { ca: true })
    const records = [`2 1 1 ${digestOf(root.cert)}`]
    for (const presents of [await root.issue('mx.far.test'), await root.issue('far.test'), await between.issue('*.far.test')]) {
      const { send, until } = await far({ presents, records })
      expect((await until(await send('bob@far.test'), /delivered|deferred/)).tls).toMatch(/, certificate checked$/)
    }
  })

  test('of an authority that the records name, a certificate for another, an expired one or one by no authority gets no octet', async () => {
    const root = await authority()
    const records = [`2 1 1 ${digestOf(root.cert)}`, `3 1 1 ${digestOf((await authority()).cert)}`]
    const evil = await root.issue('evil.test')
    for (const presents of [
      evil,
      await root.issue('mx.far.test.evil.test'),
      await root.issue('mx.far.test', { ends: -day }),
      await evil.issue('mx.far.test'),
    ]) {
      const { send, until, sink } = await far({ presents, records })
      expect(await until(await send('bob@far.test'), /delivered|deferred/)).toMatchObject({
        status: 'deferred',
        enhanced_code: '4.7.5',
        response: expect.stringMatching(/^TLS failed: /),
      })
      expect(sink.commands.filter((line) => /^(?:MAIL|DATA)/.test(line))).toEqual([])
    }
  })

  test('a certificate that the records themselves name is taken, whatever its name and its dates', async () => {
    const root = await authority()
    const presents = await root.issue('evil.test', { ends: -day })
    const records = [`2 1 1 ${digestOf((await authority()).cert)}`, `3 1 1 ${digestOf(presents.cert)}`]
    const { send, until } = await far({ presents, records })
    expect((await until(await send('bob@far.test'), /delivered|deferred/)).tls).toMatch(/, certificate checked$/)
  })

  test('records of which none can be used ask for TLS, with any certificate', async () => {
    const records = [`1 1 1 ${digestOf((await authority()).cert)}`, `3 1 9 00`]
    const { send, until, sink } = await far({ records })
    expect((await until(await send('bob@far.test'), /delivered|deferred/)).tls).toMatch(/, certificate not checked$/)
    // it does not say who the server is
    const required = await until(await send('bob@far.test', { require_tls: true }), 'bounced')
    expect(required.response).toMatch(/authenticated neither/)
    expect(sink.messages).toHaveLength(1)
    const other = await far({ records })
    other.sink.script = (line) => (line === 'STARTTLS' ? '454 4.7.0 Not now' : undefined)
    expect((await other.until(await other.send('bob@far.test'), /delivered|deferred/)).status).toBe('deferred')
    expect(other.sink.messages).toEqual([])
  })
})
