import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { appliance, type Appliance } from '../support/appliance.ts'
import { type Landed, MailSink } from '../support/mail-sink.ts'
import { peer } from '../support/peer.ts'
import { verifiedDomain } from '../support/verified-domain.ts'

const rspamd = peer('rspamd')
const possible = [rspamd, peer('setpriv', 'apt-get install util-linux')].every((program) => program !== undefined)

/** Modules that would ask others over the network, or remember. */
const silenced =
  'asn bimi clickhouse dcc elastic fuzzy_check greylist mx_check neural phishing ratelimit rbl reputation rspamd_update surbl url_redirector'

/** Where our mail is said to come from; nothing is sent there. */
const address = '8.8.8.8'

interface Verdict {
  score: number
  symbols: Record<string, { score: number; options?: string[] }>
}

describe.runIf(possible)('rspamd with its local rules', { timeout: 180_000 }, () => {
  test('finds our plain message harmless, signed by us and sent from where we may; and another that is not so', async () => {
    const sink = await MailSink.start()
    const { box, hostname, ada } = await sendingFrom(sink)
    const check = await scanner(box, hostname)
    const text = 'Hello Bob,\n\nthe figures of October are ready. Shall I send them to you as a table?\n\nKind regards\nAda\n'
    const plain = await landed(box, sink, ada, { subject: 'The figures of October', body: text })
    const verdict = await check(plain)
    expect([listed(verdict), verdict.score < 1]).toEqual([listed(verdict), true])
    for (const symbol of ['R_SPF_ALLOW', 'R_DKIM_ALLOW', 'DMARC_POLICY_ALLOW']) expect(listed(verdict)).toContain(` ${symbol} `)

    const both = { subject: 'The figures of October', body: text, body_html: `<p>${text.replaceAll('\n\n', '</p>\n<p>')}</p>` }
    const html = await check(await landed(box, sink, ada, both))
    expect([listed(html), html.score < 1]).toEqual([listed(html), true])

    // the scale measures: the same message with one word changed on its way
    const changed = await check({ ...plain, raw: plain.raw.replace('October are', 'September are') })
    expect(listed(changed)).toContain(' R_DKIM_REJECT ')
    expect(changed.score).toBeGreaterThan(verdict.score)
  })
})

async function sendingFrom(sink: MailSink): Promise<{ box: Appliance; hostname: string; ada: string }> {
  const hostname = 'mx.pillarbox.test'
  const box = await appliance({
    PILLARBOX_HOSTNAME: hostname,
    PILLARBOX_OUTBOUND__PORT: String(sink.port),
    PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '127.0.0.0/8',
  })
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  await verifiedDomain(box)
  // as the world sees it
  box.dns.a(hostname, address).ptr(address, hostname)
  const { body } = await box.call('POST', '/v1/identities', { name: 'Ada Byron' })
  return { box, hostname, ada: body['id'] as string }
}

/** Sends through the API; answers it as it came. */
async function landed(box: Appliance, sink: MailSink, ada: string, mail: object): Promise<Landed> {
  const before = sink.messages.length
  const { status } = await box.call('POST', `/v1/identities/${ada}/emails`, { to: 'Bob <bob@far.test>', ...mail })
  expect(status).toBe(201)
  await vi.waitFor(() => expect(sink.messages).toHaveLength(before + 1), { timeout: 100_000 })
  return sink.messages.at(-1)!
}

/** Starts one that asks the DNS of the box; answers how it is asked about a message. */
async function scanner(box: Appliance, hostname: string): Promise<(mail: Landed) => Promise<Verdict>> {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-rspamd-'))
  const port = await freePort()
  const files: Record<string, string> = {
    // without the last, it compiles expressions for most of a minute first
    'options.inc': `dns { nameserver = ["${box.dns.servers[0]}"]; timeout = 10s; retransmits = 2; }\ndisable_hyperscan = true;\n`,
    'logging.inc': 'type = "console"; level = "notice";\n',
    'worker-normal.inc': `bind_socket = "127.0.0.1:${port}"; count = 1;\n`,
    ...Object.fromEntries(['controller', 'proxy', 'fuzzy'].map((name) => [`worker-${name}.inc`, 'enabled = false;\n'])),
    ...Object.fromEntries(silenced.split(' ').map((name) => [`${name}.conf`, 'enabled = false;\n'])),
  }
  for (const name of ['local.d', 'db', 'run', 'log']) mkdirSync(join(directory, name))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, 'local.d', name), text)
  const places = [
    `LOCAL_CONFDIR=${directory}`,
    ...['db', 'run', 'log'].map((name) => `${name.toUpperCase()}DIR=${directory}/${name}`),
  ]
  const parameters = ['-f', '-i', '-c', '/etc/rspamd/rspamd.conf', ...places.map((place) => `--var=${place}`)]
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', rspamd!, ...parameters], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (said += text))
  onTestFinished(async () => {
    const ended = child.exitCode === null && child.signalCode === null ? once(child, 'close') : undefined
    child.kill('SIGTERM')
    await ended
    rmSync(directory, { recursive: true, force: true })
  })
  const url = `http://127.0.0.1:${port}`
  for (
    let wait = 0;
    !(await fetch(`${url}/ping`).then(
      ({ ok }) => ok,
      () => false,
    ));
    wait++
  ) {
    if (child.exitCode !== null || wait > 900) throw new Error(`rspamd did not start:\n${said}`)
    await sleep(100)
  }
  return async ({ raw, from, to }) => {
    const headers = { From: from, Rcpt: to[0]!, IP: address, Helo: hostname, Hostname: hostname }
    const answer = await fetch(`${url}/checkv2`, { method: 'POST', headers, body: raw })
    expect(answer.status).toBe(200)
    return (await answer.json()) as Verdict
  }
}

function listed({ score, symbols }: Verdict): string {
  const lines = Object.entries(symbols).map(([name, found]) => `${found.score} ${name} ${(found.options ?? []).join(' ')}`)
  return [`score ${score}:`, ...lines].join('\n')
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  return port
}
