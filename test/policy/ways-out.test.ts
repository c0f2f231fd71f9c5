import { afterAll, describe, expect, test } from 'vitest'
import { deliver, message } from '../support/appliance.ts'
import { connect } from '../support/mcp-clients.ts'
import { signIn, withPassword } from '../support/people.ts'
import { loggedIn, openOffice, submit } from '../support/submission.ts'

type Any = ReturnType<typeof JSON.parse>

const { here, close } = await openOffice()
afterAll(close)
const { box, ada } = here
const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
const to = bob.email as string
await deliver(box.smtp, {
  to: 'ada@pillarbox.test',
  raw: message({ From: 'Zoe <zoe@elsewhere.test>', To: 'ada@pillarbox.test', Subject: 'Hi' }, 'Hi.\r\n'),
})
await box.settled()
const { body: received } = await box.call('GET', `/v1/identities/${ada}/emails`)
const original = received.data[0].id as string

async function keyOf(input: object): Promise<string> {
  return (await box.call('POST', '/v1/api-keys', input)).body['key'] as string
}

const senders: [who: string, key: string][] = [
  ['a key of the account', await keyOf({ label: 'wide' })],
  ['a key of the identity', await keyOf({ label: 'bound', identity_id: ada })],
  ['a key that may send only', await keyOf({ scopes: ['emails:write', 'emails:read'], identity_id: ada })],
]

/** Each way by which a key gets a message out of the box, and how it hears of a refusal. */
const ways: [way: string, leave: (key: string, subject: string) => Promise<string>][] = [
  [
    'POST emails',
    async (key, subject) =>
      heard(await box.call('POST', `/v1/identities/${ada}/emails`, { to, subject, body_text: 'Hello.' }, { key })),
  ],
  [
    'POST emails to a blind copy',
    async (key, subject) =>
      heard(await box.call('POST', `/v1/identities/${ada}/emails`, { to: 'ada@pillarbox.test', bcc: to, subject }, { key })),
  ],
  [
    'POST emails in reply',
    async (key, subject) =>
      heard(await box.call('POST', `/v1/identities/${ada}/emails`, { to, subject, in_reply_to: original }, { key })),
  ],
  [
    'reply with a copy',
    async (key, subject) =>
      heard(
        await box.call(
          'POST',
          `/v1/identities/${ada}/emails/${original}/reply`,
          { cc: to, subject, body_text: 'Hello.' },
          { key },
        ),
      ),
  ],
  [
    'forward',
    async (key, subject) =>
      heard(await box.call('POST', `/v1/identities/${ada}/emails/${original}/forward`, { to, subject }, { key })),
  ],
  [
    'the tool send_email',
    async (key, subject) => {
      const client = await connect('2026-07-28', `${box.url}/mcp`, key)
      const identity = key === senders[0]![1] ? { identity: ada } : {}
      const answer = await client.call('send_email', { to: [to], subject, text: 'Hello.', ...identity })
      await client.close()
      return / held\./.test(answer.text)
        ? 'held'
        : / queued\./.test(answer.text)
          ? 'queued'
          : /does not let this leave/.test(answer.text)
            ? 'refused'
            : answer.text
    },
  ],
  [
    'submission',
    async (key, subject) => {
      const client = await loggedIn(here, { key })
      const raw = message({ From: 'Ada <ada@pillarbox.test>', To: to, Subject: subject }, 'Hello.\r\n')
      const answer = await submit(client, { to: [to], raw })
      client.destroy()
      if (!answer.startsWith('250')) return answer.startsWith('550 5.7.1 ') ? 'refused' : answer
      const { body } = await box.call('GET', `/v1/identities/${ada}/emails?direction=outbound&limit=1`)
      return body.data[0].status === 'held' ? 'held' : 'queued'
    },
  ],
]

function heard({ status, body }: { status: number; body: Any }): string {
  if (status === 403 && body.error.code === 'policy_refused') return 'refused'
  if (status !== 201) return `${status} ${JSON.stringify(body)}`
  return body.status === 'held' ? 'held' : 'queued'
}

/** Policies that concern Bob, and what becomes of a message to him. */
const policies: [policy: object, becomes: 'queued' | 'held' | 'refused'][] = [
  [{ preset: 'open', rules: [] }, 'queued'],
  [{ preset: 'known', rules: [] }, 'held'],
  [{ preset: 'all', rules: [] }, 'held'],
  [{ preset: 'open', rules: [{ when: { to: ['own'] }, action: 'refuse' }] }, 'refused'],
  [{ preset: 'open', rules: [{ when: { to: ['@pillarbox.test'] }, action: 'hold' }] }, 'held'],
  [{ preset: 'all', rules: [{ when: { to: [to] }, action: 'refuse' }] }, 'refused'],
]

let number = 0

describe.each(policies)('under %j', (policy, becomes) => {
  // everything else that these ways write to is of the same account, which `known` would send to
  const own = JSON.stringify(policy).includes('known') ? { ...policy, rules: [{ when: { to: [to] }, action: 'hold' }] } : policy

  test.each(ways)(`%s is ${becomes}, whoever sends`, async (_way, leave) => {
    expect((await box.call('PATCH', '/v1/policy', own)).status).toBe(200)
    for (const [who, key] of senders) {
      const subject = `Message ${(number += 1)}`
      expect([who, await leave(key, subject)]).toEqual([who, becomes])
      await box.settled()
      const { body } = await box.call('GET', `/v1/identities/${bob.id}/emails?limit=200`)
      const came = body.data.filter((one: Any) => one.subject === subject).length
      expect([who, came]).toEqual([who, becomes === 'queued' ? 1 : 0])
    }
  })
})

function asText(content: Buffer, content_type = 'text/plain'): object {
  return { filename: 'a.txt', content_type, content: content.toString('base64') }
}

const archive = Buffer.from('UEsDBBQAAAAIAAAAIQA=', 'base64')

/** What becomes of a message by submission. */
async function submitted(fields: Record<string, string>, body: string): Promise<string> {
  const client = await loggedIn(here, { key: senders[1]![1] })
  const answer = await submit(client, { to: [to], raw: message({ From: 'Ada <ada@pillarbox.test>', ...fields }, `${body}\r\n`) })
  client.destroy()
  if (!answer.startsWith('250')) return answer.startsWith('550 5.7.1 ') ? 'refused' : answer
  const { body: sent } = await box.call('GET', `/v1/identities/${ada}/emails?direction=outbound&limit=1`)
  return sent.data[0].status === 'held' ? 'held' : 'queued'
}

function inside(encoding: string, body: string): Buffer {
  return Buffer.from(`Subject: a\r\nContent-Transfer-Encoding: ${encoding}\r\n\r\n${body}\r\n`)
}

const nested = (stray: string): string =>
  `--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n\r\nHello.\r\n--c--\r\n${stray}\r\n--b--\r\n`

describe('what is found', () => {
  // put together here, so that scanners of repositories find none
  const secret = ['gh', 'p_16C7e42F292c6912E7710c838347Ae178B4a'].join('')
  const places: [string, object][] = [
    ['the subject', { subject: secret }],
    ['the text', { body_text: `token: ${secret}` }],
    ['the HTML', { body_html: `<p title="${secret}">Hello</p>` }],
    [
      'an attachment of text',
      { attachments: [{ filename: 'notes.txt', content: Buffer.from(`a\n${secret}\n`).toString('base64') }] },
    ],
    ['the name of an attachment', { attachments: [{ filename: `${secret}.txt`, content: 'aGVsbG8=' }] }],
    [
      'a forwarded message',
      {
        attachments: [
          {
            filename: 'a.eml',
            content_type: 'message/rfc822',
            content: Buffer.from(`Subject: a\r\n\r\n${secret}\r\n`).toString('base64'),
          },
        ],
      },
    ],
  ]

  test.each(places)('in %s is not sent under a rule against it', async (_place, content) => {
    await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { found: ['secret', 'key'] }, action: 'hold' }] })
    const path = `/v1/identities/${ada}/emails`
    const { body } = await box.call('POST', path, { to, ...content }, { key: senders[1]![1] })
    expect(body.status).toBe('held')
    const { body: hold } = await box.call('GET', `/v1/holds/${body.hold.id}`)
    expect(hold.found).toEqual(expect.arrayContaining([expect.objectContaining({ kind: 'secret', sample: 'ghp_••••••••' })]))
    expect(JSON.stringify([hold.found, hold.reasons])).not.toContain(secret)
    const { body: harmless } = await box.call('POST', path, { to, body_text: 'Hello.' }, { key: senders[1]![1] })
    expect(harmless.status).toBe('queued')
  })

  test.each<[what: string, file: object, finds: string]>([
    ['a secret in UTF-16 with a byte order mark', asText(Buffer.from(`\ufeff${secret}`, 'utf16le')), 'secret'],
    ['a secret in UTF-16 that is declared', asText(Buffer.from(secret, 'utf16le'), 'text/plain; charset=utf-16le'), 'secret'],
    ['UTF-16 that is not declared', asText(Buffer.from(secret, 'utf16le')), 'unread'],
    ['an archive that is declared to be text', asText(archive), 'unread'],
    ['an archive within a message', asText(inside('base64', archive.toString('base64')), 'message/rfc822'), 'unread'],
    [
      'a secret written otherwise within a message',
      asText(inside('quoted-printable', `${secret.slice(0, 9)}=\r\n${secret.slice(9)}`), 'message/rfc822'),
      'unread',
    ],
  ])('%s is found in an attachment, or it counts as unread', async (_what, file, finds) => {
    await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { found: [finds] }, action: 'hold' }] })
    const path = `/v1/identities/${ada}/emails`
    expect((await box.call('POST', path, { to, attachments: [file] }, { key: senders[1]![1] })).body.status).toBe('held')
    const text = asText(Buffer.from('Grüße\n', 'latin1'), 'text/plain; charset=iso-8859-1')
    expect((await box.call('POST', path, { to, attachments: [text] }, { key: senders[1]![1] })).body.status).toBe('queued')
  })

  const encoded = `=?utf-8?q?${secret.slice(0, 9)}?= =?utf-8?q?${secret.slice(9)}?=`
  const mixed = { 'MIME-Version': '1.0', 'Content-Type': 'multipart/mixed; boundary=b' }
  const raws: [place: string, fields: Record<string, string>, body: string][] = [
    ['a display name', { To: `"${secret}" <${to}>` }, 'Hello.'],
    ['a display name in encoded words', { To: `${encoded} <${to}>` }, 'Hello.'],
    ['a field of its own', { 'X-Note': secret }, 'Hello.'],
    ['a Message-ID', { 'Message-ID': `<${secret}@pillarbox.test>` }, 'Hello.'],
    ['a second Subject', { Subject: `Hello\r\nSubject: ${secret}` }, 'Hello.'],
    ['a text before the first part', mixed, `${secret}\r\n--b\r\n\r\nHello.\r\n--b--\r\n`],
    ['a text behind the last part', mixed, `--b\r\n\r\nHello.\r\n--b--\r\n${secret}\r\n`],
    ['a text behind the last part of a part', mixed, nested(secret)],
    ['the header of a part', mixed, `--b\r\nContent-Description: ${secret}\r\n\r\nHello.\r\n--b--\r\n`],
  ]

  test.each(raws)(
    'in %s of a message that was composed elsewhere is not sent under a rule against it',
    async (_place, fields, body) => {
      await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { found: ['secret', 'key'] }, action: 'refuse' }] })
      expect(await submitted({ To: to, ...fields }, body)).toBe('refused')
    },
  )

  const card = '4111 1111 1111 1111'
  const markups: [what: string, markup: string][] = [
    ['a tag in it', `<p>${secret.slice(0, 9)}<b></b>${secret.slice(9)}</p>`],
    ['character references', `<p>&#52;${card.slice(1)}</p>`],
    ['hidden text in it', `<p>${secret.slice(0, 9)}<i style="display:none">x</i>${secret.slice(9)}</p>`],
    ['character references in a hidden text', `<p hidden>&#52;${card.slice(1)}</p>`],
    ['character references in an attribute', `<img alt="&#52;${card.slice(1)}">`],
  ]

  test.each(markups)('in HTML beside a text, with %s, is not sent under a rule against it', async (_what, markup) => {
    await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { found: ['secret', 'card'] }, action: 'refuse' }] })
    const content = { to, body_text: 'Hello.', body_html: `<p>Hello.</p>${markup}` }
    expect(heard(await box.call('POST', `/v1/identities/${ada}/emails`, content, { key: senders[1]![1] }))).toBe('refused')
  })

  test.each<[what: string, file: object, finds: string]>([
    [
      'text with the byte order mark of UTF-16',
      asText(Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(secret)])),
      'secret',
    ],
    [
      'UTF-16 of which nothing says the order',
      asText(Buffer.from(secret, 'utf16le').swap16(), 'text/plain; charset=utf-16'),
      'unread',
    ],
    ['an unknown character set', asText(Buffer.from([0xf4, 0xf1]), 'text/plain; charset=ibm037'), 'unread'],
    [
      'HTML with a tag in it',
      asText(Buffer.from(`<p>${secret.slice(0, 9)}<b></b>${secret.slice(9)}</p>`), 'text/html'),
      'secret',
    ],
    ['a comment before an encoding', asText(inside('(x) quoted-printable', '=67'), 'message/rfc822'), 'unread'],
    [
      'a sender in encoded words',
      asText(Buffer.from(`From: =?utf-8?q?=67${secret.slice(1)}?= <a@b.example>\r\n\r\nHello.\r\n`), 'message/rfc822'),
      'secret',
    ],
  ])('%s in an attachment of text is found, or it counts as unread', async (_what, file, finds) => {
    await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { found: [finds] }, action: 'refuse' }] })
    const content = { to, attachments: [file] }
    expect(heard(await box.call('POST', `/v1/identities/${ada}/emails`, content, { key: senders[1]![1] }))).toBe('refused')
  })

  const twofold: [what: string, fields: Record<string, string>, body: string][] = [
    [
      'a second encoding',
      { 'Content-Type': 'text/plain', 'Content-Transfer-Encoding': '7bit\r\nContent-Transfer-Encoding: quoted-printable' },
      `=34${card.slice(1)}`,
    ],
    [
      'a second encoding of a part',
      mixed,
      `--b\r\nContent-Transfer-Encoding: 8bit\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=34${card.slice(1)}\r\n--b--\r\n`,
    ],
    [
      'a second type',
      { 'Content-Type': 'text/plain\r\nContent-Type: multipart/mixed; boundary=b' },
      '--b\r\nContent-Type: application/zip\r\nContent-Transfer-Encoding: base64\r\n\r\nUEsDBA==\r\n--b--\r\n',
    ],
  ]

  test.each(twofold)('may be in a message with %s, of which programs take the first or the last', async (_what, fields, body) => {
    for (const when of [{ found: ['card'] }, { found: ['unread'] }, { attachments: true }, { links: true }]) {
      await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when, action: 'refuse' }] })
      expect([when, await submitted({ To: to, ...fields }, body)]).toEqual([when, 'refused'])
    }
  })

  test('is nothing in the ids of an answer, and in a boundary', async () => {
    await box.call('PATCH', '/v1/policy', {
      preset: 'open',
      rules: [{ when: { found: ['secret', 'key', 'card'] }, action: 'refuse' }],
    })
    const id = '<CAKxZk3vQ9mX2bLp8RtY6wNc4HsJ_4111111111111111@mail.example>'
    const boundary = 'Apple-Mail=_Zk3vQ9mX2bLp8RtY6wNc4HsJ'
    const fields = { To: to, References: id, 'In-Reply-To': id, 'Message-ID': id, ...mixed }
    const body = `This is a multi-part message in MIME format.\r\n--${boundary}\r\n\r\nHello.\r\n--${boundary}--\r\n`
    expect(await submitted({ ...fields, 'Content-Type': `multipart/mixed; boundary="${boundary}"` }, body)).toBe('queued')
  })

  const part = 'Content-Type: application/zip\r\nContent-Disposition: attachment; filename=a.zip\r\n\r\nPK\r\n'
  const files: [what: string, fields: Record<string, string>, body: string][] = [
    ['one in the text itself', {}, 'Hello.\r\nbegin 644 a.zip\r\n#86)C\r\n`\r\nend\r\n'],
    ['one in the text itself in base64', {}, 'Hello.\r\nbegin-base64 644 a.zip\r\nUEs=\r\n====\r\n'],
    ['one before the first part', mixed, `${part}\r\n--b\r\n\r\nHello.\r\n--b--\r\n`],
    ['one behind the last part', mixed, `--b\r\n\r\nHello.\r\n--b--\r\n${part}`],
    ['one behind the last part of a part', mixed, nested(part)],
  ]

  test.each(files)('is an attachment too: %s', async (_what, fields, body) => {
    await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { attachments: true }, action: 'refuse' }] })
    expect(await submitted({ To: to, ...fields }, body)).toBe('refused')
    await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { found: ['unread'] }, action: 'refuse' }] })
    expect(await submitted({ To: to, ...fields }, body)).toBe('refused')
    expect(await submitted({ To: to, ...mixed }, '--b\r\n\r\nHello.\r\n--b--\r\nA footer.\r\n')).toBe('queued')
  })

  test('an attachment that is no text was not scanned, which a rule can ask for', async () => {
    await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { found: ['unread'] }, action: 'hold' }] })
    const path = `/v1/identities/${ada}/emails`
    const zip = { filename: 'a.zip', content_type: 'application/zip', content: 'UEsDBA==' }
    expect((await box.call('POST', path, { to, attachments: [zip] }, { key: senders[1]![1] })).body.status).toBe('held')
  })
})

test('a rule for one address is for its tags and for the other addresses of its identity', async () => {
  const { body: domains } = await box.call('GET', '/v1/domains')
  const { id } = domains.data.find(({ name }: Any) => name === 'pillarbox.test')
  const alias = { local_part: 'robert', identity_id: bob.id }
  expect((await box.call('POST', `/v1/domains/${id}/aliases`, alias)).status).toBe(201)
  const path = `/v1/identities/${ada}/emails`
  const statusOf = async (address: string): Promise<string> =>
    heard(await box.call('POST', path, { to: address, body_text: 'Hello.' }, { key: senders[1]![1] }))
  await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { to: [to] }, action: 'refuse' }] })
  for (const address of [to, to.replace('@', '+a@'), 'robert@pillarbox.test', 'robert+a@pillarbox.test'])
    expect([address, await statusOf(address)]).toEqual([address, 'refused'])
  await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { to: [to.replace('@', '+a@')] }, action: 'refuse' }] })
  expect(await statusOf(to)).toBe('queued')
  await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [] })
})

describe('a link', () => {
  const outside = 'evil.example/x'
  const forms: [form: string, content: object][] = [
    ['an anchor of more characters than are read', { body_html: `<a href="https://${outside}${'a'.repeat(9000)}">x</a>` }],
    ['a host of many labels', { body_text: `https://a.b.c.d.e.f.g.h.i.j.k.${outside}` }],
    ['one after many that are none', { body_text: `${'http:// '.repeat(600)}https://${outside}` }],
    ['one without a scheme', { body_html: `<a href="//${outside}">x</a>` }],
    ['one with backslashes', { body_html: String.raw`<a href="https:\\evil.example\x">x</a>` }],
    ['a form', { body_html: `<form action="https://${outside}"><button>x</button></form>` }],
    ['a picture of another server', { body_html: `<img src="https://${outside}">` }],
    ['an area of a picture', { body_html: `<map><area href="https://${outside}"></map>` }],
    ['a name of a web server', { body_text: `www.${outside}` }],
  ]

  const written: [form: string, content: object][] = [
    ['a picture in character references', { body_html: `<img src="&#104;ttps://${outside}">` }],
    ['a form in character references', { body_html: `<form action="&#x68;ttps:&sol;/${outside}"><button>x</button></form>` }],
    ['one without slashes', { body_html: `<a href="https:${outside}">x</a>` }],
    ['one with a tabulator in it', { body_html: `<img src="ht\ttps://${outside}">` }],
    ['one without a scheme, with a tabulator in it', { body_html: `<a href="/\t/${outside}">x</a>` }],
    ['one without a scheme, in a reference', { body_html: `<a href="&#47;/${outside}">x</a>` }],
    ['a picture of several', { body_html: `<img srcset="//${outside} 2x">` }],
    ['a button of another form', { body_html: `<form><button formaction="//${outside}">x</button></form>` }],
    ['a background', { body_html: `<p style="background:url(//${outside})">x</p>` }],
    ['a background with escapes', { body_html: String.raw`<p style="background:url(\68ttps://evil.example/x)">x</p>` }],
    ['a style sheet', { body_html: `<style>@import "//${outside}"</style>` }],
    ['a name of a server that programs make a link', { body_text: 'See evil.com/login.' }],
    ['a name of a server with a short end', { body_text: 'Sign in at login.evil.io now' }],
    ['one in the subject', { subject: `https://${outside}` }],
    ['a picture in a long character reference', { body_html: `<img src="&#00000104;ttps://${outside}">` }],
    ['one without a scheme, in a long reference', { body_html: `<img src="&#x0000002f;/${outside}">` }],
    ['one behind many blanks', { body_html: `<img src="${' '.repeat(20)}//${outside}">` }],
    ['one behind a control character', { body_html: `<img src="&#1;//${outside}">` }],
    ['one with an escaped line end in a style', { body_html: `<style>p{background:url("/\\\n/${outside}")}</style>` }],
    ['one in an attachment of HTML', { attachments: [asText(Buffer.from(`<a href="https://${outside}">x</a>`), 'text/html')] }],
    [
      'one in a forwarded message',
      { attachments: [asText(Buffer.from(`Subject: a\r\n\r\nhttps://${outside}\r\n`), 'message/rfc822')] },
    ],
  ]

  test.each([...forms, ...written])('is refused by a rule for links: %s', async (_form, content) => {
    await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [{ when: { links: true }, action: 'refuse' }] })
    const path = `/v1/identities/${ada}/emails`
    expect(heard(await box.call('POST', path, { to, ...content }, { key: senders[1]![1] }))).toBe('refused')
  })

  test('is none in the name of a language of HTML, nor in an embedded picture', async () => {
    const body_html =
      '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1.dtd"><html xmlns="http://www.w3.org/1999/xhtml"><img src="cid:a"></html>'
    const { body } = await box.call('POST', `/v1/identities/${ada}/emails`, { to, body_html }, { key: senders[1]![1] })
    expect(body.status).toBe('queued')
    await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [] })
  })
})

describe('a message that cannot be read whole', () => {
  const head = { From: 'Ada <ada@pillarbox.test>', To: to, 'MIME-Version': '1.0', 'Content-Type': 'multipart/mixed; boundary=b' }
  const file = '--b\r\nContent-Type: application/zip\r\nContent-Disposition: attachment; filename=a.zip\r\n\r\nPK\r\n--b--\r\n'
  const part = '--b\r\nContent-Type: text/plain\r\n\r\nHello.\r\n'
  const bodies: [why: string, body: string][] = [
    ['that has more parts than are read', `${part.repeat(1001)}${file}`],
    ['whose boundary is written with blanks', `--b \r\n\r\nHello.\r\n${file.replace('--b\r\n', '--b \r\n')}`],
    ['with a part whose header is too long', `--b\r\n${`X-Long: ${'a'.repeat(990)}\r\n`.repeat(300)}\r\nHello.\r\n${file}`],
  ]

  test.each(bodies)('%s is refused and held as if there were in it what a rule looks for', async (_why, body) => {
    const leaving = async (rules: object[], preset = 'open'): Promise<string> => {
      await box.call('PATCH', '/v1/policy', { preset, rules })
      const client = await loggedIn(here, { key: senders[1]![1] })
      const answer = await submit(client, { to: [to], raw: message(head, body) })
      client.destroy()
      if (!answer.startsWith('250')) return answer.slice(0, 9)
      return (await box.call('GET', `/v1/identities/${ada}/emails?direction=outbound&limit=1`)).body.data[0].status
    }
    expect(await leaving([{ when: { attachments: true }, action: 'refuse' }])).toBe('550 5.7.1')
    expect(await leaving([{ when: { attachments: true }, action: 'hold' }])).toBe('held')
    expect(await leaving([{ when: { links: false }, action: 'send' }], 'all')).toBe('held')
    expect(await leaving([{ when: { links: true }, action: 'hold' }])).toBe('held')
    await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [] })
  })
})

describe('who is not held', () => {
  test('a signed-in person; but what a rule refuses nobody sends', async () => {
    await withPassword(box)
    const page = await signIn(box)
    await box.call('PATCH', '/v1/policy', { preset: 'all', rules: [{ when: { found: ['card'] }, action: 'refuse' }] })
    const path = `/v1/identities/${ada}/emails`
    expect((await page.call('POST', path, { to, body_text: 'Hello.' })).body.status).toBe('queued')
    const { status, body } = await page.call('POST', path, { to, body_text: '4111 1111 1111 1111' })
    expect([status, body.error.code]).toEqual([403, 'policy_refused'])
  })

  test('a person of the account approves, and it leaves', async () => {
    const page = await signIn(box)
    const { body } = await box.call(
      'POST',
      `/v1/identities/${ada}/emails`,
      { to, subject: 'Approved in person' },
      { key: senders[1]![1] },
    )
    expect((await page.call('POST', `/v1/holds/${body.hold.id}/approve`, {})).status).toBe(200)
    await box.settled()
    const { body: came } = await box.call('GET', `/v1/identities/${bob.id}/emails`)
    expect(came.data[0].subject).toBe('Approved in person')
  })
})

test('an identity’s own policy is no looser than the account’s, and may be stricter', async () => {
  const path = `/v1/identities/${ada}/emails`
  await box.call('PATCH', '/v1/policy', { preset: 'all', rules: [] })
  await box.call('PATCH', `/v1/identities/${ada}/policy`, { preset: 'open', rules: [] })
  expect((await box.call('POST', path, { to }, { key: senders[1]![1] })).body.status).toBe('held')
  await box.call('PATCH', '/v1/policy', { preset: 'open', rules: [] })
  await box.call('PATCH', `/v1/identities/${ada}/policy`, { preset: 'all', rules: [] })
  expect((await box.call('POST', path, { to }, { key: senders[1]![1] })).body.status).toBe('held')
  await box.call('PATCH', `/v1/identities/${ada}/policy`, { preset: 'open' })
  expect((await box.call('POST', path, { to }, { key: senders[1]![1] })).body.status).toBe('queued')
})
