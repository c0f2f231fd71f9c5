import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { listenerAt } from '../../src/install/listeners.ts'
import { type Finding, checkMachine, type MachineOptions } from '../../src/install/machine.ts'
import { DnsStub } from '../support/dns-stub.ts'

/** A listener that says one thing to each who comes; answers its port. */
async function speaker(line: string): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.end(line)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

async function seen(input: Partial<MachineOptions>, dns?: DnsStub): Promise<Map<Finding['subject'], Finding>> {
  const usual = { hostname: 'mx.agents.test', domain: 'agents.test', outside: undefined, port: 25, addresses: ['8.8.4.4'] }
  const findings = await checkMachine({ ...usual, servers: dns?.servers ?? [], ...input })
  return new Map(findings.map((finding) => [finding.subject, finding]))
}

async function stub(): Promise<DnsStub> {
  const dns = await DnsStub.start()
  onTestFinished(() => dns.close())
  return dns
}

test('where everything is right, it says so', async () => {
  const dns = (await stub())
    .a('mx.agents.test', '8.8.4.4')
    .ptr('8.8.4.4', 'mx.agents.test')
    .mx('far.test', 'mx.far.test')
    .a('mx.far.test', '127.0.0.1')
  const found = await seen({ outside: 'far.test', port: await speaker('220 mx.far.test ESMTP\r\n') }, dns)
  for (const subject of ['addresses', 'hostname', 'ptr', 'port_25_out'] as const) {
    expect(found.get(subject)).toMatchObject({ good: true })
  }
})

test('what is wrong is named, with what would be right', async () => {
  const dns = (await stub())
    .a('mx.agents.test', '9.9.9.9')
    .ptr('8.8.4.4', 'vps-17.provider.test')
    .mx('far.test', 'mx.far.test')
    .a('mx.far.test', '127.0.0.1')
  const found = await seen({ outside: 'far.test', port: await speaker('554 no\r\n') }, dns)
  expect(found.get('hostname')).toMatchObject({ good: false, text: expect.stringContaining('points to 9.9.9.9') })
  expect(found.get('ptr')).toMatchObject({
    good: false,
    text: expect.stringContaining('reverse DNS of 8.8.4.4 is vps-17.provider.test, it should be mx.agents.test'),
  })
  expect(found.get('port_25_out')).toMatchObject({ good: false, text: expect.stringContaining('outbound.mode: relay') })
})

test('a name that is not there is told from a DNS that does not answer', async () => {
  const dns = await stub()
  expect((await seen({ outside: 'far.test' }, dns)).get('hostname')!.text).toContain('has no address in the DNS yet')
  expect((await seen({ outside: 'far.test' }, dns)).get('ptr')!.text).toContain('8.8.4.4 has no reverse DNS')
  dns.trouble = 'servfail'
  expect((await seen({ outside: 'far.test' }, dns)).get('hostname')!.text).toContain('lookup of')
  expect((await seen({ outside: 'far.test' }, dns)).get('port_25_out')!.text).toContain('could not be checked')
})

test('a machine behind NAT is told, and offline nothing is asked', async () => {
  const dns = await stub()
  const found = await seen({ addresses: ['192.168.1.5'] }, dns)
  expect(found.get('addresses')).toMatchObject({ good: false, text: expect.stringContaining('only 192.168.1.5') })
  expect(dns.queries).toEqual([])
})

test('who listens at a port is known by name', async () => {
  const port = await speaker('')
  expect(listenerAt(port)).toMatch(/node|MainThread/)
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const free = (server.address() as AddressInfo).port
  server.close()
  await once(server, 'close')
  expect(listenerAt(free)).toBeUndefined()
})
