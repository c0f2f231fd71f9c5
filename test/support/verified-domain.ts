import type { Domain, DnsRecord } from '../../src/domains/model.ts'
import type { Appliance } from './appliance.ts'
import type { DnsStub } from './dns-stub.ts'

/** A box in this process or another. */
type Home = Pick<Appliance, 'key' | 'dns' | 'call'>

/** Publishes all that the box's own domain asks for in the DNS that the box sees, and has it verified; answers the domain. */
export async function verifiedDomain(box: Home): Promise<Domain> {
  const { body } = await box.call<{ data: Domain[] }>('GET', '/v1/domains?limit=200')
  const own = body.data.find((domain) => domain.default)
  if (!own) throw new Error('The box has no domain of its own, or not in this account.')
  return verified(box, own)
}

/** The same for a domain that is added to the account of the key. */
export async function addedDomain(box: Home, name: string, key = box.key): Promise<Domain> {
  const { status, body } = await box.call('POST', '/v1/domains', { name }, { key })
  if (status !== 201) throw new Error(`${name} was not added: ${JSON.stringify(body)}`)
  return verified(box, body as unknown as Domain, key)
}

/** Publishes the records of a domain, and an address for what its MX names: 127.0.0.1. */
export function publish(dns: DnsStub, { dns_records }: Pick<Domain, 'dns_records'>): void {
  for (const record of dns_records) publishRecord(dns, record)
}

export function publishRecord(dns: DnsStub, { type, name, value, priority }: DnsRecord): void {
  if (type === 'TXT') dns.txt(name, value)
  else if (type === 'CNAME') dns.cname(name, value)
  else dns.mx(name, `${priority} ${value}`).a(value, '127.0.0.1')
}

async function verified(box: Home, domain: Domain, key = box.key): Promise<Domain> {
  publish(box.dns, domain)
  const { body } = await box.call<Domain>('POST', `/v1/domains/${domain.id}/verify`, undefined, { key })
  if (body.status === 'verified') return body
  const wrong = body.dns_records?.filter(({ status }) => status !== 'valid')
  throw new Error(`${domain.name} is not verified: ${JSON.stringify(wrong ?? body)}`)
}
