import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { afterAll, expect, test } from 'vitest'
import { type Packable, zip } from '../../../src/core/zip/zip.ts'
import { appliance, deliver, message, openAppliance } from '../../support/appliance.ts'
import { folder } from '../../support/folder.ts'
import { peer } from '../../support/peer.ts'
import { run, succeed } from '../../support/program.ts'
import { deliverAll, emailsOf, exported, type Fields, finished, imported } from './moving.ts'

/** Whole boxes, archives and processes: a busy machine takes its time, in milliseconds. */
const patient = 240_000

const { box, close } = await openAppliance()
afterAll(close)

const python = peer('python3')
const fixtures = new URL('../../fixtures/mail/', import.meta.url)
const letters = readdirSync(fixtures)
  .filter((name) => name.endsWith('.eml'))
  .map((name) => readFileSync(new URL(name, fixtures)))

async function identity(): Promise<string> {
  return (await box.call('POST', '/v1/identities', {})).body.id
}

async function script(text: string, ...words: string[]): Promise<Fields> {
  const { code, output, errors } = await run(python!, ['-c', text, ...words], {})
  if (code !== 0) throw new Error(errors)
  return JSON.parse(output.toString()) as Fields
}

async function packed(files: Record<string, string | Buffer>): Promise<Buffer> {
  async function* each(): AsyncGenerator<Packable> {
    for (const [name, content] of Object.entries(files)) yield { name, modified: 0, content: Buffer.from(content) }
  }
  return buffer(zip(each()))
}

test(
  'Python reads our mbox: as many messages, with the same bodies; and every file of the ZIP',
  async () => {
    if (!python) return
    const { body: owner } = await box.call('POST', '/v1/identities', { name: 'Read by Python' })
    // what no server would hand in is there too, and keeps its octets
    const files = Object.fromEntries(letters.map((one, index) => [`${String(index).padStart(3, '0')}.eml`, one]))
    const { result } = await imported(box, owner.id, await packed(files))
    expect(result!['imported'] + result!['duplicates']).toBe(letters.length)
    await deliverAll(box, owner.email, [
      message(
        { Subject: 'From' },
        'From here\n>From there\nFrom me Fri Nov 20 10:00:00 2026\n\nFrom a@b.c Fri Nov 20 10:00:00 2026\n',
      ),
    ])
    const directory = folder()
    const { octets, job } = await exported(box, owner.id)
    writeFileSync(join(directory, 'export.zip'), octets)
    const read = await script(
      `
import sys, zipfile, mailbox, json, hashlib
archive = zipfile.ZipFile(sys.argv[1])
bad = archive.testzip()
archive.extract('messages.mbox', sys.argv[2])
lines = [json.loads(line) for line in archive.read('messages.jsonl').splitlines()]
def unquoted(octets):
    out = []
    for line in octets.split(b'\\n'):
        out.append(line[1:] if line.startswith(b'>') and line.lstrip(b'>').startswith(b'From ') else line)
    return b'\\n'.join(out)
box = mailbox.mbox(sys.argv[2] + '/messages.mbox')
bodies = [hashlib.sha256(unquoted(box.get_bytes(key)).rstrip(b'\\n')).hexdigest() for key in box.keys()]
exact = all(hashlib.sha256(archive.read(line['file'])).hexdigest() == line['sha256'] for line in lines if line['file'])
print(json.dumps({'bad': bad, 'names': sorted(archive.namelist()), 'bodies': bodies, 'lines': len(lines), 'exact': exact, 'subjects': [line['subject'] for line in lines]}))
`,
      join(directory, 'export.zip'),
      directory,
    )
    const wanted = letters.map((one) => {
      // as they went over the line, with the line ends of Unix
      const text = one.toString('latin1').replaceAll('\r\n', '\n').replace(/\n+$/, '')
      return createHash('sha256').update(text, 'latin1').digest('hex')
    })
    expect(read).toMatchObject({ bad: null, exact: true, lines: job.result!['messages'] })
    expect(read['bodies']).toHaveLength(job.result!['messages'])
    expect(read['bodies'].filter((one: string) => wanted.includes(one)).length).toBeGreaterThan(80)
    expect(read['names']).toEqual(
      expect.arrayContaining([
        'README.txt',
        'identity.json',
        'messages.jsonl',
        'messages.mbox',
        'threads.jsonl',
        'events.jsonl',
        'cards.jsonl',
        'totp.jsonl',
      ]),
    )
  },
  patient,
)

test(
  'the list of messages has the recipients, links and attachments of each, and what the checks said, also of one to several',
  async () => {
    if (!python) return
    const { body: owner } = await box.call('POST', '/v1/identities', { name: 'Listed' })
    const people = Array.from({ length: 600 }, (_, number) => `person${number}.${'x'.repeat(40)}@list.test`)
    const head = { To: people.join(',\r\n '), Cc: 'copy@list.test', 'Content-Type': 'multipart/mixed; boundary=b' }
    const text = '--b\n\nhttps://a.test/1\n--b\nContent-Disposition: attachment; filename=a.csv\n\na,b\n--b--\n'
    const raw = (name: string): string => message({ ...head, Subject: name, 'Message-ID': `<${name}@sender.test>` }, text)
    const large = (name: string): string => raw(name) + `${'x'.repeat(70)}\r\n`.repeat(1000)
    const tagged = owner.email.replace('@', '+tag@')
    for (const [name, to] of [
      ['one', owner.email],
      ['several', [owner.email, tagged]],
    ] as const) {
      for (const each of [raw(name), large(`${name}-large`)]) {
        expect(await deliver(box.smtp, { to: to as string | string[], raw: each })).toMatch(/^250 /)
      }
    }
    const file = join(folder(), 'export.zip')
    writeFileSync(file, (await exported(box, owner.id)).octets)
    const lines = await script(
      `
import sys, zipfile, json
print(json.dumps([json.loads(line) for line in zipfile.ZipFile(sys.argv[1]).read('messages.jsonl').splitlines()]))
`,
      file,
    )
    expect(lines.map((line: Fields) => line['subject'])).toEqual([
      'one',
      'one-large',
      ...Array(2).fill('several'),
      ...Array(2).fill('several-large'),
    ])
    for (const line of lines as unknown as Fields[]) {
      expect(line['recipients'].to.map(({ address }: Fields) => address)).toEqual(people)
      expect(line['cc']).toEqual([{ address: 'copy@list.test', name: '' }])
      expect(line['links']).toMatchObject([{ url: 'https://a.test/1' }])
      expect(line['attachments']).toMatchObject([{ filename: 'a.csv' }])
      expect(line['authentication']).toMatchObject({ dmarc: { result: 'none' } })
      expect(line['screening']).toMatchObject({ score: 0, reasons: [] })
      expect(line).not.toHaveProperty('body_text')
    }
  },
  patient,
)

test(
  'an mbox and a maildir that Python made are read with their marks and times',
  async () => {
    if (!python) return
    const directory = folder()
    await script(
      `
import sys, mailbox, json
from email.message import EmailMessage
def made(n):
    message = EmailMessage()
    message['From'] = 'Sam <sam@sender.test>'
    message['To'] = 'ada@elsewhere.test'
    message['Subject'] = 'Number %d' % n
    message['Message-ID'] = '<n%d@sender.test>' % n
    message['Date'] = 'Fri, 20 Nov 2020 10:0%d:00 +0100' % n
    message.set_content('From the north, number %d\\n\\nFrom the south\\n\\nFrom here on\\n' % n)
    return message
box = mailbox.mbox(sys.argv[1] + '/old.mbox')
for n in range(3):
    one = mailbox.mboxMessage(made(n))
    one.set_from('sam@sender.test', (2020, 11, 21, 9, n, 30, 5, 326, 0))
    one.set_flags('RO' if n == 0 else 'ROAF' if n == 1 else 'O')
    box.add(one)
box.flush()
md = mailbox.Maildir(sys.argv[1] + '/Maildir')
for n in range(3, 6):
    one = mailbox.MaildirMessage(made(n))
    one.set_subdir('new' if n == 3 else 'cur')
    one.set_flags('' if n == 3 else 'S' if n == 4 else 'FRS')
    md.add(one)
sub = md.add_folder('Work')
one = mailbox.MaildirMessage(made(6))
one.set_subdir('cur')
sub.add(one)
print(json.dumps({}))
`,
      directory,
    )
    const owner = await identity()
    const counts = await imported(box, owner, readFileSync(join(directory, 'old.mbox')))
    expect(counts.result).toMatchObject({ imported: 3, duplicates: 0 })
    writeFileSync(join(directory, 'secret'), message({ Subject: 'Secret' }, 'not to be read'))
    symlinkSync(join(directory, 'secret'), join(directory, 'Maildir/cur/1600000000.link.host:2,S'))
    symlinkSync(directory, join(directory, 'Maildir/.Loop'))
    const said = await run(
      process.execPath,
      [new URL('../../../src/main.ts', import.meta.url).pathname, 'import', owner, join(directory, 'Maildir'), '--json'],
      { env: box.env, cwd: directory },
    )
    expect(said).toMatchObject({ code: 0, errors: '' })
    expect(JSON.parse(said.output.toString())).toMatchObject({ identity_id: owner, imported: 4, duplicates: 0, unreadable: 0 })
    const emails = await emailsOf(box, owner)
    const shown = emails
      .map(({ subject, read, labels, received_at, direction, status }) => ({
        subject,
        read,
        labels,
        received_at,
        direction,
        status,
      }))
      .toSorted((one, other) => (one.subject < other.subject ? -1 : 1))
    const arrived = { direction: 'inbound', status: 'received' }
    expect(shown.slice(0, 3)).toEqual([
      { ...arrived, subject: 'Number 0', read: true, labels: [], received_at: '2020-11-21T09:00:30.000Z' },
      { ...arrived, subject: 'Number 1', read: true, labels: ['flagged', 'answered'], received_at: '2020-11-21T09:01:30.000Z' },
      { ...arrived, subject: 'Number 2', read: false, labels: [], received_at: '2020-11-21T09:02:30.000Z' },
    ])
    expect(shown.slice(3).map(({ read, labels }) => [read, labels])).toEqual([
      [false, []],
      [true, []],
      [true, ['flagged', 'answered']],
      [false, ['Work']],
    ])
    expect(emails[0]).toMatchObject({
      from: 'sam@sender.test',
      from_name: 'Sam',
      authentication: { dmarc: { result: 'none', reason: 'imported' } },
      verified_domain: null,
    })
    expect(emails[0]!['body_text'].trimEnd().replaceAll('\r\n', '\n')).toBe(
      'From the north, number 0\n\nFrom the south\n\nFrom here on',
    )
  },
  patient,
)

test(
  'imported mail is found and stands in threads, and no event, wait or unread count tells of it',
  async () => {
    const owner = await identity()
    const first = message(
      { Subject: 'Plans', 'Message-ID': '<p1@sender.test>', Date: 'Mon, 02 Mar 2020 10:00:00 +0000' },
      'Let us meet at the zebra.',
    )
    const second = message(
      {
        Subject: 'Re: Plans',
        'Message-ID': '<p2@sender.test>',
        'In-Reply-To': '<p1@sender.test>',
        Date: 'Mon, 02 Mar 2020 11:00:00 +0000',
      },
      'Yes.',
    )
    expect(
      (await imported(box, owner, await packed({ 'a.eml': first, 'b.eml': second, 'notes.txt': 'x' }))).result,
    ).toMatchObject({
      imported: 2,
      ignored: 1,
    })
    const at = `/v1/identities/${owner}`
    const { body: threads } = await box.call('GET', `${at}/threads`)
    expect(threads.data).toMatchObject([
      { subject: 'Plans', message_count: 2, unread_count: 0, last_message_at: '2020-03-02T11:00:00.000Z' },
    ])
    expect((await box.call('GET', `${at}/emails/search?query=zebra`)).body.data).toHaveLength(1)
    const { body: events } = await box.call('GET', `${at}/events`)
    expect(events.data.map(({ type }) => type)).toEqual(['identity.created'])
    expect((await box.call('GET', `${at}/wait?timeout=0`)).body).toMatchObject({ timed_out: true })
  },
  patient,
)

test(
  'Gmail’s labels, transport’s time and what cannot be parsed are taken over',
  async () => {
    const owner = await identity()
    const takeout =
      'From 1234567890123456789@xxx Fri Nov 20 10:05:00 +0000 2020\r\nX-GM-THRID: 1\r\nX-Gmail-Labels: Inbox,Unread,=?UTF-8?Q?Caf=C3=A9?=\r\n' +
      'Received: from a by b; Thu, 19 Nov 2020 09:00:00 +0100\r\nFrom: Sam <sam@sender.test>\r\nSubject: Takeout\r\n\r\nHello\r\n\r\n' +
      `From nobody Fri Nov 20 10:06:00 2020\r\nSubject: Broken\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\nno parts\r\n`
    expect((await imported(box, owner, takeout)).result).toMatchObject({ imported: 2, unreadable: 0 })
    const emails = await emailsOf(box, owner)
    expect(emails[0]).toMatchObject({
      subject: 'Takeout',
      read: false,
      labels: ['Inbox', 'Café'],
      received_at: '2020-11-19T08:00:00.000Z',
    })
    expect(emails[1]).toMatchObject({
      subject: 'Broken',
      received_at: '2020-11-20T10:06:00.000Z',
      parse_error: expect.stringContaining('no_parts'),
    })
  },
  patient,
)

test(
  'a message alone, with the line ends of Unix, is a message; what is none is refused',
  async () => {
    const owner = await identity()
    const raw = message({ Subject: 'Alone', 'Message-ID': '<alone@sender.test>' }, 'x\n')
    expect((await imported(box, owner, raw.replaceAll('\r\n', '\n'))).result).toMatchObject({ imported: 1 })
    expect((await imported(box, owner, raw)).result).toMatchObject({ imported: 0, duplicates: 1 })
    expect(await imported(box, owner, '\u0000\u0001 no mail')).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('neither an mbox') },
    })
  },
  patient,
)

test(
  'curl uploads a file as the documentation says',
  async () => {
    const curl = peer('curl')
    if (!curl) return
    const owner = await identity()
    const file = join(folder(), 'old.mbox')
    writeFileSync(file, `From a@b.test Fri Nov 20 10:00:00 2020\n${message({ Subject: 'By curl' }, 'x')}\n\n`.repeat(2))
    const words = [
      '-sS',
      '-T',
      file,
      '-X',
      'POST',
      `${box.url}/v1/identities/${owner}/import`,
      '-H',
      `Authorization: Bearer ${box.key}`,
    ]
    const job = JSON.parse((await succeed(curl, words)).toString()) as Fields
    expect(await finished(box, job['id'])).toMatchObject({ status: 'done', result: { imported: 1, duplicates: 1 } })
  },
  patient,
)

test(
  'the commands export by address and import by name, beside a running box and on a stopped one',
  async () => {
    const other = await appliance()
    const { body: from } = await other.call('POST', '/v1/identities', { name: 'From' })
    await other.call('POST', '/v1/identities', { name: 'Into' })
    await deliverAll(other, from.email, [message({ Subject: 'Carried', 'Message-ID': '<c@sender.test>' }, 'x')])
    const file = join(other.directory, 'from.zip')
    const pillarbox = (...words: string[]): ReturnType<typeof run> =>
      run(process.execPath, [new URL('../../../src/main.ts', import.meta.url).pathname, ...words], {
        env: other.env,
        cwd: other.directory,
      })
    expect(await pillarbox('export', 'Nobody', file)).toMatchObject({
      code: 1,
      errors: expect.stringContaining('has no identity Nobody'),
    })
    expect(existsSync(file)).toBe(false)
    const told = await pillarbox('export', from.email, file, '--json')
    expect(told).toMatchObject({ code: 0, errors: '' })
    expect(JSON.parse(told.output.toString())).toMatchObject({ file, identity_id: from.id, messages: 1, sms: 0 })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect((await other.call('GET', '/v1/jobs?kind=export')).body.data).toEqual([])
    expect(await pillarbox('export', from.email, file)).toMatchObject({ code: 1, errors: expect.stringContaining('--force') })
    await other.app.stop()
    const stopped = await pillarbox('import', 'into', file)
    expect([stopped.code, stopped.output.toString()]).toEqual([0, 'into@pillarbox.test: 1 e-mails imported.\n'])
    await other.restart()
    const { body } = await other.call('GET', '/v1/identities')
    const into = body.data.find(({ name }) => name === 'Into')
    expect((await emailsOf(other, into.id)).map((one) => one['subject'])).toEqual(['Carried'])
  },
  patient,
)
