import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Appliance, deliver, message } from '../support/appliance.ts'
import { absent, peer } from '../support/peer.ts'
import { run, succeed } from '../support/program.ts'
import { byDkimpy, pythonWithDkim } from './dkimpy.ts'
import { nameServer, type NameServer, text } from './dns.ts'
import { arrived, boxWithAda, keptFor } from './kept.ts'

const knotd = peer('knotd', 'apt-get install knot')
const genkey = peer('opendkim-genkey', 'apt-get install opendkim-tools')
const testmsg = peer('opendkim-testmsg', 'apt-get install opendkim-tools')
const perl = await perlWithDkim()
const python = await pythonWithDkim()
const possible = [knotd, genkey, testmsg, perl, python, peer('setpriv', 'apt-get install util-linux')].every(
  (program) => program !== undefined,
)

const to = 'ada@pillarbox.test'
const from = 'pay@signer.test'
// with a type that the signature covers, as a line ends in spaces
const type = { 'MIME-Version': '1.0', 'Content-Type': 'text/plain; charset=utf-8' }
const mail = message(
  { From: `Pay <${from}>`, To: to, Subject: 'Your invoice', 'Message-ID': '<1@signer.test>', ...type },
  'Dear Ada,\n\n.please   find  \nthe invoice below.\n\n',
)

let keys: string

describe.runIf(possible)('a domain with SPF, DKIM and DMARC in the DNS', () => {
  beforeAll(async () => {
    keys = mkdtempSync(join(tmpdir(), 'pillarbox-keys-'))
    await succeed(genkey!, ['-b', '2048', '-d', 'signer.test', '-s', 'mail', '-D', keys])
    await succeed(genkey!, ['-b', '2048', '-d', 'signer.test', '-s', 'tested', '-t', '-D', keys])
  })
  afterAll(() => rmSync(keys, { recursive: true, force: true }))

  test('passes all three, signed by Mail::DKIM with a key of OpenDKIM, in every canonicalization', async () => {
    const { box, ada } = await scene('p=reject')
    for (const canonicalization of ['relaxed/relaxed', 'relaxed/simple', 'simple/relaxed', 'simple/simple']) {
      const signed = await sign(canonicalization, mail)
      expect(signed.toString()).toContain(`c=${canonicalization};`)
      expect(await deliver(box.smtp, { from, to, raw: signed })).toMatch(/^250 2\.0\.0 /)
      const [kept] = await keptFor(box, ada)
      expect(kept!.octets.equals(signed)).toBe(true)
      expect(kept!.email).toMatchObject({ verified_domain: 'signer.test', spam: false })
      expect(kept!.email.authentication).toMatchObject({
        spf: { result: 'pass', domain: 'signer.test' },
        dkim: [{ result: 'pass', domain: 'signer.test', selector: 'mail', algorithm: 'rsa-sha256', aligned: true }],
        dmarc: { result: 'pass', domain: 'signer.test', policy: 'reject', aligned_by: ['spf', 'dkim'] },
      })
      expect(results(kept!.trace)).toBe(
        'pillarbox.test; spf=pass smtp.mailfrom=signer.test; ' +
          'dkim=pass header.d=signer.test header.s=mail header.a=rsa-sha256; dmarc=pass (p=reject) header.from=signer.test',
      )
      await box.call('DELETE', `/v1/identities/${ada}/emails/${kept!.email.id}`)
    }
  })

  test('without a signature stands and falls with SPF', async () => {
    // the last is too long for an answer by UDP: the DNS is asked again by TCP
    const many = Array.from({ length: 150 }, (_, index) => `ip4:192.0.2.${index}`).join(' ')
    const good = ['ip4:127.0.0.1', 'a:mx.signer.test', 'mx:signer.test', 'include:spf.signer.test', `${many} ip4:127.0.0.1`]
    const domains = [...good, 'ip4:192.0.2.1', many].map((mechanism, index) => ({ domain: `spf-${index}.test`, mechanism }))
    const records = domains.flatMap(({ domain, mechanism }) => [
      `${domain}. ${text(`v=spf1 ${mechanism} -all`)}`,
      `_dmarc.${domain}. ${text('v=DMARC1; p=reject')}`,
    ])
    const { box, ada } = await scene('p=reject', 'v=spf1 -all', records)
    for (const { domain, mechanism } of domains) {
      const reply = await deliver(box.smtp, { from: `pay@${domain}`, to, raw: mail.replaceAll('signer.test', domain) })
      expect([mechanism, reply.slice(0, 10)]).toEqual([mechanism, good.includes(mechanism) ? '250 2.0.0 ' : '550 5.7.26'])
    }
    const kept = await keptFor(box, ada, good.length)
    expect(kept).toHaveLength(good.length)
    for (const { email } of kept) {
      expect(email.verified_domain).toBe(email.from.slice('pay@'.length))
      expect(email.authentication).toMatchObject({
        spf: { result: 'pass' },
        dkim: [],
        dmarc: { result: 'pass', aligned_by: ['spf'] },
      })
    }
  })

  test.each([
    ['p=reject', '550', false],
    ['p=quarantine', '250', true],
    ['p=none', '250', false],
  ])('a message changed on its way fails, and %s decides', async (policy, code, spam) => {
    const { box, ada } = await scene(policy, 'v=spf1 ip4:192.0.2.1 -all')
    const signed = await sign('relaxed/relaxed', mail)
    const tampered = Buffer.from(signed.toString('latin1').replace('invoice below', 'invoice here'), 'latin1')
    const reply = await deliver(box.smtp, { from, to, raw: tampered })
    expect(reply).toMatch(code === '250' ? /^250 / : /^550 5\.7\.26 .*signer\.test/)
    expect(await arrived(box, ada, 0)).toHaveLength(code === '250' && !spam ? 1 : 0)
    const shown = await keptFor(box, ada, 0, '&spam=true')
    expect(shown).toHaveLength(spam ? 1 : 0)
    if (code !== '250') return
    const [kept] = spam ? shown : await keptFor(box, ada)
    expect(kept!.email).toMatchObject({ spam, verified_domain: null })
    expect(kept!.email.authentication).toMatchObject({
      spf: { result: 'fail' },
      dkim: [{ result: 'fail', domain: 'signer.test', aligned: false }],
      dmarc: { result: 'fail', policy: policy.slice(2), aligned_by: [] },
    })
    expect(results(kept!.trace)).toMatch(/; spf=fail .*; dkim=fail header\.d=signer\.test .*; dmarc=fail \(p=/)
    // the same message as its author sent it does pass
    expect(await deliver(box.smtp, { from, to, raw: signed })).toMatch(/^250 /)
    const [whole] = await keptFor(box, ada, spam ? 1 : 2)
    expect(whole!.email.authentication).toMatchObject({
      dkim: [{ result: 'pass' }],
      dmarc: { result: 'pass', aligned_by: ['dkim'] },
    })
  })

  test('lines that somebody puts before a signed message take its verdict away, though the signature is right', async () => {
    const { box, ada } = await scene('p=none', 'v=spf1 -all')
    const code = 'Subject: Your sign-in code is 493817\r\n'
    const forged = `${code}Reply-To: eve@else.test\r\nContent-Type: multipart/mixed; boundary=x\r\n`
    const signed = (await sign('relaxed/relaxed', mail)).toString('latin1')
    const [record] = /p=[^)]*/.exec(readFileSync(join(keys, 'mail.txt'), 'utf8'))!
    const records = { 'mail._domainkey.signer.test': `v=DKIM1; k=rsa; ${record.replaceAll(/["\s]/g, '')}` }
    expect(await byDkimpy(python!, Buffer.from(code + signed, 'latin1'), records)).toEqual(['pass rsa-sha256'])
    await deliver(box.smtp, { from: 'eve@else.test', to, raw: forged + signed })
    const [kept] = await keptFor(box, ada)
    expect(kept!.email).toMatchObject({ verified_domain: null, reply_to_verified: null })
    expect(kept!.email.authentication).toMatchObject({
      dkim: [{ result: 'policy', domain: 'signer.test', aligned: false }],
      dmarc: { result: 'fail', aligned_by: [] },
    })
    expect(results(kept!.trace)).toMatch(/; dkim=policy header\.d=signer\.test .*; dmarc=fail/)
    const strict = await scene('p=reject', 'v=spf1 -all')
    for (const lines of [forged, code])
      expect(await deliver(strict.box.smtp, { from: 'eve@else.test', to, raw: lines + signed })).toMatch(/^550 5\.7\.26 /)
  })

  test('a key that OpenDKIM made for testing vouches for nothing (RFC 6376 3.6.1)', async () => {
    const { box, ada } = await scene('p=none', 'v=spf1 -all')
    await deliver(box.smtp, { from, to, raw: await sign('relaxed/relaxed', mail, 'tested') })
    const [kept] = await keptFor(box, ada)
    expect(kept!.email.verified_domain).toBeNull()
    expect(kept!.email.authentication).toMatchObject({
      dkim: [{ result: 'policy', selector: 'tested', aligned: false, reason: 'the key is in testing (t=y)' }],
      dmarc: { result: 'fail', aligned_by: [] },
    })
  })

  test('a signature with SHA-1, as OpenDKIM’s own tool makes it, counts for nothing (RFC 8301)', async () => {
    const { box, ada } = await scene('p=none', 'v=spf1 -all')
    const signed = await succeed(testmsg!, ['-C', '-d', 'signer.test', '-s', 'mail', '-k', join(keys, 'mail.private')], {
      input: mail,
    })
    expect(signed.toString()).toContain('a=rsa-sha1;')
    await deliver(box.smtp, { from, to, raw: signed })
    const [kept] = await keptFor(box, ada)
    expect(kept!.email.verified_domain).toBeNull()
    expect(kept!.email.authentication!.dkim).toMatchObject([{ domain: 'signer.test', algorithm: 'rsa-sha1', aligned: false }])
    expect(kept!.email.authentication!.dkim[0]!.result).not.toBe('pass')
    expect(kept!.email.authentication!.dmarc.result).toBe('fail')
  })

  test('a signature of another domain does not speak for the author', async () => {
    const { box } = await scene('p=reject', 'v=spf1 -all')
    const forged = await sign('relaxed/relaxed', mail.replaceAll('signer.test', 'victim.test'))
    expect(await deliver(box.smtp, { from, to, raw: forged })).toMatch(/^550 5\.7\.26 .*victim\.test/)
  })

  test('when the DNS is gone nothing is known, and the message is kept', async () => {
    const { box, ada, dns } = await scene('p=reject')
    await dns.stop()
    expect(await deliver(box.smtp, { from, to, raw: await sign('relaxed/relaxed', mail) })).toMatch(/^250 /)
    const [kept] = await keptFor(box, ada)
    expect(kept!.email).toMatchObject({ spam: false, verified_domain: null })
    expect(kept!.email.authentication).toMatchObject({
      spf: { result: 'temperror' },
      dkim: [{ result: 'temperror', domain: 'signer.test' }],
      dmarc: { result: 'temperror' },
    })
    expect(results(kept!.trace)).toMatch(/; spf=temperror .*; dkim=temperror .*; dmarc=temperror/)
  })

  test('the example of RFC 8463, with its Ed25519 and its RSA signature, passes', async () => {
    const { box, ada } = await scene('p=none')
    expect(await deliver(box.smtp, { from: 'joe@football.example.com', to, raw: football })).toMatch(/^250 /)
    const [kept] = await keptFor(box, ada)
    expect(kept!.email.verified_domain).toBe('football.example.com')
    expect(kept!.email.authentication).toMatchObject({
      dkim: [
        { result: 'pass', selector: 'brisbane', algorithm: 'ed25519-sha256', aligned: true },
        { result: 'pass', selector: 'test', algorithm: 'rsa-sha256', aligned: true },
      ],
      dmarc: { result: 'pass', policy: 'reject', aligned_by: ['dkim'] },
    })
  })
})

/** A box that asks Knot, where signer.test and victim.test have this policy and signer.test publishes the key. */
async function scene(policy: string, spf = 'v=spf1 ip4:127.0.0.1 -all', records: string[] = []): Promise<Scene> {
  const dns = await nameServer(knotd!, [
    `signer.test. ${text(spf)}`,
    'signer.test. MX 10 mx.signer.test.',
    'mx.signer.test. A 127.0.0.1',
    `spf.signer.test. ${text('v=spf1 ip4:127.0.0.0/29 -all')}`,
    ...['signer.test', 'victim.test'].map((domain) => `_dmarc.${domain}. ${text(`v=DMARC1; ${policy}; adkim=s; aspf=s`)}`),
    `_dmarc.football.example.com. ${text('v=DMARC1; p=reject')}`,
    `brisbane._domainkey.football.example.com. ${text(`v=DKIM1; k=ed25519; p=${footballKeys.ed25519}`)}`,
    `test._domainkey.football.example.com. ${text(`v=DKIM1; k=rsa; p=${footballKeys.rsa}`)}`,
    ...records,
    // as OpenDKIM wrote it: longer than one string of a TXT record may be
    '$ORIGIN signer.test.',
    readFileSync(join(keys, 'mail.txt'), 'utf8'),
    readFileSync(join(keys, 'tested.txt'), 'utf8'),
  ])
  return { ...(await boxWithAda({ PILLARBOX_DNS__SERVERS: dns.server })), dns }
}

interface Scene {
  box: Appliance
  ada: string
  dns: NameServer
}

/** The message with a DKIM-Signature of signer.test by Mail::DKIM on top. */
function sign(canonicalization: string, raw: string, selector = 'mail'): Promise<Buffer> {
  const script = `
    use Mail::DKIM::Signer; use Mail::DKIM::PrivateKey;
    my ($method, $selector, $file) = @ARGV;
    my $key = Mail::DKIM::PrivateKey->load(File => $file);
    binmode STDIN; binmode STDOUT; my $mail = do { local $/; <STDIN> };
    my $dkim = Mail::DKIM::Signer->new(Algorithm => 'rsa-sha256', Method => $method, Domain => 'signer.test', Selector => $selector, Key => $key);
    $dkim->PRINT($mail); $dkim->CLOSE;
    my $field = $dkim->signature->as_string; $field =~ s/\\r?\\n/\\r\\n/g;
    print $field, "\\r\\n", $mail;`
  return succeed(perl!, ['-e', script, canonicalization, selector, join(keys, `${selector}.private`)], { input: raw })
}

/** The value of the first Authentication-Results field, unfolded. */
function results(trace: string): string | undefined {
  return /^Authentication-Results: ((?:.*\r\n[ \t])*.*)\r\n/m.exec(trace)?.[1]?.replaceAll(/\r\n\s+/g, ' ')
}

/** Perl, where it has Mail::DKIM. */
async function perlWithDkim(): Promise<string | undefined> {
  const program = peer('perl')
  if (program === undefined || (await run(program, ['-MMail::DKIM::Signer', '-e', '1'])).code === 0) return program
  return absent('Mail::DKIM', 'Mail::DKIM is not installed (apt-get install libmail-dkim-perl)')
}

// RFC 8463 appendix A
const footballKeys = {
  ed25519: '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
  rsa:
    'MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91y3FutAC' +
    'DfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB',
}

const football = `DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :
 date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3
 DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz
 dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
`.replaceAll('\n', '\r\n')
