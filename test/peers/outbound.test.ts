import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'
import type { Pair } from '../../src/certificates/pair.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox, type SendingBox } from '../support/outgoing.ts'
import { absent, peer } from '../support/peer.ts'
import { PolicyHost } from '../support/policy-host.ts'
import { nameServer, text } from './dns.ts'
import { Postfix } from './postfix.ts'

const master = peer('master', 'apt-get install postfix')
const knotd = peer('knotd', 'apt-get install knot')
const isRoot = process.getuid?.() === 0
if (!isRoot) absent('postfix', 'Postfix starts only as root')
const possible =
  isRoot && master !== undefined && knotd !== undefined && peer('setpriv', 'apt-get install util-linux') !== undefined

const before = getCACertificates('default')
const directory = mkdtempSync(join(tmpdir(), 'pillarbox-outbound-'))
let trusted: Pair
let strange: Pair
let host: Pair

beforeAll(async () => {
  trusted = await certificate(join(directory, 'mx'), 'mx.far.test')
  strange = await certificate(join(directory, 'strange'), 'mx.far.test')
  host = await certificate(join(directory, 'host'), 'mta-sts.far.test')
  setDefaultCACertificates([...before, trusted.cert, host.cert])
})
afterAll(() => {
  setDefaultCACertificates(before)
  rmSync(directory, { recursive: true })
})

/** A Postfix that keeps mail for bob@far.test, found by a true name server and with a policy in force, and a box that delivers to it. */
async function postfixOf(tls: Pair): Promise<SendingBox & { postfix: Postfix; policyHost: PolicyHost }> {
  const free = await MailSink.start()
  const { port } = free
  await free.stop()
  const receiving = { port, domain: 'far.test', addresses: ['bob@far.test', 'eve@far.test'], tls }
  const postfix = await Postfix.start(master!, { host: '127.0.0.1', port: 1 }, { receiving })
  const policyHost = await PolicyHost.start(host, { mode: 'enforce', mx: '*.far.test' })
  const { server } = await nameServer(knotd!, [
    'far.test. MX 10 mx.far.test.',
    'mx.far.test. A 127.0.0.1',
    'mta-sts.far.test. A 127.0.0.1',
    `_mta-sts.far.test. ${text('v=STSv1; id=20261120;')}`,
    'null.test. MX 0 .',
    'null.test. A 127.0.0.1',
  ])
  const sending = await sendingBox(port, { PILLARBOX_DNS__SERVERS: server }, { testing: { outsideDial: policyHost.dial } })
  return { ...sending, postfix, policyHost }
}

describe.runIf(possible)('a Postfix of somebody else', { timeout: 60_000 }, () => {
  test('takes our mail over STARTTLS with a certificate that its policy asks for, every octet of it', async () => {
    const { box, ada, postfix, policyHost, send, until } = await postfixOf(trusted)
    const bodies: [string, string][] = [
      ['plain', 'Hello\n'],
      ['dotted', '.\n..\n. a\n\n.\n'],
      ['eight bit', 'Grüße aus 東京\n'],
      ['long', `${randomBytes(54).toString('base64')}\n`.repeat(40_000)],
    ]
    for (const [index, [name, body]] of bodies.entries()) {
      const id = await send('bob@far.test', { text: body, fields: { Subject: name } })
      const delivery = await until(id, 'delivered')
      expect(delivery).toMatchObject({ smtp_code: 250, enhanced_code: '2.0.0', mx: 'mx.far.test' })
      expect(delivery.response).toMatch(/^Ok: queued as \w+$/)
      expect(delivery.tls).toMatch(/^TLSv1\.3 TLS_\S+, certificate checked$/)
      const kept = await vi.waitFor(() => {
        const list = postfix.kept('bob@far.test')
        expect(list).toHaveLength(index + 1)
        return list.find((one) => one.includes(`Subject: ${name}\n`))!.toString('utf8')
      }, 20_000)
      const source = await box.call<string>('GET', `/v1/identities/${ada}/emails/${id}/raw`)
      // what Postfix put before is its own; the rest is what we keep
      expect([name, kept.slice(kept.indexOf('X-Signed:')) === source.body.replaceAll('\r\n', '\n')]).toEqual([name, true])
      expect(kept).toMatch(/^Return-Path: <bounce\+[a-z2-7]{29}@pillarbox\.test>\n/)
      expect(kept).toMatch(/Received: from pillarbox\.test \(.*\[127\.0\.0\.1\]\)\n\t\(using TLSv1\.3 with cipher/)
    }
    expect(policyHost.asked).toHaveLength(1)
    // one connection for all
    expect(postfix.log.match(/TLS connection established from/g)).toHaveLength(1)
    expect(postfix.log).not.toMatch(/(?:warning|fatal|panic): /)
  })

  test('says for each recipient what it thinks, and we understand', async () => {
    const { send, until, box, postfix } = await postfixOf(trusted)
    const id = await send(['bob@far.test', 'nobody@far.test', 'eve@far.test', 'anybody@null.test'])
    await until(id, 'delivered', 'bob@far.test')
    await until(id, 'delivered', 'eve@far.test')
    expect(await until(id, 'bounced', 'nobody@far.test')).toMatchObject({ smtp_code: 550, enhanced_code: '5.1.1' })
    expect(await until(id, 'bounced', 'anybody@null.test')).toMatchObject({ smtp_code: null, enhanced_code: '5.1.10' })
    const { body } = await box.call('GET', '/v1/suppressions')
    expect(body.data).toMatchObject([{ email: 'nobody@far.test', source: 'bounce', email_id: id }])
    const huge = await send('bob@far.test', { text: `${'x'.repeat(76)}\n`.repeat(290_000) })
    expect(await until(huge, 'bounced')).toMatchObject({ enhanced_code: '5.3.4' })
    expect(postfix.log).not.toMatch(/(?:fatal|panic): /)
  })

  test('gets not even a sender when its certificate is not the one', async () => {
    const { send, until, postfix } = await postfixOf(strange)
    expect(await until(await send('bob@far.test'), 'deferred')).toMatchObject({ enhanced_code: '4.7.5' })
    await postfix.logged(/disconnect from/)
    expect(postfix.log).not.toMatch(/client=|mail=1/)
  })
})
