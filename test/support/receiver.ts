import { generate } from 'selfsigned'
import { createLog, type Log } from '../../src/core/log.ts'
import type { DeliveryTarget } from '../../src/smtp/delivery-target.ts'
import type { Envelope } from '../../src/mail/model.ts'
import { Receiver, type ReceiverSettings } from '../../src/smtp/receiver.ts'
import { Refusal } from '../../src/smtp/replies.ts'

/** A mailroom in memory: `user@box.test` and whom a test adds live here. */
export class MemoryDeliveryTarget implements DeliveryTarget {
  readonly kept: { envelope: Envelope; raw: Buffer; account: string }[] = []
  readonly asked: string[] = []
  readonly mailboxes = new Set(['user@box.test', 'postmaster'])
  /** What keep() does before it keeps. */
  before: () => Promise<void> = async () => undefined

  async checkRecipient(address: string): Promise<string> {
    this.asked.push(address)
    const [local = '', domain = 'box.test'] = address.split('@')
    const known = this.mailboxes.has(address) || /^user\d+$/.test(local) || local.startsWith('user+')
    if (domain !== 'box.test' && !this.mailboxes.has(address)) throw new Refusal(550, '5.7.1', 'We do not relay')
    if (!known) throw new Refusal(550, '5.1.1', 'No such mailbox')
    return ''
  }

  async deliver(envelope: Envelope, raw: Buffer, _note: unknown, account: string): Promise<string> {
    await this.before()
    this.kept.push({ envelope, raw: Buffer.from(raw), account })
    return `queue-${this.kept.length}`
  }
}

export interface Running {
  receiver: Receiver
  deliveryTarget: MemoryDeliveryTarget
  port: number
  settings: ReceiverSettings
  /** Every line logged so far. */
  logged: string[]
  /** Of the whole box. */
  log: Log
}

/** A certificate for `box.test`, PEM. */
export async function certificate(name = 'box.test'): Promise<{ cert: string; key: string }> {
  const made = await generate([{ name: 'commonName', value: name }], { keyType: 'ec', curve: 'P-256', algorithm: 'sha256' })
  return { cert: made.cert, key: made.private }
}

let shared: Promise<{ cert: string; key: string }> | null = null

/** A running receiver on a free loopback port. */
export async function startReceiver(
  changes: Partial<ReceiverSettings> = {},
  deliveryTarget = new MemoryDeliveryTarget(),
): Promise<Running> {
  shared ??= certificate()
  const settings: ReceiverSettings = {
    hostname: 'box.test',
    listen: [{ host: '127.0.0.1', port: 0 }],
    tls: await shared,
    size: 1_048_576,
    max_memory: 134_217_728,
    greeting_delay: 0,
    proxy_protocol: [],
    max_recipients: 100,
    max_connections: 500,
    max_connections_per_address: 400,
    max_errors: 20,
    max_commands: 100,
    idle_timeout: 60_000,
    session_timeout: 600_000,
    data_timeout: 300_000,
    pace: { octets: 30_000, within: 60_000 },
    max_received: 50,
    ...changes,
  }
  const logged: string[] = []
  const log = createLog('debug', { write: (line: string) => logged.push(line) })
  const receiver = new Receiver(settings, deliveryTarget, log.child({ part: 'smtp' }))
  await receiver.start()
  return { receiver, deliveryTarget, port: receiver.addresses[0]?.port ?? 0, settings, logged, log }
}
