import { describe, expect, test } from 'vitest'
import type { DnsRecord, Domain } from '../../src/domains/model.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { peer } from '../support/peer.ts'
import { nameServer } from './dns.ts'

const knotd = peer('knotd', 'apt-get install knot')
const possible = [knotd, peer('setpriv', 'apt-get install util-linux')].every((program) => program !== undefined)

const host = 'mx.box.test. A 127.0.0.1'

describe.runIf(possible)('the zone text of a domain, served by Knot', () => {
  test('turns the domain green, record by record', { timeout: 60_000 }, async () => {
    const knot = await nameServer(knotd!, [host])
    const { box, domain } = await scene(knot.server, 'shop.example')
    const { body: zone } = await box.call<string>('GET', `/v1/domains/${domain.id}/zone`)
    const lines = zone.split('\n').filter((line) => line !== '' && !line.startsWith(';'))
    expect(lines).toHaveLength(domain.dns_records.length)
    const green = new Set<string>()
    expect(await valid(box, domain)).toEqual(green)

    for (const index of lines.keys()) {
      await knot.change([host, ...lines.slice(0, index + 1)])
      green.add(keyOf(domain.dns_records[index]!))
      expect(await valid(box, domain)).toEqual(green)
      // MX, SPF and the two keys in use are the first four
      expect((await shown(box, domain)).status).toBe(index < 3 ? 'pending' : 'verified')
    }
    expect((await box.call('POST', `/v1/domains/${domain.id}/dkim/rotate`)).status).toBe(200)
  })

  test('is read whole for a domain of other letters, and for one of many labels', async () => {
    const knot = await nameServer(knotd!, [host])
    for (const name of ['bücher.example', 'a-1.b.co.example']) {
      const { box, domain } = await scene(knot.server, name)
      const { body: zone, headers } = await box.call<string>('GET', `/v1/domains/${domain.id}/zone`)
      expect(headers.get('content-type')).toBe('text/plain; charset=utf-8')
      await knot.change([host, ...zone.split('\n')])
      expect((await shown(box, domain)).status).toBe('verified')
    }
  })

  test('is not enough when the DNS answers with the truth about somebody else', async () => {
    const knot = await nameServer(knotd!, [host])
    const one = await scene(knot.server, 'shop.example')
    const other = await scene(knot.server, 'shop.example')
    await knot.change([host, (await one.box.call<string>('GET', `/v1/domains/${one.domain.id}/zone`)).body])
    expect((await shown(one.box, one.domain)).status).toBe('verified')
    expect((await shown(other.box, other.domain)).status).toBe('pending')
  })

  test('leaves all as it was while Knot is gone', async () => {
    const knot = await nameServer(knotd!, [host])
    const { box, domain } = await scene(knot.server, 'shop.example')
    await knot.change([host, (await box.call<string>('GET', `/v1/domains/${domain.id}/zone`)).body])
    const before = await valid(box, domain)
    expect(before.size).toBe(domain.dns_records.length)
    await knot.stop()
    expect(await valid(box, domain)).toEqual(before)
    expect(await shown(box, domain)).toMatchObject({
      status: 'verified',
      dns_records: domain.dns_records.map(() => ({ reason: expect.stringMatching(/lookup failed/) })),
    })
  })
})

async function scene(server: string, name: string): Promise<{ box: Appliance; domain: Domain }> {
  const box = await appliance({
    PILLARBOX_DNS__SERVERS: server,
    PILLARBOX_HOSTNAME: 'mx.box.test',
    PILLARBOX_DNS__TIMEOUT: '2 s',
  })
  return { box, domain: (await box.call<Domain>('POST', '/v1/domains', { name })).body }
}

async function shown(box: Appliance, { id }: Domain): Promise<Domain> {
  return (await box.call<Domain>('POST', `/v1/domains/${id}/verify`)).body
}

async function valid(box: Appliance, domain: Domain): Promise<Set<string>> {
  const { dns_records } = await shown(box, domain)
  return new Set(dns_records.filter(({ status }) => status === 'valid').map(keyOf))
}

function keyOf({ type, name }: DnsRecord): string {
  return `${type} ${name}`
}
