import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { gzipSync } from 'node:zlib'
import { address, mailWith } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'

const mebibyte = 1024 * 1024
const multipart = 'Content-Type: multipart/mixed; boundary=b'
const html = 'Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64'
const plain = 'Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64'
const from = 'From: Mallory <mallory@attacker.test>'

const signature = 'DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=attacker.test; s=s; h=From; bh=AAAA; b=AAAA'
const seal = 'ARC-Seal: i=1; cv=none; a=rsa-sha256; d=attacker.test; s=s; b=AAAA'

/** Messages that are dear to read. A stranger sends each from four connections, over and over. */
const messages: [name: string, octets: () => Buffer][] = [
  ['a To of 240 KB of groups', () => mailWith(`To: ${folded('g:a@b.test;, ', 20_000)}x@y.test`, 'Words.')],
  ['a To of 240 KB of commas', () => mailWith(`To: ${folded('a,', 120_000)}`, 'Words.')],
  ['a From of 200 KB of brackets', () => mailWith(`From: ${folded('(', 200_000)} a@b.test`, 'Words.')],
  ['a subject of 240 KB of encoded words', () => mailWith(`Subject: ${folded('=?utf-8?q?a?= ', 17_000)}`, 'Words.')],
  ['240 KB of fields', () => mailWith('X: b\r\n'.repeat(40_000), 'Words.')],
  ['100,000 fields', () => mailWith('X-A: b\r\n'.repeat(100_000), 'Words.')],
  ['one field of 20 MB', () => mailWith(`X-A: ${folded('a', 20_000_000)}`, 'Words.')],
  [
    '240 KB of continuations of a parameter',
    () => {
      const parameters = Array.from({ length: 12_000 }, (_, number) => ` name*${number}*=%41;\r\n`).join('')
      return mailWith(`Content-Type: text/plain;\r\n${parameters} x=y`, 'Words.')
    },
  ],
  [
    '10,000 multiparts in one another',
    () => {
      const nested = Array.from(
        { length: 10_000 },
        (_, depth) => `--b${depth}\r\nContent-Type: multipart/mixed; boundary=b${depth + 1}\r\n\r\n`,
      )
      return mailWith('Content-Type: multipart/mixed; boundary=b0', nested.join(''))
    },
  ],
  [
    '1,001 attachments',
    () =>
      mailWith(
        multipart,
        '--b\r\nContent-Type: application/x\r\nContent-Disposition: attachment; filename=a\r\n\r\nx\r\n'.repeat(1001),
      ),
  ],
  ['10,000 parts beside one another', () => mailWith(multipart, '--b\r\nContent-Type: text/plain\r\n\r\nx\r\n'.repeat(10_000))],
  [
    '3,000 messages in one another',
    () => mailWith('Content-Type: message/rfc822', 'Subject: x\r\nContent-Type: message/rfc822\r\n\r\n'.repeat(3000)),
  ],
  ['20 MB of boundaries that are none', () => mailWith(multipart, '--bx\r\n--\r\n'.repeat(2_000_000))],
  ['10 MB of HTML elements in one another', () => mailWith(html, encoded('<div>'.repeat(2 * mebibyte)))],
  [
    'a style sheet of 2,000 rules for each of 100,000 elements',
    () => {
      const rules = Array.from({ length: 2000 }, (_, number) => `.a{font-size:${number}px}`).join('')
      const elements = Array.from({ length: 100_000 }, (_, number) => `<p class="a" id="${number}">x</p>`).join('')
      return mailWith(html, encoded(`<style>${rules}</style>${elements}`))
    },
  ],
  ['90 anchors around 900 KB of words', () => mailWith(html, encoded('<a>'.repeat(90) + 'a '.repeat(450_000)))],
  [
    '45 links with images around 900 KB of words',
    () => mailWith(html, encoded('<a href="https://a.test/"><img>'.repeat(45) + 'a '.repeat(450_000))),
  ],
  ['90 headings around 900 KB of words', () => mailWith(html, encoded('<h1>'.repeat(90) + 'a '.repeat(450_000)))],
  [
    '90 quotations around 450,000 lines',
    () => mailWith(html, encoded(`${'<blockquote>'.repeat(90)}<pre>${'a\n'.repeat(450_000)}`)),
  ],
  ['45 lists around 450,000 lines', () => mailWith(html, encoded(`${'<ul><li>'.repeat(45)}<pre>${'a\n'.repeat(450_000)}`))],
  ['5 MB of <', () => mailWith(html, encoded('<'.repeat(5 * mebibyte)))],
  ['5 MB of tables and comments', () => mailWith(html, encoded('<table><tr><td><!-- x -->&amp;<p>'.repeat(160_000)))],
  ['5 MB of style sheets', () => mailWith(html, encoded(`<style>${'a{background:url(x)}'.repeat(250_000)}</style>`))],
  ['100,000 links', () => mailWith(html, encoded('<a href="https://a.test/x?y=z">code 123456</a> '.repeat(100_000)))],
  [
    '5 MB of addresses to be found in a text',
    () => mailWith(plain, encoded('http://a.test/(((((( your code is 123456 '.repeat(130_000))),
  ],
  ['5 MB of empty lines', () => mailWith('', '\r\n'.repeat(2_600_000))],
  ['5 MB of quotations', () => mailWith('Content-Type: text/plain; format=flowed', '>>>>>>>>>> > > x \r\n'.repeat(250_000))],
  ['10 MB of control characters', () => mailWith('', `${'\u0001'.repeat(990)}\r\n`.repeat(10_000))],
  ['20 MB in one line', () => mailWith('', Buffer.alloc(20 * mebibyte, 'a'))],
  [
    '10 MB of base64 that is none',
    () =>
      mailWith(
        'Content-Transfer-Encoding: base64\r\nContent-Type: text/plain; charset=iso-2022-jp',
        '\u001b$B=\r\n'.repeat(1_700_000),
      ),
  ],
  [
    'a thousand signatures over 5 MB',
    () => {
      const signatures = Array.from(
        { length: 1000 },
        (_, number) =>
          `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=d${number}.attacker.test; s=s; l=${number}; h=From; bh=AAAA; b=AAAA\r\n`,
      )
      return mailWith(`${signatures.join('')}${from}`, Buffer.alloc(5 * mebibyte, 'a \r\n'))
    },
  ],
  [
    'a signature with 240 KB of blanks in a tag',
    () => mailWith(`${signature}; x=a${folded(' ', 240_000)}y\r\n${from}`, 'Words.'),
  ],
  [
    'a signature with 240 KB of blanks in the name of a tag',
    () => mailWith(`${signature}; x${folded(' ', 240_000)}y=a\r\n${from}`, 'Words.'),
  ],
  [
    '240 KB of blanks in a first line that is no field',
    () => Buffer.concat([Buffer.from(`x${folded(' ', 240_000)}y\r\n`), mailWith(`${signature}\r\n${from}`, 'Words.')]),
  ],
  ['a seal with 240 KB of blanks in a tag', () => mailWith(`${seal}; x=a${folded(' ', 240_000)}y\r\n${from}`, 'Words.')],
  [
    'a report with 10,000 recipients',
    () => {
      const recipients = 'Final-Recipient: rfc822; a@b.test\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n'.repeat(10_000)
      const parts = `--b\r\n\r\nWords\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; x\r\n\r\n${recipients}--b--`
      return mailWith('Content-Type: multipart/report; report-type=delivery-status; boundary=b', parts)
    },
  ],
  [
    'a DMARC report of 400,000 elements below names of 500,000 letters',
    () => aggregate(`<feedback>${`<${'a'.repeat(500_000)}>`.repeat(8)}${'<a/>'.repeat(399_000)}`),
  ],
  [
    'a DMARC report of 99 texts below a name of 9 MB',
    () => {
      const texts = Array.from({ length: 99 }, (_, number) => `<a${number}>x</a${number}>`).join('')
      return aggregate(`<feedback><${'a'.repeat(9_000_000)}>${texts}`)
    },
  ],
  ['a DMARC report of 10 MB of rows', () => aggregate(reportOf(45_000, 'x'))],
  [
    'a TLS report of 10,000 failures of a kilobyte',
    () => {
      const failure = {
        'result-type': 'x'.repeat(255),
        'receiving-mx-hostname': 'x'.repeat(255),
        'failure-reason-code': 'x'.repeat(255),
      }
      const details = {
        policy: { 'policy-domain': 'pillarbox.test' },
        'failure-details': Array.from({ length: 100 }, () => failure),
      }
      const policies = Array.from({ length: 100 }, () => details)
      return aggregate(JSON.stringify({ 'organization-name': 'x', 'report-id': 'x', policies }))
    },
  ],
  [
    'thirteen parts with 240 KB of lines without a colon',
    () => mailWith(multipart, `--b\r\nX: y\r\nZ\r\n${' \r\n'.repeat(80_000)} z\r\n\r\nx\r\n`.repeat(13)),
  ],
  ['a thousand references', () => mailWith(`References: ${folded('<a@b.test> ', 20_000)}`, 'Words.')],
]

const attacks: Attack[] = messages.map(([name, octets]) => ({
  name,
  scopes: [],
  lasts: 1000,
  run: async (attacker) => {
    const message = octets()
    await attacker.repeat(4, (number) => attacker.mail(message, address(number % 4)))
  },
  answers: ['250', '451', '452', '550', '552', '554'],
}))

attacks.push({
  name: 'DMARC reports of 500 rows, each with an id of its own',
  scopes: [],
  lasts: 3000,
  run: (attacker) =>
    attacker.repeat(4, (number) =>
      attacker.mail(aggregate(reportOf(500, 'x'.repeat(255))), address(number % 4), ['dmarc@pillarbox.test']),
    ),
  answers: ['250', '451', '452'],
})

attacks.push({
  name: 'verified DMARC reports of one row, each from a domain and with an id of its own, where 1,000 are stored',
  scopes: [],
  lasts: 3000,
  prepare: async ({ target }) => {
    target.box.dns.txt('client.test', 'v=spf1 ip4:127.0.0.0/8 -all').txt('_dmarc.client.test', 'v=DMARC1; p=none')
    const database = new DatabaseSync(join(target.box.directory, 'pillarbox.db'), { timeout: 60_000 })
    database.exec(`INSERT INTO domain_reports (domain_id, kind, reporter, report_id, sender, site, received_at, data)
      WITH RECURSIVE number (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < 999)
      SELECT id, 'dmarc', 'x', n, 'r' || n || '.client.test', 'client.test', '${new Date().toISOString()}', '{}'
      FROM number, domains WHERE name = 'pillarbox.test'`)
    database.close()
  },
  run: (attacker) => {
    let sent = 0
    return attacker.repeat(4, (number) => {
      const report = aggregate(reportOf(1, 'x'), `From: reports@n${sent++}.client.test`)
      return attacker.mail(report, address(number % 4), ['dmarc@pillarbox.test'])
    })
  },
  answers: ['250', '451', '452'],
})

underAttack(attacks)

/** A DMARC report on the box's domain: rows with this text in every field. */
function reportOf(rows: number, text: string): string {
  const row = `<record><row><source_ip>192.0.2.1</source_ip><count>1</count><policy_evaluated><disposition>${text}</disposition><dkim>${text}</dkim><spf>${text}</spf></policy_evaluated></row><identifiers><header_from>${text}</header_from></identifiers></record>`
  const id = randomUUID()
  return `<feedback><report_metadata><org_name>x</org_name><report_id>${id}</report_id></report_metadata><policy_published><domain>pillarbox.test</domain></policy_published>${row.repeat(rows)}</feedback>`
}

/** A message with an aggregate report, compressed. */
function aggregate(text: string, author = from): Buffer {
  const head =
    author + '\r\nSubject: Report Domain: pillarbox.test\r\nContent-Type: application/gzip\r\nContent-Transfer-Encoding: base64'
  return mailWith(head, gzipSync(text, { level: 9 }).toString('base64').replaceAll(/.{76}/g, '$&\r\n'))
}

/** Text in lines that may be sent, whatever is in it. */
function encoded(text: string): string {
  return Buffer.from(text).toString('base64').replaceAll(/.{76}/g, '$&\r\n')
}

/** So many of them in lines that may be sent. */
function folded(piece: string, times: number): string {
  const inLine = Math.ceil(500 / piece.length)
  return Array.from({ length: Math.ceil(times / inLine) }, () => piece.repeat(inLine)).join('\r\n ')
}
