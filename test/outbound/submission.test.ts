import { X509Certificate } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { appliance, deliver, message } from '../support/appliance.ts'
import { certificate } from '../support/receiver.ts'
import { Dialogue } from '../support/smtp.ts'
import {
  base64,
  type Door,
  greeted,
  loggedIn,
  office,
  type Office,
  openOffice,
  outbound,
  plain,
  sourceOf,
  submit,
} from '../support/submission.ts'

let here: Office
let close: () => Promise<void>
beforeAll(async () => {
  ;({ here, close } = await openOffice())
})
afterAll(() => close())

const hello = message({ From: 'Ada <ada@pillarbox.test>', To: 'Bob <bob@elsewhere.test>', Subject: 'Hello' }, 'Hi Bob.\n')

describe('the doors', () => {
  test('are closed unless configured', async () => {
    const box = await appliance()
    expect(box.app.submissionAddresses).toEqual({ starttls: [], tls: [] })
  })

  test('offer a login under TLS only, and say what they take', async () => {
    const { port } = here
    const client = await Dialogue.connect(port())
    expect(await client.reply()).toMatch(/^220 pillarbox\.test ESMTP/)
    const inTheClear = await client.say('EHLO client.test')
    expect(inTheClear).toMatch(/^250[- ]STARTTLS/m)
    expect(inTheClear).not.toMatch(/AUTH|REQUIRETLS/)
    await client.say('STARTTLS')
    await client.upgrade()
    const secure = await client.say('EHLO client.test')
    const keywords = secure.split('\r\n').map((line) => line.slice(4))
    expect(keywords).toEqual(
      expect.arrayContaining(['AUTH PLAIN LOGIN', 'REQUIRETLS', '8BITMIME', 'SMTPUTF8', 'PIPELINING', 'ENHANCEDSTATUSCODES']),
    )
    expect(secure).toMatch(/^250[- ]SIZE \d+/m)
    expect(secure).not.toMatch(/STARTTLS|DSN/)
    client.destroy()
    const direct = await Dialogue.connect(port('tls'))
    await direct.upgrade()
    expect(await direct.reply()).toMatch(/^220 pillarbox\.test ESMTP$/)
    expect(await direct.say('EHLO client.test')).toBe(secure)
    expect(await direct.say('STARTTLS')).toMatch(/^503 /)
    direct.destroy()
  })

  test('take no login in the clear, however it is spelled', async () => {
    const { port, box } = here
    const client = await Dialogue.hello(port())
    const spelled = [
      plain('ada@pillarbox.test', box.key),
      'AUTH PLAIN',
      'auth login',
      `AUTH LOGIN ${base64('ada@pillarbox.test')}`,
    ]
    for (const login of spelled) expect(await client.say(login)).toMatch(/^530 5\.7\.0 .*STARTTLS/)
    expect(await client.say('MAIL FROM:<ada@pillarbox.test>')).toMatch(/^530 5\.7\.0 .*STARTTLS/)
    client.destroy()
  })

  test('serve a renewed certificate to new sessions, while an old one lives on', async () => {
    const folder = (await appliance()).directory
    const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    const write = async (): Promise<string> => {
      const made = await certificate('pillarbox.test')
      writeFileSync(cert, made.cert)
      writeFileSync(key, made.key)
      return new X509Certificate(made.cert).serialNumber
    }
    const first = await write()
    const own = await office({ PILLARBOX_SMTP__TLS__CERT: cert, PILLARBOX_SMTP__TLS__KEY: key })
    const serials = async (): Promise<(string | undefined)[]> => {
      const clients = [await greeted(own.port(), 'starttls'), await greeted(own.port('tls'), 'tls')]
      const shown = clients.map(({ socket }) => (socket as TLSSocket).getPeerX509Certificate()?.serialNumber)
      for (const client of clients) client.destroy()
      return shown
    }
    const old = await loggedIn(own)
    expect(await serials()).toEqual([first, first])
    const second = await write()
    await own.box.app.reload(await loadConfig({ env: own.box.env, cwd: own.box.directory }))
    expect(await serials()).toEqual([second, second])
    expect(await submit(old, { raw: hello })).toMatch(/^250 /)
    old.destroy()
  })
})

describe('a message', () => {
  test.each<Door>(['starttls', 'tls'])('goes the way of the API, handed in by %s', async (door) => {
    const client = await loggedIn(here, { door })
    const answer = await submit(client, { raw: hello })
    expect(answer).toMatch(/^250 2\.0\.0 Ok: queued as email_\w{26}$/)
    const id = answer.split(' ').at(-1)!
    const [listed] = await outbound(here)
    expect(listed).toMatchObject({ id, direction: 'outbound', from: 'ada@pillarbox.test', subject: 'Hello', read: true })
    const { body } = await here.box.call('GET', `/v1/identities/${here.ada}/emails/${id}`)
    expect(body).toMatchObject({
      from_name: 'Ada',
      to: 'bob@elsewhere.test',
      recipients: { to: [expect.objectContaining({ address: 'bob@elsewhere.test' })], cc: [], bcc: [] },
      deliveries: [{ recipient: 'bob@elsewhere.test' }],
      body_text: expect.stringContaining('Hi Bob.'),
      labels: [],
    })
    const { body: events } = await here.box.call('GET', `/v1/identities/${here.ada}/events?type=email.queued`)
    expect(events.data[0]).toMatchObject({ type: 'email.queued', data: { id } })
    client.destroy()
  })

  test('is completed, loses what is for nobody else to see, and keeps every other octet', async () => {
    const client = await loggedIn(here)
    const kept = [
      'From: ada@pillarbox.test\r\n',
      'Subject:  two  blanks \r\n\tfolded\r\n',
      'X-Odd:value\r\n',
      'Sender: someone@elsewhere.test\r\n',
    ]
    const body = '\r\n.leading dot \t\r\n\r\nGr\u00fc\u00dfe\r\n\r\n\r\n'
    const raw = [
      kept[0],
      'BCC: secret@elsewhere.test,\r\n more@elsewhere.test\r\n',
      'Return-Path: <x@elsewhere.test>\r\n',
      ...kept.slice(1),
    ]
    const answer = await submit(client, { raw: `${raw.join('')}${body}`, to: ['secret@elsewhere.test'] })
    const source = await sourceOf(here, answer.split(' ').at(-1)!)
    for (const field of kept) expect(source).toContain(field)
    expect(source.endsWith(body)).toBe(true)
    expect(source).toMatch(/^Date: \w{3}, \d\d \w{3} \d{4} [\d:]{8} \+0000\r$/m)
    expect(source).toMatch(/^Message-ID: <[^\s@]+@pillarbox\.test>\r$/im)
    // a signature is letters by chance
    expect(source.replaceAll(/^DKIM-Signature:.*\r\n(?:[ \t].*\r\n)*/gm, '')).not.toMatch(/^bcc|secret|more@|^return-path/im)
    const again = await submit(client, { raw: hello.replace('Date:', 'Message-ID: <mine@pillarbox.test>\r\nDate:') })
    const second = await sourceOf(here, again.split(' ').at(-1)!)
    expect(second.match(/^Date:/gim)).toHaveLength(1)
    expect(second.match(/^Message-ID:.*/gim)).toEqual(['Message-ID: <mine@pillarbox.test>'])
    client.destroy()
  })

  test('bears where it was taken, and nothing of where it came from', async () => {
    const client = await loggedIn(here)
    await client.say('EHLO secret-host.client.test')
    const answer = await submit(client, { raw: hello })
    const source = await sourceOf(here, answer.split(' ').at(-1)!)
    expect(source).toMatch(/^Received: by pillarbox\.test with ESMTPSA\r\n\tid [\w.]+; \w{3}, /m)
    expect(source).not.toMatch(/127\.0\.0\.1|client\.test/)
    client.destroy()
  })

  test('leaves one line in the log, as does what is refused', async () => {
    const client = await loggedIn(here, { door: 'tls' })
    const id = (await submit(client, { raw: hello })).split(' ').at(-1)!
    await client.say('MAIL FROM:<ada@pillarbox.test>')
    await client.say('RCPT TO:<bob@[192.0.2.1]>')
    const lines = here.box.logged.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines.filter(({ queue_id }) => queue_id === id)).toEqual([
      expect.objectContaining({
        msg: 'message taken',
        part: 'submission',
        ip: '127.0.0.1',
        from: 'ada@pillarbox.test',
        from_domain: 'pillarbox.test',
        to: ['bob@elsewhere.test'],
        message_id: expect.stringMatching(/^<.*@pillarbox\.test>$/),
        email_ids: [id],
        tls: 'TLSv1.3',
      }),
    ])
    expect(lines.findLast(({ level }) => level === 'info')).toMatchObject({
      msg: 'recipient refused',
      part: 'submission',
      to: 'bob@[192.0.2.1]',
    })
    client.destroy()
  })

  test('is one of its conversation', async () => {
    const mail = { From: 'Bob <bob@elsewhere.test>', 'Message-ID': '<asked@elsewhere.test>', Subject: 'Lunch?' }
    expect(
      await deliver(here.box.smtp, { from: 'bob@elsewhere.test', to: 'ada@pillarbox.test', raw: message(mail, 'When?\n') }),
    ).toMatch(/^250/)
    const client = await loggedIn(here)
    await submit(client, {
      raw: hello
        .replace('Hello', 'Re: Lunch?')
        .replace('Date:', 'In-Reply-To: <asked@elsewhere.test>\r\nReferences: <asked@elsewhere.test>\r\nDate:'),
    })
    const { body } = await here.box.call('GET', `/v1/identities/${here.ada}/threads`)
    expect(body.data[0]).toMatchObject({ subject: 'Lunch?', message_count: 2 })
    client.destroy()
  })

  test('has copies for all it is handed in for, and several go over one session', async () => {
    const client = await loggedIn(here)
    const raw = message({ From: 'ada@pillarbox.test', To: 'bob@elsewhere.test', Cc: 'cem@elsewhere.test', Subject: 'All' }, 'x\n')
    const to = ['bob@elsewhere.test', 'CEM@elsewhere.test', 'dan@elsewhere.test', 'ada@pillarbox.test']
    for (let count = 0; count < 3; count++) expect(await submit(client, { raw, to })).toMatch(/^250 /)
    const rows = await outbound(here)
    expect(rows.slice(0, 4).map(({ subject }) => subject === 'All')).toEqual([true, true, true, false])
    const [row] = rows
    const { body } = await here.box.call('GET', `/v1/identities/${here.ada}/emails/${String(row!['id'])}`)
    expect(named(body.recipients.to)).toEqual(['bob@elsewhere.test'])
    expect(named(body.recipients.cc)).toEqual(['cem@elsewhere.test'])
    expect(named(body.recipients.bcc)).toEqual(['dan@elsewhere.test', 'ada@pillarbox.test'])
    client.destroy()
  })

  test('of more than smtp.size is refused, announced or not', async () => {
    const own = await office({ PILLARBOX_SMTP__SIZE: '65536' })
    const client = await loggedIn(own)
    expect(await client.say('MAIL FROM:<ada@pillarbox.test> SIZE=65537')).toMatch(/^552 5\.3\.4 /)
    expect(await submit(client, { raw: `${hello}${'x'.repeat(998)}\r\n`.padEnd(66_000, 'y\r\n') })).toMatch(/^5\d\d /)
    expect(await outbound(own)).toEqual([])
    client.destroy()
  })

  test('shares its room in memory with what strangers send: who holds most gives way', async () => {
    const own = await office({ PILLARBOX_SMTP__SIZE: '262144', PILLARBOX_SMTP__MAX_MEMORY: '0' })
    const big = `${hello}${`${'x'.repeat(98)}\r\n`.repeat(2600)}`
    const holding: Dialogue[] = []
    for (let count = 0; count < 2; count++) {
      const client = await loggedIn(own)
      for (const command of ['MAIL FROM:<ada@pillarbox.test>', 'RCPT TO:<bob@elsewhere.test>', 'DATA']) await client.say(command)
      client.send(big)
      holding.push(client)
    }
    const held = (): Promise<number> => own.box.app.metrics.total('pillarbox_smtp_held_bytes', () => true)
    await expect.poll(held).toBeGreaterThan(2 * 260_000)
    expect(await deliver(own.box.smtp, { to: 'ada@pillarbox.test', raw: big })).toMatch(/^250 /)
    const answers = await Promise.all(holding.map((client) => client.say('.')))
    expect(answers.toSorted()).toEqual([expect.stringMatching(/^250 /), expect.stringMatching(/^452 4\.3\.1 /)])
    for (const client of holding) client.destroy()
  })

  test('in UTF-8 throughout is taken with SMTPUTF8, and AUTH= and REQUIRETLS are understood', async () => {
    const client = await loggedIn(here)
    expect(await client.say('MAIL FROM:<ada@pillarbox.test> SMTPUTF8 BODY=8BITMIME REQUIRETLS AUTH=<>')).toMatch(/^250 /)
    expect(await client.say('RCPT TO:<jürgen@bücher.test>')).toMatch(/^250 /)
    await client.say('DATA')
    client.send(hello.replace('Hello', 'Grüße'))
    const id = (await client.say('.')).split(' ').at(-1)!
    const { body } = await here.box.call('GET', `/v1/identities/${here.ada}/emails/${id}`)
    expect(body).toMatchObject({ subject: 'Grüße', deliveries: [{ recipient: 'jürgen@xn--bcher-kva.test' }] })
    expect(await sourceOf(here, id)).toMatch(/^Received: by pillarbox\.test with UTF8SMTPSA/m)
    client.destroy()
  })

  test.each(['RET=HDRS', 'ENVID=x', 'FOO=bar'])('with %s is refused: that was not offered', async (parameter) => {
    const client = await loggedIn(here)
    expect(await client.say(`MAIL FROM:<ada@pillarbox.test> ${parameter}`)).toMatch(/^555 5\.5\.4 /)
    await client.say('MAIL FROM:<ada@pillarbox.test>')
    expect(await client.say('RCPT TO:<bob@elsewhere.test> NOTIFY=NEVER')).toMatch(/^555 5\.5\.4 /)
    client.destroy()
  })
})

function named(list: { address: string }[]): string[] {
  return list.map(({ address }) => address.toLowerCase())
}
