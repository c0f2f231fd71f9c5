import { copyFileSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { root } from '../docs/pages.ts'
import { type Answer, bootstrapKey, message } from '../support/appliance.ts'
import { DnsStub } from '../support/dns-stub.ts'
import { blocksOf, machines, startHaproxy } from '../support/haproxy.ts'
import { live, type Live } from '../support/live.ts'
import { MailSink } from '../support/mail-sink.ts'
import { type Namespaces, namespacesOf } from '../support/namespaces.ts'
import { type Cluster, startCluster } from '../support/patroni.ts'
import { type BoxProcess, startProcess } from '../support/process.ts'
import { run, succeed } from '../support/program.ts'
import { Dialogue } from '../support/smtp.ts'
import { WebhookSink } from '../support/webhook-sink.ts'

type Any = ReturnType<typeof JSON.parse>
type Line = Record<string, Any>

/** The address of HAProxy. */
export const proxy = '10.0.0.10'
/** The address of this process, and of all servers that are not ours. */
const world = '10.0.0.1'

const page = 'several-boxes.md'
const names = ['one', 'two'] as const
type Name = (typeof names)[number]

/** Two boxes behind HAProxy on two servers of PostgreSQL, each in a network namespace, seen from another of which this process is. */
export class TwoBoxes {
  readonly namespaces: Namespaces
  readonly cluster: Cluster
  readonly dns: DnsStub
  readonly sink: MailSink
  readonly hooks: WebhookSink
  readonly #directory: string
  readonly #pair: string
  readonly #processes: BoxProcess[] = []
  readonly #boxes = new Map<Name, BoxProcess>()

  private constructor(
    parts: Pick<TwoBoxes, 'namespaces' | 'cluster' | 'dns' | 'sink' | 'hooks'>,
    directories: { own: string; pair: string },
  ) {
    this.namespaces = parts.namespaces
    this.cluster = parts.cluster
    this.dns = parts.dns
    this.sink = parts.sink
    this.hooks = parts.hooks
    this.#directory = directories.own
    this.#pair = directories.pair
  }

  /** Starts all of it in namespaces with this prefix, by the page; the directory has a certificate. */
  static async start(prefix: string, pair: string): Promise<TwoBoxes> {
    const namespaces = namespacesOf(prefix, Object.keys(machines))
    const own = mkdtempSync(join(pair, 'run-'))
    // PostgreSQL does not run as root
    for (const path of [pair, own]) await run('chmod', ['755', path])
    const dns = await DnsStub.start(world)
    dns.txt('sender.test', 'v=spf1 ip4:10.0.0.2 -all').mx('sender.test', 'mx.sender.test').a('mx.sender.test', world)
    const sink = await MailSink.open({ host: world, port: 25 })
    const hooks = await WebhookSink.open(0, world)
    const [etcd, certificate, database] = blocksOf(page, 'sh')
    const cluster = await startCluster(namespaces, own, { etcd: etcd!, certificate: certificate! })
    await cluster.onPrimary(database!)
    const both = new TwoBoxes({ namespaces, cluster, dns, sink, hooks }, { own, pair })
    const haproxy = await startHaproxy(namespaces)
    both.#processes.push(...cluster.processes, haproxy)
    // it takes all servers for primaries until its first checks
    while (!/postgresql\/db\d is DOWN/.test(haproxy.errors())) await sleep(50)
    await both.#make()
    // the accounts come into the database with the first start
    for (const name of names) await both.serve(name)
    await both.inTurns()
    return both
  }

  async close(): Promise<void> {
    await Promise.all([this.dns.close(), this.sink.stop(), this.hooks.stop()])
    for (const { child } of this.#processes) child.kill('SIGKILL')
  }

  /** Makes a box on one machine, moves it to the database, and takes its keys and settings to the other, by the page. */
  async #make(): Promise<void> {
    const [one, two] = names.map((name) => join(this.#directory, name))
    const words = ['init', '--yes', '--offline', '--domain', 'example.com', '--hostname', 'mx.example.com']
    await this.#command('one', this.#places('one'), ...words)
    const [settings] = blocksOf(page, 'yaml')
    const [url] = blocksOf(page, '')
    for (const own of [one!, two!]) {
      mkdirSync(join(own, 'keys'), { recursive: true, mode: 0o700 })
      writeFileSync(join(own, 'database-url'), url!, { mode: 0o640 })
      writeFileSync(join(own, 'pillarbox.yaml'), settings!.replaceAll('/etc/pillarbox', own))
    }
    await this.#command('one', this.#env('one'), 'move', '--to', 'postgres')
    for (const file of ['backup.passphrase', 'keys/master.key']) copyFileSync(join(one!, file), join(two!, file))
  }

  /** Runs a command on the machine of a box. */
  async #command(name: Name, env: Record<string, string>, ...words: string[]): Promise<void> {
    const [program, ...rest] = [...this.namespaces.in(name), process.execPath, `${root}src/main.ts`, ...words]
    await succeed(program!, rest, { env })
  }

  /** Where a box has its files: as in a system installation, settings and passphrase beside each other. */
  #places(name: Name): Record<string, string> {
    const own = join(this.#directory, name)
    return {
      PILLARBOX_CONFIG: join(own, 'pillarbox.yaml'),
      PILLARBOX_DATA_DIR: join(own, 'data'),
      PILLARBOX_KEYS_DIR: join(own, 'keys'),
      PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
    }
  }

  #env(name: Name): Record<string, string> {
    const [cert, key] = [join(this.#pair, 'cert.pem'), join(this.#pair, 'key.pem')]
    return {
      ...this.#places(name),
      PILLARBOX_HTTP__TLS__CERT: cert,
      PILLARBOX_HTTP__TLS__KEY: key,
      PILLARBOX_SMTP__TLS__CERT: cert,
      PILLARBOX_SMTP__TLS__KEY: key,
      PILLARBOX_HTTP__RATE_LIMIT: '0',
      PILLARBOX_LIMITS__IDENTITIES: '12',
      PILLARBOX_DNS__SERVERS: this.dns.servers.join(','),
      PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '10.0.0.0/8',
      PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '10.0.0.0/8',
      PILLARBOX_SMS__PROVIDER: 'loopback',
      PILLARBOX_MIN_FREE: '0',
    }
  }

  /** Starts a box with the settings of the page. */
  async serve(name: Name): Promise<void> {
    const [program, ...words] = [...this.namespaces.in(name), process.execPath, `${root}src/main.ts`, 'serve']
    const started = startProcess(this.#env(name), words, join(this.#directory, name), program)
    this.#processes.push(started)
    await started.said('started')
    this.#boxes.set(name, started)
  }

  /** Stops a box as an operator does. */
  async stop(name: Name): Promise<void> {
    const code = await this.#boxes.get(name)!.end('SIGTERM')
    if (code !== 0) throw new Error(`Box ${name} ended with ${code}.`)
  }

  /** The log lines with this text since the last start, of each box; they are written some time after what they tell of. */
  logged(msg: string, isMeant: (line: Line) => boolean = () => true): Line[][] {
    return names.map((name) =>
      this.#boxes
        .get(name)!
        .output()
        .split('\n')
        .filter((line) => line.startsWith('{') && line.endsWith('}'))
        .map((line) => JSON.parse(line) as Line)
        .filter((line) => line['msg'] === msg && isMeant(line)),
    )
  }

  /** Waits until HAProxy gives connections to both boxes. */
  async inTurns(): Promise<void> {
    const answered = (): number[] => this.logged('request', ({ route }) => route === '/v1/account').map(({ length }) => length)
    const before = answered()
    const until = Date.now() + 60_000
    while (!answered().every((count, index) => count > before[index]!)) {
      if (Date.now() > until) throw new Error('One of the boxes gets no connections after a minute.')
      await ask('GET', '/v1/account').catch(() => undefined)
      await sleep(50)
    }
  }

  /** Runs a program on a machine. */
  async runAt(machine: string, ...words: string[]): Promise<{ code: number | null; output: string }> {
    const [program, ...rest] = [...this.namespaces.in(machine), ...words]
    const { code, output } = await run(program!, rest)
    return { code, output: output.toString() }
  }
}

/** A call by a connection of its own: HAProxy gives each to the next box. */
export async function ask(
  method: string,
  path: string,
  body?: unknown,
  { key = bootstrapKey, from = '10.0.0.2', host = proxy }: { key?: string; from?: string; host?: string } = {},
): Promise<Answer<Any>> {
  const sent = body === undefined ? undefined : JSON.stringify(body)
  const type = sent === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(sent)) }
  const outgoing = request({
    host,
    servername: 'box.example.com',
    localAddress: from,
    agent: false,
    method,
    path,
    headers: { Host: 'box.example.com', Authorization: `Bearer ${key}`, ...type },
  })
  outgoing.setTimeout(60_000, () => outgoing.destroy(new Error('no answer within a minute')))
  outgoing.end(sent)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  const received = await text(response)
  return {
    status: response.statusCode!,
    headers: new Headers(response.headers as Record<string, string>),
    body: received === '' ? null : JSON.parse(received),
  }
}

/** Sends a message as another mail server does; answers the reply to its end. */
export async function deliver(to: string, subject: string): Promise<string> {
  const client = await Dialogue.connect(25, proxy, '10.0.0.2')
  try {
    await client.reply()
    await client.say('EHLO mx.sender.test')
    return await client.deliver(message({ To: to, Subject: subject }, 'hello\n'), [to])
  } finally {
    client.destroy()
  }
}

/** Sends a message as another mail server does that tries again where a box stops before it has taken it; answers the code. */
export async function send(to: string, subject: string): Promise<string> {
  for (let tries = 1; ; tries += 1) {
    const reply = await deliver(to, subject).catch(String)
    if (tries === 3 || (reply !== '' && !reply.startsWith('421 '))) return reply.slice(0, 3)
  }
}

/** A WebSocket through HAProxy that hears of the e-mails of an identity. */
export async function listenTo(identity: string, since?: string): Promise<Live> {
  const { body } = await ask('POST', '/v1/realtime/token', {})
  const socket = await live(`${body.url}?token=${body.token}`)
  socket.say({ type: 'subscribe', channel: 'email_messages', identity_id: identity, ...(since && { since }) })
  await socket.until('subscribed')
  return socket
}

/** The subjects of the e-mails that a socket has heard of. */
export function heard({ frames }: Live): string[] {
  return frames.filter(({ type }) => type === 'event').map(({ event }) => event.data.subject)
}

/** The subjects of all e-mails of an identity. */
export async function subjects(identity: string): Promise<string[]> {
  const found: string[] = []
  let cursor = ''
  do {
    const { body } = await ask('GET', `/v1/identities/${identity}/emails?limit=100${cursor}`)
    found.push(...body.data.map(({ subject }: { subject: string }) => subject))
    cursor = body.has_more ? `&cursor=${encodeURIComponent(body.next_cursor)}` : ''
  } while (cursor !== '')
  return found
}

/** Does something again and again, a moment apart, until it is stopped; answers what it did. */
export function repeatedly<Result>(work: (number: number) => Promise<Result>): { results: Result[]; stop: () => Promise<void> } {
  const results: Result[] = []
  const stopped = new AbortController()
  const working = (async () => {
    while (!stopped.signal.aborted) {
      results.push(await work(results.length))
      await sleep(20)
    }
  })()
  return {
    results,
    async stop() {
      stopped.abort()
      await working
    },
  }
}
