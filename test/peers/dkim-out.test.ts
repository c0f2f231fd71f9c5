import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Resolver } from 'node:dns/promises'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { describe, expect, onTestFinished, test } from 'vitest'
import { masterKey, Seal } from '../../src/core/seal/seal.ts'
import { field, pair, type Pair, plantKeys, send, source } from '../outbound/outgoing.ts'
import { absent, peer } from '../support/peer.ts'
import { run } from '../support/program.ts'
import { byDkimpy, pythonWithDkim } from './dkimpy.ts'
import { nameServer, text } from './dns.ts'

const knotd = peer('knotd', 'apt-get install knot')
const opendkim = peer('opendkim-testmsg', 'apt-get install opendkim-tools')
const unshare = peer('unshare', 'apt-get install util-linux')
const perl = await perlWithDkim()
const python = await pythonWithDkim()
const possible = [
  knotd,
  opendkim,
  perl,
  unshare,
  peer('ip', 'apt-get install iproute2'),
  peer('setpriv', 'apt-get install util-linux'),
].every((program) => program !== undefined)

const kinds: [string, Record<string, unknown>][] = [
  ['plain', { subject: 'Hello', body: 'Hello there.' }],
  ['without a body', {}],
  ['with spaces at line ends and empty lines', { body: 'a  b \t c   \n\n  \n\t\nlast  \n\n \n\n' }],
  ['with 8-bit text', { subject: 'Größe — 漢字', body: 'Grüße 漢字\n'.repeat(40) }],
  ['with long lines', { body: `${'word '.repeat(2000)}\n${'x'.repeat(5000)}` }],
  [
    'with a folded subject and fields',
    { subject: 'long words '.repeat(60), headers: { References: '<a@b.test> '.repeat(60).trim() } },
  ],
  [
    'in HTML with files',
    {
      body: 'a',
      body_html: '<p>a</p>',
      attachments: [{ filename: 'ä.bin', content: Buffer.alloc(300_000, 9).toString('base64') }],
    },
  ],
  ['with lines of dots and From', { body: '.\n..\nFrom me\n.' }],
  ['to someone whose address is no ASCII', { cc: 'Käthe <käthe@pillarbox.test>' }],
  ['with what answers look at', { reply_to: 'desk@pillarbox.test', auto_submitted: 'auto-generated' }],
]

describe.runIf(possible)('our signatures', () => {
  test('are good to mailauth, and the RSA one to OpenDKIM and Mail::DKIM, which know no Ed25519, whatever the message', async () => {
    const { world, dns, records } = await signing()
    const all = await Promise.all(kinds.map(async ([name, input]) => ({ name, raw: await sent(world, input) })))
    for (const { name, raw } of all) {
      expect([name, raw.toString('latin1').match(/^DKIM-Signature: .*$/gm)?.length]).toEqual([name, 2])
      expect([name, await byMailauth(raw, dns)]).toEqual([name, ['pass rsa-sha256', 'pass ed25519-sha256']])
      expect([name, await byPerl(raw, dns)]).toEqual([name, ['pass rsa-sha256', 'invalid ed25519-sha256']])
    }
    const bad = {
      name: 'changed',
      raw: Buffer.from(all[0]!.raw.toString('latin1').replace('Hello there', 'Hello where'), 'latin1'),
    }
    const verdicts = await byOpenDkim(
      [...all, bad].map(({ raw }) => raw),
      records,
    )
    expect(verdicts.slice(0, -1)).toEqual(all.map(() => ''))
    expect(verdicts.at(-1)).toMatch(/bad signature/i)
  }, 120_000)

  test('break when anything they cover is changed, or a field is added that was not there', async () => {
    const { world, dns } = await signing()
    const raw = (await sent(world, { subject: 'Pay 10', body: 'Pay 10 to Bob.' })).toString('latin1')
    const changes: [string, string][] = [
      ['body', raw.replace('to Bob', 'to Eve')],
      ['subject', raw.replace('Subject: Pay 10', 'Subject: Pay 99')],
      ['date', raw.replace(/^Date: .*$/m, 'Date: Fri, 01 Jan 2027 00:00:00 +0000')],
      ['a second From', raw.replace('\r\nFrom:', '\r\nFrom: Eve <eve@pillarbox.test>\r\nFrom:')],
      ['a second Subject above', `Subject: Pay 99\r\n${raw}`],
      ['a Reply-To', `Reply-To: eve@evil.test\r\n${raw}`],
      ['a Cc', `Cc: eve@evil.test\r\n${raw}`],
      ['an In-Reply-To', `In-Reply-To: <x@evil.test>\r\n${raw}`],
      ['an Auto-Submitted', `Auto-Submitted: auto-replied\r\n${raw}`],
      ['a second Content-Type', `Content-Type: text/html\r\n${raw}`],
    ]
    for (const [name, changed] of changes) {
      const octets = Buffer.from(changed, 'latin1')
      expect(changed).not.toBe(raw)
      const verdicts = [...(await byMailauth(octets, dns)), ...(await byPerl(octets, dns))]
      expect([name, verdicts.filter((verdict) => verdict.startsWith('pass'))]).toEqual([name, []])
    }
    expect(await byMailauth(Buffer.from(`Received: by somewhere\r\nX-Spam: no\r\n${raw}`, 'latin1'), dns)).toEqual([
      'pass rsa-sha256',
      'pass ed25519-sha256',
    ])
  }, 60_000)

  test('of a message for later are made when it leaves', async () => {
    const { world, dns } = await signing()
    const { body } = await send(world, { to: world.bob.email, body: 'later', send_at: at(3600) })
    expect(await source(world, body.id)).not.toContain('DKIM-Signature')
    const moved = await world.box.call('PATCH', `/v1/identities/${world.ada.id}/emails/${body.id}`, { send_at: at(1) })
    const later = moved.body['send_at'] as string
    const raw = await expect
      .poll(() => source(world, body.id))
      .toContain('DKIM-Signature')
      .then(() => source(world, body.id))
    expect(new Date(field(raw, 'date')!).getTime()).toBe(Math.floor(Date.parse(later) / 1000) * 1000)
    expect(await byMailauth(Buffer.from(raw, 'latin1'), dns)).toEqual(['pass rsa-sha256', 'pass ed25519-sha256'])
  }, 30_000)
})

describe.runIf(python !== undefined)('both signatures, by the records that the API publishes,', () => {
  test('are good to dkimpy, whatever the message, and neither is once it is changed, or by the keys of others', async () => {
    const { world, published } = await planted()
    for (const [name, input] of kinds) {
      const raw = await sent(world, input)
      expect([name, await byDkimpy(python!, raw, published)]).toEqual([name, ['pass rsa-sha256', 'pass ed25519-sha256']])
    }
    const good = (await sent(world, { subject: 'Pay 10', body: 'Pay 10 to Bob.' })).toString('latin1')
    for (const bad of [good.replace('to Bob', 'to Eve'), good.replace('Subject: Pay 10', 'Subject: Pay 99')]) {
      const verdicts = await byDkimpy(python!, Buffer.from(bad, 'latin1'), published)
      expect(verdicts.filter((verdict) => verdict.startsWith('pass'))).toEqual([])
      expect(verdicts).toHaveLength(2)
    }
    const { published: others } = await planted()
    expect(Object.keys(others)).toEqual(Object.keys(published))
    expect(await byDkimpy(python!, Buffer.from(good, 'latin1'), others)).toEqual(['fail rsa-sha256', 'fail ed25519-sha256'])
  }, 60_000)
})

test('they have no l=, and cover what matters even where it is not', async () => {
  const world = await pair()
  plantKeys(world.box, sealOf(world), 'pillarbox.test')
  await world.box.restart()
  const raw = (await sent(world, { body: 'x' })).toString('latin1')
  const signature = field(raw, 'dkim-signature')!.replaceAll(/\s/g, '')
  expect(signature).toMatch(
    /^v=1;a=(?:rsa|ed25519)-sha256;c=relaxed\/relaxed;d=pillarbox\.test;s=\w+;t=\d+;h=[a-z:-]+;bh=[\w+/]{43}=;b=[\w+/]+=*$/,
  )
  const covered = /;h=([^;]*)/.exec(signature)![1]!.split(':')
  const count = (name: string): number => covered.filter((one) => one === name).length
  for (const name of ['from', 'to', 'date', 'message-id', 'mime-version', 'content-type'])
    expect([name, count(name)]).toEqual([name, 2])
  for (const name of ['subject', 'reply-to', 'cc', 'in-reply-to', 'references', 'auto-submitted'])
    expect([name, count(name)]).toEqual([name, 1])
})

/** The time in so many seconds. */
function at(seconds: number): string {
  return new Date(Date.now() + seconds * 1000).toISOString()
}

async function signing(): Promise<{ world: Pair; dns: string; records: string[] }> {
  const { world, published } = await planted()
  const records = Object.entries(published).map(([name, value]) => `${name}. ${text(value)}`)
  const { server } = await nameServer(knotd!, records)
  return { world, dns: server, records }
}

/** A box with keys, and what it asks to be published of them: texts by name, RSA first. */
async function planted(): Promise<{ world: Pair; published: Record<string, string> }> {
  const world = await pair()
  const names = plantKeys(world.box, sealOf(world), 'pillarbox.test').map(({ name }) => name)
  await world.box.restart()
  const { body } = await world.box.call('GET', '/v1/domains')
  const records: { name: string; value: string }[] = body.data[0].dns_records
  return { world, published: Object.fromEntries(names.map((name) => [name, records.find((one) => one.name === name)!.value])) }
}

function sealOf({ box }: Pair): Seal {
  return new Seal(masterKey(`${box.env['PILLARBOX_DATA_DIR']}-keys`, true))
}

async function sent(world: Pair, input: Record<string, unknown>): Promise<Buffer> {
  const { status, body } = await send(world, { to: world.bob.email, ...input })
  expect(status).toBe(201)
  return Buffer.from(await source(world, body.id), 'latin1')
}

async function byMailauth(raw: Buffer, dns: string): Promise<string[]> {
  const resolver = new Resolver()
  resolver.setServers([dns])
  const { results } = await dkimVerify(raw, { resolver: (name: string) => resolver.resolveTxt(name), strict: true })
  return results
    .map(({ status, algo }: { status: { result: string }; algo?: string }) => `${status.result} ${algo}`)
    .toSorted()
    .toReversed()
}

async function byPerl(raw: Buffer, dns: string): Promise<string[]> {
  const script = `
    use Mail::DKIM::Verifier; use Net::DNS::Resolver; use Mail::DKIM::DNS;
    my ($host, $port) = split /:/, $ARGV[0];
    Mail::DKIM::DNS::resolver(Net::DNS::Resolver->new(nameservers => [$host], port => $port, recurse => 0));
    my $dkim = Mail::DKIM::Verifier->new(); binmode STDIN; my $mail = do { local $/; <STDIN> };
    $dkim->PRINT($mail); $dkim->CLOSE;
    print join("\\n", map { $_->result . ' ' . $_->algorithm } $dkim->signatures);`
  const { output, errors, code } = await run(perl!, ['-e', script, dns], { input: raw })
  if (code !== 0) throw new Error(errors)
  return output.toString().split('\n').toSorted().toReversed()
}

/**
 * What OpenDKIM's own tool says of each message, nothing when it is good. It asks the name server of the system at port 53, so it runs in
 * namespaces where that is a Knot of ours.
 */
async function byOpenDkim(messages: Buffer[], records: string[]): Promise<string[]> {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-opendkim-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const zone = ['$ORIGIN .', '$TTL 60', '@ SOA ns.peer.test. host.peer.test. 1 60 60 60 60', '@ NS ns.peer.test.', ...records]
  writeFileSync(join(directory, 'zone'), `${zone.join('\n')}\n`)
  writeFileSync(join(directory, 'resolv.conf'), 'nameserver 127.0.0.1\n')
  const configuration = [
    `server:\n    listen: 127.0.0.1@53\n    rundir: "${directory}"`,
    `database:\n    storage: "${directory}"`,
    `zone:\n  - domain: "."\n    file: "${directory}/zone"\n    semantic-checks: off\n    journal-content: none\n`,
  ]
  writeFileSync(join(directory, 'knot.conf'), configuration.join('\n'))
  for (const [index, raw] of messages.entries()) writeFileSync(join(directory, `${index}.eml`), raw)
  const script = `set -e; cd "$1"; ip link set lo up; mount --bind resolv.conf /etc/resolv.conf
    setpriv --pdeathsig KILL "$2" -c knot.conf >knot.log 2>&1 & knot=$!
    for try in $(seq 50); do grep -q 'server started' knot.log && break; sleep 0.1; done
    for message in *.eml; do "$3" -C <$message >$message.said 2>&1 || true; done
    kill -9 $knot`
  const { code, errors } = await run(unshare!, ['-rmn', 'sh', '-c', script, 'sh', directory, knotd!, opendkim!])
  if (code !== 0) throw new Error(errors)
  return messages.map((_, index) => readFileSync(join(directory, `${index}.eml.said`), 'utf8'))
}

async function perlWithDkim(): Promise<string | undefined> {
  const program = peer('perl')
  if (program === undefined || (await run(program, ['-MMail::DKIM::Verifier', '-e', '1'])).code === 0) return program
  return absent('Mail::DKIM', 'Mail::DKIM is not installed (apt-get install libmail-dkim-perl)')
}
