import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { shownAt } from '../../certificates/shown.ts'
import { asking, pebble } from '../../peers/pebble.ts'
import type { Appliance } from '../../support/appliance.ts'
import { DnsStub } from '../../support/dns-stub.ts'
import { folder } from '../../support/folder.ts'
import { freePort } from '../../support/free-port.ts'
import { peer } from '../../support/peer.ts'
import { severalBoxes } from './boxes.ts'
import { serverOfFile } from './server.ts'

const postgres = serverOfFile()
const program = peer('pebble')
const api = 'box.example.test'

interface Listed {
  source: string
  issuer: string | null
  fingerprint: string | null
  problem: string | null
}

/** The certificate by ACME, as a box lists it. */
async function obtained(box: Appliance): Promise<Listed> {
  const { body } = await box.call<{ data: Listed[] }>('GET', '/v1/certificates')
  return body.data.find(({ source }) => source === 'acme')!
}

const shownBy = (box: Appliance, ca: string): Promise<string> =>
  shownAt(box.app.httpAddresses.tls!.port, api, { ca, rejectUnauthorized: true })

const stored = (box: Appliance): string[] => {
  const directory = join(box.env['PILLARBOX_KEYS_DIR']!, 'acme')
  const [of] = readdirSync(directory)
  return readdirSync(join(directory, of!))
    .toSorted()
    .map((name) => readFileSync(join(directory, of!, name), 'utf8'))
}

test.runIf(program)(
  'one of several boxes obtains a certificate, any of them answers the CA, and all use it at once; another renews it',
  { timeout: 120_000 },
  async ({ onTestFinished }) => {
    const dns = await DnsStub.start()
    onTestFinished(() => dns.close())
    dns.a(api, '127.0.0.1')
    const ports = [await freePort(), await freePort()]
    // the CA asks the box that does not obtain it
    const ca = await pebble(program!, { httpPort: ports[1]!, dns: dns.servers[0]! })
    const keys = [join(folder(), 'keys'), join(folder(), 'keys')]
    const boxes = await severalBoxes(postgres(), 2, (number) => {
      if (number === 1) {
        mkdirSync(keys[1]!, { mode: 0o700 })
        copyFileSync(join(keys[0]!, 'master.key'), join(keys[1]!, 'master.key'))
      }
      return {
        ...asking(ca),
        PILLARBOX_KEYS_DIR: keys[number]!,
        PILLARBOX_ACME__LISTEN: `127.0.0.1:${ports[number]}`,
        PILLARBOX_ACME__NAMES: api,
        PILLARBOX_PUBLIC_URL: `https://${api}`,
        PILLARBOX_HTTP__TLS__LISTEN: '127.0.0.1:0',
        PILLARBOX_DNS__SERVERS: dns.servers[0]!,
      }
    })
    for (const box of boxes) box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
    const [one, other] = boxes
    const { status } = await one.call('POST', '/v1/certificates/renew')
    expect(status).toBe(200)
    const first = await obtained(one)
    expect([first.problem, first.issuer]).toEqual([null, expect.stringMatching(/^Pebble/)])
    await expect.poll(() => obtained(other)).toMatchObject({ fingerprint: first.fingerprint, problem: null })
    const serial = await shownBy(one, ca.root)
    expect(await shownBy(other, ca.root)).toBe(serial)
    await expect.poll(() => stored(other)).toEqual(stored(one))
    // unknown tokens have no answer at either
    for (const box of boxes) expect((await fetch(`${box.url}/.well-known/acme-challenge/nothing`)).status).toBe(404)

    const name = new URL(one.env['PILLARBOX_DATABASE__URL']!).pathname.slice(1)
    await postgres().run(name, 'CREATE TABLE kept AS SELECT * FROM acme_files')
    const account = stored(one)[0]!
    expect((await other.call('POST', '/v1/certificates/renew', { name: api })).status).toBe(200)
    const next = await obtained(other)
    expect([next.problem, next.fingerprint === first.fingerprint]).toEqual([null, false])
    await expect.poll(() => obtained(one)).toMatchObject({ fingerprint: next.fingerprint })
    expect(await shownBy(one, ca.root)).toBe(await shownBy(other, ca.root))
    expect(stored(one)[0]).toBe(account)

    // a box that was away takes over what was obtained meanwhile, and due renewals find nothing to do
    await one.app.stop()
    expect((await other.call('POST', '/v1/certificates/renew', { name: api })).status).toBe(200)
    const last = await obtained(other)
    await one.restart()
    one.url = `http://127.0.0.1:${one.app.httpAddresses.plain!.port}`
    expect(await obtained(one)).toMatchObject({ fingerprint: last.fingerprint })
    await Promise.all(boxes.map((box) => box.call('POST', '/v1/certificates/renew')))
    for (const box of boxes) expect(await obtained(box)).toMatchObject({ fingerprint: last.fingerprint })
    expect(await postgres().run(name, 'SELECT token FROM acme_challenges')).toEqual([])
    const rows = await postgres().run(name, `SELECT 1 FROM acme_files WHERE position('PRIVATE KEY'::bytea IN sealed) > 0`)
    expect(rows).toEqual([])

    // a box that looks before it was notified uses what it finds (none is told of the files of the first one)
    await postgres().run(name, 'UPDATE acme_files SET sealed = kept.sealed FROM kept WHERE kept.name = acme_files.name')
    expect((await other.call('POST', '/v1/certificates/renew')).status).toBe(200)
    expect(await obtained(other)).toMatchObject({ fingerprint: first.fingerprint })
    expect(await shownBy(other, ca.root)).toBe(serial)
  },
)
