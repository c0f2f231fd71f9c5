import type { DoctorReport } from '../../src/ops/doctor/model.ts'
import type { Testing } from '../../src/assembly.ts'
import { appliance, type Appliance } from './appliance.ts'
import { movable } from './held-clock.ts'
import { verifiedDomain } from './verified-domain.ts'

export const hostname = 'mx.box.test'
/** The public address of the box, as its operator says. */
export const address = '192.0.2.25'

/** What a machine says that is in order. */
export const soundMachine = {
  measure: async () => ({ bsize: 4096, bavail: 2 ** 28, blocks: 2 ** 29, files: 1000, ffree: 900 }),
  run: async () => 'yes\n',
  versions: { node: '24.22.2', sqlite: '3.53.4' },
}

const soundSettings = {
  PILLARBOX_HOSTNAME: hostname,
  PILLARBOX_MAIL__DOMAIN: 'box.test',
  PILLARBOX_PUBLIC_URL: 'http://127.0.0.1:0',
  PILLARBOX_DOCTOR__ADDRESSES: address,
  PILLARBOX_DOCTOR__BLOCKLISTS: 'zen.list.test,bl.list.test',
  PILLARBOX_DOCTOR__PROBE_DOMAIN: 'far.test',
  PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '127.0.0.0/8',
}

/** A box whose DNS names it and its address as it should be; tests break one thing of it. */
export async function patient(
  env: Record<string, string> = {},
  testing: Testing = {},
): Promise<{ box: Appliance; clock: ReturnType<typeof movable> }> {
  const clock = movable()
  const doctor = { ...soundMachine, ...testing.doctor }
  const box = await appliance({ ...soundSettings, ...env }, clock, { ...testing, doctor })
  box.dns.a(hostname, address).ptr(address, hostname).mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  return { box, clock }
}

/** Publishes the records of its own domain as well, and has them looked at. */
export async function published(box: Appliance): Promise<Awaited<ReturnType<typeof verifiedDomain>>> {
  const domain = await verifiedDomain(box)
  box.dns.a(hostname, address)
  return domain
}

/** Looks now. */
export async function checkup(box: Appliance): Promise<DoctorReport> {
  const { status, body } = await box.call<DoctorReport>('POST', '/v1/doctor')
  if (status !== 200) throw new Error(`The doctor answered ${status}: ${JSON.stringify(body)}`)
  return body
}

/** The lines that one name has, of a fresh look. */
export async function linesOf(box: Appliance, name: string): Promise<DoctorReport['lines']> {
  return (await checkup(box)).lines.filter((line) => line.name === name)
}
