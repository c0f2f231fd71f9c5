import { readFileSync } from 'node:fs'
import { DnsStub } from '../test/support/dns-stub.ts'

/** The zone a bench needs; the values are texts and addresses. */
export interface Zone {
  txt: Record<string, string>
  a: Record<string, string>
  /** The name of each address. */
  ptr?: Record<string, string>
  mx?: Record<string, string>
  cname?: Record<string, string>
}

// runs as a process of its own: `node dns-server.ts zone.json [host port]`; says its address and answers until it is told to stop
const zone = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as Zone
const [host, port] = process.argv.slice(3)
const stub = await DnsStub.start(host, port === undefined ? undefined : Number(port))
for (const [name, text] of Object.entries(zone.txt)) stub.txt(name, text)
for (const [name, address] of Object.entries(zone.a)) stub.a(name, address)
for (const [address, name] of Object.entries(zone.ptr ?? {})) stub.ptr(address, name)
for (const [name, exchange] of Object.entries(zone.mx ?? {})) stub.mx(name, exchange)
for (const [name, target] of Object.entries(zone.cname ?? {})) stub.cname(name, target)
process.stdout.write(`${stub.servers[0]!}\n`)
