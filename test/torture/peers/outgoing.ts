import { chmodSync, mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { generate } from 'selfsigned'
import type { DnsRecord } from '../../../src/domains/model.ts'
import type { Email } from '../../../src/mail/model.ts'
import { Dkimpy } from '../../peers/dkimpy.ts'
import { freePort } from '../../support/free-port.ts'
import { pick, type Random } from '../../support/random.ts'
import type { RunningBox, World } from '../box/world.ts'
import { difference } from '../box/kept.ts'
import { type Place, RunningServer, servers } from './servers.ts'

/** Servers of others, each with a domain and a certificate of its own. */
export class Outside {
  /** What a box must be started with to send to them. */
  readonly env: Record<string, string>
  readonly servers: readonly RunningServer[]
  readonly dkimpy = new Dkimpy()
  /** A file with their certificates, and that of the box. */
  readonly authorities: string
  readonly #directory: string

  private constructor(env: Record<string, string>, running: RunningServer[], directory: string, authorities: string) {
    this.env = env
    this.servers = running
    this.authorities = authorities
    this.#directory = directory
  }

  /** Starts them, where the name server of the world says. */
  static async start({ peers, furnished }: World): Promise<Outside> {
    const directory = mkdtempSync(join(tmpdir(), 'pillarbox-servers-'))
    process.once('exit', () => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }))
    chmodSync(directory, 0o755)
    const port = await freePort()
    const running: RunningServer[] = []
    const box = {
      domain: furnished.inbox.email.split('@')[1]!,
      port: await freePort(),
      certFile: join(directory, 'box.pem'),
      keyFile: join(directory, 'box-key.pem'),
    }
    const trusted = [await writeCertificate('localhost', '127.0.0.1', box)]
    for (const [index, server] of servers.entries()) {
      const at = join(directory, server.name)
      mkdirSync(at)
      const [host, domain] = [`127.0.0.${11 + index}`, `${server.name.toLowerCase()}.test`]
      const hostname = `mx.${domain}`
      peers.dns.mx(domain, hostname).a(hostname, host)
      const files = { certFile: join(at, 'cert.pem'), keyFile: join(at, 'key.pem') }
      trusted.push(await writeCertificate(hostname, host, files))
      running.push(await RunningServer.start(server, { directory: at, host, port, domain, hostname, ...files, box }))
    }
    const authorities = join(directory, 'authorities.pem')
    writeFileSync(authorities, trusted.join('\n'))
    const env = {
      NODE_EXTRA_CA_CERTS: authorities,
      PILLARBOX_SMTP__LISTEN: `127.0.0.1:${box.port}`,
      PILLARBOX_SMTP__TLS__CERT: box.certFile,
      PILLARBOX_SMTP__TLS__KEY: box.keyFile,
      PILLARBOX_OUTBOUND__PORT: String(port),
      PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '0',
      PILLARBOX_OUTBOUND__RATE_PER_DOMAIN: '0',
    }
    return new Outside(env, running, directory, authorities)
  }

  async stop(): Promise<void> {
    this.dkimpy.close()
    for (const server of this.servers) await server.stop()
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Answers the certificate. */
async function writeCertificate(
  hostname: string,
  ip: string,
  { certFile, keyFile }: Pick<Place, 'certFile' | 'keyFile'>,
): Promise<string> {
  const { cert, private: key } = await generate([{ name: 'commonName', value: hostname }], {
    keySize: 2048,
    algorithm: 'sha256',
    extensions: [
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: hostname },
          { type: 7, ip },
        ],
      },
    ],
  })
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key, { mode: 0o600 })
  return cert
}

const lines = [
  'a line',
  '',
  '.',
  '..',
  '. dot',
  '.end',
  ' ',
  'blanks   ',
  '\ttab\t',
  'From here',
  '>From',
  '=3D',
  'Grüße',
  '東京',
  '-- ',
  'x'.repeat(1500),
]

/** What a caller asks a box to send; `mark` tells it from any other. */
function contentOf(mark: string, domain: string, random: Random): Record<string, unknown> {
  const text = Array.from({ length: random(40) }, () => pick(lines, random)).join('\n')
  const bytes = Buffer.from(Array.from({ length: random(4) === 0 ? 200_000 : 3000 }, () => random(256)))
  const attachment = { filename: pick(['x.bin', 'Anhang ü.bin', 'a b".bin'], random), content: bytes.toString('base64') }
  return {
    subject: `${mark} ${pick(['plain', 'Grüße', '東京 '.repeat(30).trim(), 'x'.repeat(300)], random)}`,
    ...(random(4) > 0 ? { body_text: text } : {}),
    ...(random(2) === 0 ? { body_html: `<p>${text}</p>` } : {}),
    ...(random(3) === 0 ? { attachments: [attachment] } : {}),
    ...(random(4) === 0 ? { headers: { 'X-Long': 'word '.repeat(100).trim(), 'X-Odd': ' a  b ' } } : {}),
    ...(random(4) === 0 ? { cc: `"Grüße, ${mark}" <cc@${domain}>` } : {}),
  }
}

interface Sending {
  world: World
  box: RunningBox
  dkimpy: Dkimpy
  random: Random
}

/** Fields that a server puts before what it takes. */
const traceFields =
  /^(?:(?:Return-Path|Delivered-To|X-Original-To|Envelope-To|Delivery-Date|Received):.*\r?\n(?:[ \t].*\r?\n)*)*$/i

/** Sends a message to a server; answers what is wrong with what came. */
export async function faultOfSending(
  server: RunningServer,
  mark: string,
  { world, box, dkimpy, random }: Sending,
): Promise<string | undefined> {
  const { writer } = world.furnished
  const path = `/v1/identities/${writer.id}/emails`
  const to = `${mark}@${server.place.domain}`
  const { id, message_id } = await box.get('POST', path, { to, ...contentOf(mark, server.place.domain, random) })
  const delivery = await endOf(box, `${path}/${id}`, to)
  if (delivery?.status !== 'delivered') return `it was not delivered: ${JSON.stringify(delivery)}`
  if (server.offersTls && delivery.tls?.endsWith(', certificate checked') !== true)
    return `it was sent with ${delivery.tls ?? 'no TLS'}`
  const kept = (await server.kept(String(message_id)))?.toString('latin1')
  if (kept === undefined) return 'it was delivered and is not kept'
  const raw = await box.text(`${path}/${id}/raw`)
  const sent = server.keepsCrlf ? raw : raw.replaceAll('\r\n', '\n')
  if (!kept.endsWith(sent)) return `it is kept with other bytes: ${difference(kept, sent)}`
  const before = kept.slice(0, kept.length - sent.length)
  if (!traceFields.test(before)) return `before it stands ${JSON.stringify(before)}`
  const octets = server.keepsCrlf ? kept : kept.replaceAll('\n', '\r\n')
  const verdicts = await dkimpy.verdicts(Buffer.from(octets, 'latin1'), await keysOf(box))
  return verdicts.length > 0 && verdicts.every((verdict) => verdict.startsWith('pass'))
    ? undefined
    : `its signatures do not verify: ${verdicts.join(', ')}`
}

/** The delivery to a recipient, once it has an end. */
async function endOf(box: RunningBox, path: string, to: string): Promise<Email['deliveries'][number] | undefined> {
  for (const end = Date.now() + 60_000; ; await sleep(50)) {
    const { deliveries } = (await box.get('GET', path)) as unknown as Email
    const delivery = deliveries.find(({ recipient }) => recipient === to)
    if (delivery?.status === 'delivered' || delivery?.status === 'bounced' || Date.now() > end) return delivery
  }
}

/** The keys that the domain of the box publishes. */
async function keysOf(box: RunningBox): Promise<Record<string, string>> {
  const { data } = await box.get('GET', '/v1/domains')
  const records = (data as { dns_records: DnsRecord[] }[])[0]!.dns_records
  return Object.fromEntries(records.filter(({ type }) => type === 'TXT').map(({ name, value }) => [name, value]))
}
