import { randomBytes } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Packable, zip } from '../../src/core/zip/zip.ts'
import { card } from '../support/card.ts'
import { hangs, WebhookSink } from '../support/webhook-sink.ts'
import { address, type Attacker, mailWith } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'

const words = 'Invoice number seven of the honest company, to be paid by Monday.\r\n'

interface Tenant {
  key: string
  identity: string
  email: string
}

/** Those of the rows about several accounts. */
const exporting: Tenant[] = []
const sending: Tenant[] = []

/** What the holder of a key does to others by calls that are allowed. */
const attacks: Attack[] = [
  {
    name: 'a thread of sixty long e-mails, over and over',
    scopes: ['messages:read'],
    prepare: async (attacker) => {
      const body = `<p>${words.repeat(1100)}</p>`
      await mailbox(attacker, 60, (number) =>
        mailWith(`Subject: Long\r\nReferences: <thread@attacker.test>\r\nContent-Type: text/html\r\nX-Number: ${number}`, body),
      )
    },
    run: async (attacker) => {
      const { id } = (await attacker.own('GET', '/threads', { quiet: true })).body.data[0]
      await attacker.repeat(4, () => attacker.own('GET', `/threads/${id}`))
    },
    answers: ['200', '429 rate_limited'],
  },
  {
    name: 'a conversation of twenty long e-mails, read by eight tools at once',
    scopes: ['messages:read'],
    lasts: 8000,
    prepare: async (attacker) => {
      const body = `${words.slice(0, 900)} €\r\n`.repeat(5600)
      const header = 'Subject: Long\r\nReferences: <thread@attacker.test>\r\nContent-Type: text/plain; charset=utf-8'
      await mailbox(attacker, 20, (number) => mailWith(`${header}\r\nX-Number: ${number}`, body))
    },
    run: async (attacker) => {
      const { id } = (await attacker.own('GET', '/threads', { quiet: true })).body.data[0]
      await attacker.repeat(8, () => useTool(attacker, 'read_thread', { id, last: 20 }))
    },
    answers: ['200', '429 rate_limited', '429 too_much_at_once'],
  },
  {
    name: 'a tool whose name has thirty million characters',
    scopes: ['messages:read'],
    run: (attacker) => attacker.repeat(4, () => useTool(attacker, 'ab_'.repeat(10_000_000), {})),
    answers: ['400 body_too_large', '429 rate_limited', '429 too_much_at_once'],
  },
  ...(
    [
      ['control characters', '\u0001'],
      ['quotation marks', '"'],
      ['CJK', '漢'],
    ] as const
  ).map(([what, character]): Attack => ({
    name: `an e-mail of two bodies of 5 MB of ${what}, over and over`,
    scopes: ['emails:read'],
    lasts: 3000,
    prepare: (attacker) => {
      const line = `${character.repeat(300)}\r\n`
      const body = line.repeat(Math.ceil(5_000_000 / Buffer.byteLength(line)))
      const parts = ['plain', 'html'].map((type) => `--b\r\nContent-Type: text/${type}; charset=utf-8\r\n\r\n${body}\r\n`)
      return attacker.mail(mailWith('Subject: Long\r\nContent-Type: multipart/mixed; boundary=b', `${parts.join('')}--b--`))
    },
    run: async (attacker) => {
      const { id } = (await attacker.own('GET', '/emails', { quiet: true })).body.data[0]
      await attacker.repeat(4, () => attacker.own('GET', `/emails/${id}`))
    },
    answers: ['200', '429 rate_limited', '429 too_much_unread'],
  })),
  ...(['\u0001', '"'] as const).map((character): Attack => {
    const to: string[] = []
    return {
      name: `a long mail of ${JSON.stringify(character)} to 64 identities, each with a webhook to an endpoint that never answers`,
      scopes: ['identities:write', 'account:write', 'emails:read'],
      wholeAccount: true,
      lasts: 5000,
      prepare: async (attacker) => {
        const sink = await WebhookSink.start()
        sink.behaviour = hangs
        for (let number = 0; number < 64; number += 1) {
          const { body } = await attacker.call('POST', '/v1/identities', { body: {} })
          const webhook = { url: `${sink.url}/${number}`, events: ['email.received'], identity_id: body.id }
          await attacker.call('POST', '/v1/webhooks', { body: webhook })
          to.push(body.email)
        }
      },
      run: async (attacker) => {
        const line = `${character.repeat(900)}\r\n`
        const parts = ['plain', 'html'].map((type) => `--b\r\nContent-Type: text/${type}\r\n\r\n${line.repeat(300)}\r\n`)
        const mail = mailWith('Subject: x\r\nContent-Type: multipart/alternative; boundary=b', `${parts.join('')}--b--`)
        await attacker.mail(mail, undefined, to)
        await attacker.hold()
      },
      answers: ['250'],
    }
  }),
  {
    name: 'lists of a hundred thousand text messages, far away and by filters that lead to none',
    scopes: ['messages:read', 'messages:write', 'account:read'],
    prepare: (attacker) => textMessages(attacker, 100_000),
    run: (attacker) =>
      attacker.repeat(8, (number) => {
        const path = [
          '/messages?offset=1000000',
          '/messages?offset=50000',
          '/sms?from=nobody',
          '/sms?before=2100-01-01T00:00:00Z',
          '/sms?direction=outbound',
          '/sms?offset=99999',
        ][number % 6]!
        return attacker.own('GET', path)
      }),
    answers: ['200', '429 rate_limited', '429 too_many_waiting', '500 too_slow'],
  },
  {
    name: 'searches for what is everywhere',
    scopes: ['messages:read'],
    prepare: (attacker) => mailbox(attacker, 60, () => mailWith('Subject: Everywhere', words.repeat(400))),
    run: (attacker) =>
      attacker.repeat(16, (number) => {
        const query = Array.from({ length: 16 }, (_, place) => `${'inhcpmbt'[(number + place) % 8]}*`).join(' ')
        return attacker.own('GET', `/emails/search?limit=100&query=${encodeURIComponent(query)}`)
      }),
    answers: ['200', '400 invalid_value', '429 rate_limited', '429 too_many_waiting', '500 too_slow'],
  },
  {
    name: 'searches of a thousand words and signs',
    scopes: ['messages:read'],
    run: (attacker) =>
      attacker.repeat(8, (number) => {
        const query = ['("NEAR(a b, 9)^" OR ', '"', '(a+)+$ ', 'x* ', '-- ; DROP '][number % 5]!.repeat(200)
        return attacker.own('GET', `/emails/search?query=${encodeURIComponent(query).slice(0, 8000)}`)
      }),
    answers: ['200', '400 invalid_request', '400 invalid_value', '429 rate_limited'],
  },
  {
    name: 'filters of wildcards, and pages far away',
    scopes: ['messages:read'],
    prepare: (attacker) => mailbox(attacker, 40, () => mailWith(`Subject: ${'%_'.repeat(100)}`, words)),
    run: (attacker) =>
      attacker.repeat(8, (number) => {
        const filter = encodeURIComponent('%_'.repeat(100))
        const path = [
          `/emails?limit=100&direction=all&subject=${filter}`,
          `/emails?from=${filter}&to=${filter}`,
          '/emails?offset=1000000000',
          '/messages?limit=100',
          '/events?limit=100&since=2001-01-01T00:00:00Z',
        ][number % 5]!
        return attacker.own('GET', path)
      }),
    answers: ['200', '400 invalid_value', '429 rate_limited'],
  },
  {
    name: 'lists of the largest events and messages, on sixteen connections',
    scopes: ['messages:read'],
    prepare: (attacker) => mailbox(attacker, 60, () => mailWith('Subject: Long', words.repeat(4400))),
    run: (attacker) =>
      attacker.repeat(16, (number) => attacker.own('GET', number % 2 === 0 ? '/events?limit=100' : '/messages?limit=100')),
    answers: ['200', '429 rate_limited', '429 too_much_unread'],
  },
  {
    name: 'three hundred calls that wait',
    scopes: ['messages:read'],
    run: (attacker) => {
      const one = (_: unknown, number: number) =>
        attacker.own('GET', `/wait?timeout=120&subject_contains=${'x'.repeat(100)}`, { from: `127.0.0.${2 + (number % 10)}` })
      return Promise.race([Promise.all(Array.from({ length: 300 }, one)), flowing(attacker)])
    },
    answers: ['250', '200', '429 rate_limited', '429 too_many_waits'],
  },
  {
    name: 'three hundred calls that wait for the same next one-time code',
    scopes: ['identities:read', 'identities:write'],
    lasts: 33_000,
    prepare: async (attacker) => {
      const body = { secret: 'JBSWY3DPEHPK3PXP', service_name: 'Example', period: 30 }
      await attacker.own('POST', '/totp', { body, quiet: true })
    },
    run: async (attacker) => {
      const { id } = (await attacker.own('GET', '/totp', { quiet: true })).body.data[0]
      const path = `/totp/${id}/code?min_remaining=29`
      const one = (_: unknown, number: number) => attacker.own('GET', path, { from: `127.0.0.${2 + (number % 10)}` })
      await Promise.all(Array.from({ length: 300 }, one))
    },
    answers: ['200', '429 rate_limited'],
  },
  {
    name: 'lists of domains whose every TXT record is of control characters',
    scopes: ['account:read', 'account:write'],
    wholeAccount: true,
    lasts: 4000,
    prepare: async (attacker) => {
      const texts = Array.from({ length: 10 }, (_, number) => `v=spf1 ${number} ${'\u0001'.repeat(1000)}`)
      for (let number = 0; number < 50; number += 1) {
        const { body } = await attacker.call('POST', '/v1/domains', { body: { name: `a${number}.attacker.test` }, quiet: true })
        for (const { type, name } of body.dns_records) if (type === 'TXT') attacker.target.box.dns.txt(name, ...texts)
        await attacker.call('POST', `/v1/domains/${body.id}/verify`, { quiet: true })
      }
    },
    run: (attacker) => attacker.repeat(16, () => attacker.call('GET', '/v1/domains?limit=200')),
    answers: ['200', '429 rate_limited', '429 too_much_unread'],
  },
  {
    name: 'webhooks to an endpoint that never answers',
    scopes: ['account:write', 'messages:read'],
    wholeAccount: true,
    run: async (attacker) => {
      const sink = await WebhookSink.start()
      sink.behaviour = hangs
      const make = (_: unknown, number: number) =>
        attacker.call('POST', '/v1/webhooks', { body: { url: `${sink.url}/${number}`, events: ['*'] } })
      await Promise.all(Array.from({ length: 60 }, make))
      await flowing(attacker)
    },
    answers: ['201', '250', '403 plan_limit_reached', '409 too_many_webhooks', '429 rate_limited'],
  },
  {
    name: 'keys, one after the other, and calls with each',
    scopes: ['account:write', 'messages:read'],
    wholeAccount: true,
    run: async (attacker) => {
      await attacker.repeat(16, async () => {
        const { body } = await attacker.call('POST', '/v1/api-keys', { body: {} })
        await attacker.own('GET', '/emails', { key: body?.key ?? attacker.target.key })
      })
    },
    answers: ['200', '201', '403 plan_limit_reached', '409 too_many_keys', '429 rate_limited'],
  },
  {
    name: 'ten thousand idempotency keys with large answers',
    scopes: ['identities:write'],
    wholeAccount: true,
    run: (attacker) =>
      attacker.repeat(16, (number) =>
        attacker.call('PATCH', `/v1/identities/${attacker.target.identity.id}`, {
          body: { metadata: { text: `${number}`.padEnd(8000, 'x') } },
          headers: { 'Idempotency-Key': `key-${number}` },
        }),
      ),
    answers: ['200', '400 invalid_value', '429 rate_limited'],
  },
  {
    name: 'exports one after the other',
    scopes: ['messages:read'],
    prepare: (attacker) => mailbox(attacker, 30, () => mailWith('Subject: Out', words.repeat(400))),
    run: (attacker) => attacker.repeat(4, () => attacker.own('POST', '/export', { body: { format: 'mbox' } })),
    answers: ['201', '409 job_running', '409 too_many_exports', '429 rate_limited'],
  },
  {
    name: 'exports of twelve tenants at once, each with two messages of 23 MB',
    scopes: [],
    lasts: 20_000,
    prepare: async (attacker) => {
      exporting.push(...(await tenantsOf(attacker, 12)))
      for (let number = 0; number < 2; number += 1) {
        const addresses = exporting.map(({ email }) => email)
        await attacker.mail(mailOf23Megabytes(), undefined, addresses)
      }
    },
    run: (attacker) =>
      Promise.all(
        exporting.map(async ({ key, identity }) => {
          const { body: job } = await attacker.call('POST', `/v1/identities/${identity}/export`, { key, body: {} })
          for (let status = ''; status !== 'done' && !attacker.signal.aborted;) {
            await sleep(300)
            status = (await attacker.call('GET', `/v1/jobs/${job.id}`, { key })).body?.status
          }
        }),
      ),
    answers: ['200', '201'],
  },
  {
    name: 'e-mails of 25 MB to oneself',
    scopes: ['messages:write'],
    run: (attacker) => {
      const content = Buffer.alloc(18_000_000, 'words and ').toString('base64')
      const body = JSON.stringify({
        to: attacker.target.identity.email,
        attachments: [{ filename: 'large.bin', content }],
      })
      return attacker.repeat(3, () => attacker.own('POST', '/emails', { body }))
    },
    answers: [
      '201',
      '400 message_too_large',
      '400 body_too_large',
      '409 mailbox_full',
      '429 rate_limited',
      '429 too_much_at_once',
      '500 server_busy',
      // a body that is refused is read for a second more
      'closed',
    ],
  },
  {
    name: 'bodies of 16 MB that are refused while they are sent, on sixty connections',
    scopes: ['emails:write'],
    lasts: 8000,
    run: (attacker) => {
      const body = `{"body_text":"${'a'.repeat(16_000_000)}"}`
      return attacker.repeat(60, (number) => attacker.own('POST', '/emails', { body, from: address(number % 60) }))
    },
    answers: ['400 invalid_value', '429 rate_limited', '429 too_much_at_once', 'closed'],
  },
  {
    name: 'e-mails of 25 MB of six tenants at once, beside messages of 23 MB of strangers',
    scopes: [],
    lasts: 20_000,
    prepare: async (attacker) => {
      sending.push(...(await tenantsOf(attacker, 6)))
    },
    run: async (attacker) => {
      const content = randomBytes(18_000_000).toString('base64')
      const mail = mailOf23Megabytes()
      await Promise.all([
        ...sending.map(async ({ key, identity, email }) => {
          const body = JSON.stringify({ to: email, attachments: [{ filename: 'large.bin', content }] })
          await attacker.repeat(3, () => attacker.call('POST', `/v1/identities/${identity}/emails`, { key, body }))
        }),
        attacker.repeat(16, async (number) => attacker.mail(mail, address(number % 16))),
      ])
    },
    answers: [
      '201',
      '400 request_timeout',
      '409 mailbox_full',
      '429 rate_limited',
      '429 too_much_at_once',
      '250',
      '421',
      '451',
      '452',
      'closed',
    ],
  },
  {
    name: 'e-mails of four megabytes of text',
    scopes: ['emails:write'],
    lasts: 5000,
    run: (attacker) => {
      const body = JSON.stringify({ to: attacker.target.identity.email, body_text: 'é'.repeat(2_000_000) })
      return attacker.repeat(8, () => attacker.own('POST', '/emails', { body }))
    },
    answers: ['201', '409 mailbox_full', '429 rate_limited', '429 too_much_at_once'],
  },
  {
    name: 'e-mails of 25 MB that are all to be sent at one moment',
    scopes: ['emails:write'],
    lasts: 20_000,
    run: async (attacker) => {
      const content = Buffer.alloc(18_000_000, 'words and ').toString('base64')
      const send_at = new Date(Date.now() + 15_000).toISOString()
      const { email } = attacker.target.identity
      const body = JSON.stringify({ to: email, send_at, attachments: [{ filename: 'large.bin', content }] })
      for (let number = 0; number < 6; number += 1) await attacker.own('POST', '/emails', { body })
      await attacker.hold()
    },
    answers: ['201', '409 mailbox_full', '429 rate_limited', '429 too_much_at_once'],
  },
  {
    name: 'a message of 48 MB, asked for by twenty calls that do not read it, and forwarded by others',
    scopes: ['emails:read', 'emails:write'],
    lasts: 4000,
    prepare: async (attacker) => {
      const lines = Buffer.alloc(48_000_000, `${'A'.repeat(76)}\r\n`)
      const raw = mailWith('Subject: Large\r\nContent-Transfer-Encoding: base64\r\nContent-Type: a/b', lines)
      const { body: job } = await attacker.own('POST', '/import', { body: raw, headers: { 'Content-Type': 'message/rfc822' } })
      for (let status = ''; status !== 'done';) {
        await sleep(200)
        status = (await attacker.call('GET', `/v1/jobs/${job.id}`)).body.status
      }
    },
    run: async (attacker) => {
      const { id } = (await attacker.own('GET', '/emails?direction=all', { quiet: true })).body.data[0]
      const { key, identity } = attacker.target
      const head = `Host: x\r\nAuthorization: Bearer ${key}\r\n`
      for (let number = 0; number < 20; number += 1) {
        const socket = await attacker.raw(
          '127.0.0.2',
          `GET /v1/identities/${identity.id}/emails/${id}/raw HTTP/1.1\r\n${head}\r\n`,
        )
        socket.once('data', () => socket.pause())
      }
      const body = { to: identity.email, as_attachment: true }
      await attacker.repeat(2, () => attacker.own('POST', `/emails/${id}/forward`, { body }))
    },
    answers: ['200', '400 message_too_large', '429', '429 rate_limited', '429 too_much_at_once', '429 too_much_unread', 'closed'],
  },
  ...(
    [
      ['read', 'GET', '/:id', '', ['emails:read']],
      ['listed with its text', 'GET', '?include=body', '', ['emails:read']],
      ['marked', 'PATCH', '/:id', '{"read":true}', ['emails:read', 'emails:write']],
      ['answered', 'POST', '/:id/reply', '{"body":"Yes."}', ['emails:read', 'emails:write']],
    ] as const
  ).map(([what, method, path, body, scopes]): Attack => ({
    name: `21 MB of text that nothing makes shorter, ${what} by six hundred calls at once`,
    scopes: [...scopes],
    lasts: 8000,
    prepare: (attacker) =>
      mailbox(attacker, 1, () => {
        const lines = randomBytes(15_000_000).toString('base64').replaceAll(/.{76}/g, '$& x\r\n')
        return mailWith('Subject: Long\r\nContent-Type: text/plain', `${lines}\r\n`)
      }),
    run: async (attacker) => {
      const { id } = (await attacker.own('GET', '/emails', { quiet: true })).body.data[0]
      const { key, identity } = attacker.target
      const head = `Host: x\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`
      const call = `${method} /v1/identities/${identity.id}/emails${path.replace(':id', id)} HTTP/1.1\r\n${head}\r\n${body}`
      await Promise.all(Array.from({ length: 75 }, () => attacker.raw('127.0.0.2', call.repeat(8))))
      // many hear nothing until they hang up
      attacker.note('closed')
      await attacker.hold()
    },
    answers: ['200', '201', '400', '409', '429', '500', 'closed'],
  })),
  {
    name: 'e-mails with the dearest text and HTML',
    scopes: ['messages:write'],
    run: (attacker) => {
      const body = {
        to: attacker.target.identity.email,
        body_html: '<div>'.repeat(400_000),
        body_text: 'http://a.test/((( '.repeat(100_000),
      }
      return attacker.repeat(4, () => attacker.own('POST', '/emails', { body }))
    },
    answers: [
      '201',
      '400 invalid_value',
      '400 body_too_large',
      '400 message_too_large',
      '429 rate_limited',
      '429 too_much_at_once',
    ],
  },
  {
    name: 'e-mails of nothing but line ends',
    scopes: ['messages:write'],
    run: (attacker) => {
      const body = JSON.stringify({ to: attacker.target.identity.email, body_text: '\n'.repeat(2_000_000) })
      return attacker.repeat(2, () => attacker.own('POST', '/emails', { body }))
    },
    answers: [
      '201',
      '400 too_many_escapes',
      '400 invalid_value',
      '400 body_too_large',
      '400 message_too_large',
      '429 rate_limited',
      '429 too_much_at_once',
    ],
  },
  ...[
    { kind: 'text', input: { body_text: 'a\n'.repeat(1_300_000) } },
    { kind: 'text with CRLF', input: { body_text: 'a\r\n'.repeat(1_300_000) } },
    { kind: 'HTML', input: { body_html: 'a\n'.repeat(1_300_000) } },
    { kind: 'an enclosed message', input: { attachments: [enclosure('a.eml', 'message/rfc822', 'a\n'.repeat(5_000_000))] } },
    { kind: 'a file', input: { attachments: [enclosure('a.txt', 'text/plain', 'é\n'.repeat(5_000_000))] } },
  ].map(({ kind, input }): Attack => ({
    name: `e-mails of millions of short lines of ${kind}, sent later`,
    scopes: ['emails:write'],
    lasts: 3000,
    run: (attacker) => {
      const body = JSON.stringify({ to: attacker.target.identity.email, send_at: tomorrow(), ...input })
      return attacker.repeat(2, () => attacker.own('POST', '/emails', { body }))
    },
    answers: ['201', '400 message_too_large', '409 mailbox_full', '429 rate_limited', '429 too_much_at_once'],
  })),
  {
    name: 'files whose server sends each octet as a chunk',
    scopes: ['emails:write'],
    run: async (attacker) => {
      const chunks = Buffer.from('1\r\na\r\n'.repeat(10_000))
      const sink = await WebhookSink.start()
      sink.behaviour = (response) => {
        response.flushHeaders()
        const socket = response.socket!
        const more = (): void => {
          while (!socket.destroyed && socket.write(chunks));
          if (!socket.destroyed) socket.once('drain', more)
        }
        more()
      }
      const body = { to: attacker.target.identity.email, attachments: [{ filename: 'a', url: sink.url }] }
      await attacker.repeat(8, () => attacker.own('POST', '/emails', { body }))
    },
    answers: ['400 url_unreachable', '429 rate_limited', '429 too_much_at_once'],
  },
  {
    name: 'recipients of spaces',
    scopes: ['messages:write'],
    run: (attacker) =>
      attacker.repeat(8, () =>
        attacker.own('POST', '/emails', { body: { to: Array(20).fill(' '.repeat(999)), subject: 'None' } }),
      ),
    answers: ['400 invalid_recipient', '429 rate_limited'],
  },
  {
    name: 'replies of spaces',
    scopes: ['messages:read', 'messages:write'],
    run: async (attacker) => {
      const letter = { to: attacker.target.identity.email, subject: 'Hello', body_text: words }
      const { body } = await attacker.own('POST', '/emails', { body: letter, quiet: true })
      const spaces = { body_text: `a${' '.repeat(1_000_000)}b` }
      await attacker.repeat(4, () => attacker.own('POST', `/emails/${body.id}/reply`, { body: spaces }))
    },
    answers: ['201', '409 mailbox_full', '429 rate_limited', '429 too_much_at_once'],
  },
  {
    name: 'forwarded HTML of tags that never end',
    scopes: ['messages:read', 'messages:write'],
    prepare: (attacker) =>
      mailbox(attacker, 1, () =>
        mailWith('Subject: Hello\r\nContent-Type: text/html', `${'<body '.repeat(13)}\r\n`.repeat(20_000)),
      ),
    run: async (attacker) => {
      const { id } = (await attacker.own('GET', '/emails', { quiet: true })).body.data[0]
      const body = { to: attacker.target.identity.email }
      await attacker.repeat(4, () => attacker.own('POST', `/emails/${id}/forward`, { body }))
    },
    answers: ['201', '409 mailbox_full', '429 rate_limited', '429 too_much_at_once'],
  },
  {
    name: 'a message of 24 MB, of which many small attachments and pages with images are read at once',
    scopes: ['messages:read'],
    prepare: async (attacker) => {
      const pictures = Array.from({ length: 20 }, (_, number) => number)
      const html = pictures.map((number) => `<img src="cid:i${number}">`).join('')
      const large = `Content-Type: application/x\r\n\r\n${words.repeat(360_000)}`
      const parts = [
        `Content-Type: text/html\r\n\r\n${html}`,
        ...pictures.map((number) => `Content-Type: image/png\r\nContent-ID: <i${number}>\r\n\r\nx`),
        large,
      ]
      const body = `${parts.map((part) => `--b\r\n${part}\r\n`).join('')}--b--`
      await attacker.mail(mailWith('Subject: Large\r\nContent-Type: multipart/related; boundary=b', body))
    },
    run: async (attacker) => {
      const { id } = (await attacker.own('GET', '/emails', { quiet: true })).body.data[0]
      const { url } = (await attacker.own('GET', `/emails/${id}/attachments/0`, { quiet: true })).body
      const { pathname, search } = new URL(url)
      const download = (_: unknown, number: number) =>
        attacker.call('GET', `${pathname}${search}`, { key: null, from: `127.0.0.${2 + (number % 10)}` })
      const page = () => attacker.own('GET', `/emails/${id}/html`)
      await Promise.all([...Array.from({ length: 40 }, download), ...Array.from({ length: 20 }, page)])
    },
    answers: ['200', '429 rate_limited', '429 too_much_at_once'],
  },
  {
    name: 'forwarded e-mails of nine hundred attachments',
    scopes: ['messages:read', 'messages:write'],
    prepare: (attacker) => {
      const attachment = '--b\r\nContent-Type: a/b\r\nContent-Disposition: attachment; filename=x\r\n\r\nx\r\n'
      const body = `${attachment.repeat(900)}--b\r\n\r\n${words.repeat(30_000)}\r\n--b--`
      return attacker.mail(mailWith('Subject: Many\r\nContent-Type: multipart/mixed; boundary=b', body))
    },
    run: async (attacker) => {
      const { id } = (await attacker.own('GET', '/emails', { quiet: true })).body.data[0]
      const body = { to: attacker.target.identity.email }
      await attacker.repeat(2, () => attacker.own('POST', `/emails/${id}/forward`, { body }))
    },
    answers: ['201', '409 mailbox_full', '429 rate_limited', '429 too_much_at_once'],
  },
  ...[
    ['blanks', `${' '.repeat(990)}x\r\n`],
    ['words', `${'ab '.repeat(330)}x\r\n`],
  ].map(([what = '', line = '']): Attack => ({
    name: `4 MB of lines of ${what}, forwarded as they are`,
    scopes: ['messages:read', 'messages:write'],
    prepare: async (attacker) => {
      await attacker.mail(mailWith('Subject: Long', line.repeat(4200)))
    },
    run: async (attacker) => {
      const { id } = (await attacker.own('GET', '/emails', { quiet: true })).body.data[0]
      const body = { to: attacker.target.identity.email, as_attachment: true }
      await attacker.repeat(4, () => attacker.own('POST', `/emails/${id}/forward`, { body }))
    },
    answers: ['201', '250', '409 mailbox_full', '429 rate_limited', '429 too_much_at_once'],
  })),
  {
    name: 'e-mails to a hundred recipients each',
    scopes: ['messages:write'],
    run: (attacker) =>
      attacker.repeat(8, (number) => {
        const to = Array.from({ length: 100 }, (_, place) => `a${number}.${place}@nobody.test`)
        return attacker.own('POST', '/emails', { body: { to, subject: 'Many', body_text: 'Words.' } })
      }),
    answers: [
      '201',
      '400 too_many_recipients',
      '400 invalid_value',
      '409 domain_not_verified',
      '409 outbound_off',
      '429 rate_limited',
    ],
  },
]

/** The same where no calls a minute bound it. */
const unbounded: Attack[] = [
  {
    name: 'waits that begin a long way back in the log, and end together',
    scopes: ['messages:read', 'identities:write'],
    prepare: (attacker) =>
      few(8, 6000, (number) =>
        attacker.call('PATCH', `/v1/identities/${attacker.target.identity.id}`, { ...changed(number), quiet: true }),
      ),
    run: async (attacker) => {
      const one = (_: unknown, number: number) =>
        attacker.own('GET', '/wait?since=1970-01-01T00:00:00Z&timeout=1', { from: `127.0.0.${2 + (number % 10)}` })
      while (!attacker.signal.aborted) await Promise.all(Array.from({ length: 300 }, one))
    },
    answers: ['200', '429 rate_limited', '429 too_many_waits', '429 too_many_waiting', '500 too_slow'],
  },
  {
    name: 'a thousand webhooks that hear of another identity, and changes of this one',
    scopes: ['account:write', 'identities:write', 'identities:read', 'messages:read'],
    wholeAccount: true,
    prepare: async (attacker) => {
      const { body } = await attacker.call('POST', '/v1/identities', { body: {}, quiet: true })
      const input = { url: 'https://receiver.test/', events: ['*'], identity_id: body.id }
      await few(16, 1000, () => attacker.call('POST', '/v1/webhooks', { body: input, quiet: true }))
    },
    run: (attacker) =>
      attacker.repeat(8, (number) => attacker.call('PATCH', `/v1/identities/${attacker.target.identity.id}`, changed(number))),
    answers: ['200', '429 rate_limited', '429 too_many_waiting'],
  },
  ...[
    { what: 'five thousand cards', count: 5000, path: '/cards', input: () => card() },
    {
      what: 'two thousand e-mails that are sent later',
      count: 2000,
      path: '/emails',
      // an identity may send to 200 an hour
      input: (number: number, to: string) => ({
        to,
        send_at: new Date(Date.now() + (2 + number / 150) * 3_600_000).toISOString(),
      }),
    },
  ].map(({ what, count, path, input }): Attack => ({
    name: `an identity with ${what}, deleted`,
    scopes: ['identities:read', 'identities:write', 'cards:write', 'emails:write'],
    lasts: 3000,
    prepare: (attacker) =>
      few(16, count, (number) =>
        attacker.own('POST', path, { body: input(number, attacker.target.identity.email), quiet: true }),
      ),
    run: async (attacker) => {
      await attacker.own('DELETE', '')
      await attacker.hold()
    },
    answers: ['200'],
  })),
]

// the endpoint of a stranger is on loopback here
underAttack(attacks, { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8', PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8' })
underAttack(unbounded, { PILLARBOX_HTTP__RATE_LIMIT: '0', PILLARBOX_HTTP__ACCOUNT_RATE_LIMIT: '0' })

/** Accounts of others, each with a key and an identity. */
async function tenantsOf({ target: { box } }: Attacker, count: number): Promise<Tenant[]> {
  const tenants: Tenant[] = []
  for (let number = 0; number < count; number += 1) {
    const login = `tenant${number}of${count}@attacker.test`
    const { id } = await box.operator('POST', '/v1/accounts', {
      name: login,
      email: login,
      password: 'a password that nobody guesses',
    })
    const { id: identity, email } = await box.operator('POST', '/v1/identities', {}, id)
    tenants.push({ key: (await box.operator('POST', '/v1/api-keys', {}, id)).key, identity, email })
  }
  return tenants
}

/** A message that nothing makes shorter. */
function mailOf23Megabytes(): Buffer {
  const lines = randomBytes(17_000_000).toString('base64').replaceAll(/.{76}/g, '$&\r\n')
  return mailWith('Subject: Large\r\nContent-Transfer-Encoding: base64\r\nContent-Type: a/b', lines)
}

function enclosure(filename: string, content_type: string, text: string) {
  return { filename, content_type, content: Buffer.from(text).toString('base64') }
}

function tomorrow(): string {
  return new Date(Date.now() + 86_400_000).toISOString()
}

function changed(number: number) {
  return { body: { metadata: { number: `${number}` } } }
}

/** Makes a call so often, so many at once; throws where one is refused. */
async function few(abreast: number, count: number, work: (number: number) => Promise<{ status: number }>): Promise<void> {
  let next = 0
  const one = async (): Promise<void> => {
    while (next < count) {
      const { status } = await work((next += 1))
      if (status >= 400) throw new Error(`A call was refused: ${status}`)
    }
  }
  await Promise.all(Array.from({ length: abreast }, one))
}

/** A text message of an archive. */
function textMessage(number: number): string {
  const received_at = new Date(Date.UTC(2020, 0, 1) + number * 1000).toISOString()
  const ends = { from: '+15550001111', to: '+15550002222', received_at, sent_at: null, delivered_at: null }
  const state = { direction: 'inbound', status: 'received', read: false, provider: 'x', segments: 1, error: null }
  return JSON.stringify({ ...ends, ...state, body: 'x', media: [], codes: [] })
}

/** So many text messages in the attacker's mailbox, by an import. */
async function textMessages(attacker: Attacker, count: number): Promise<void> {
  const files = {
    'sms.jsonl': Array.from({ length: count }, (_, number) => textMessage(number)).join('\n'),
    'identity.json': '{}',
    'messages.jsonl': '',
    'README.txt': 'x',
    'threads.jsonl': '',
    'events.jsonl': '',
  }
  async function* each(): AsyncGenerator<Packable> {
    for (const [name, text] of Object.entries(files)) yield { name, modified: 0, content: Buffer.from(text) }
  }
  const body = await buffer(zip(each()))
  const headers = { 'Content-Type': 'application/zip' }
  const { body: job } = await attacker.own('POST', '/import', { body, headers, quiet: true })
  for (let status = 'running'; status === 'running'; await sleep(200)) {
    status = (await attacker.call('GET', `/v1/jobs/${job.id}`, { quiet: true })).body.status
  }
}

/** So many e-mails in the attacker's mailbox. */
async function mailbox(attacker: Attacker, count: number, mail: (number: number) => Buffer): Promise<void> {
  let next = 0
  const one = async (): Promise<void> => {
    while (next < count) await attacker.mail(mail((next += 1)))
  }
  await Promise.all(Array.from({ length: 6 }, one))
}

/** A call of a tool of the Model Context Protocol. */
function useTool(attacker: Attacker, name: string, input: object): Promise<unknown> {
  const headers = { Accept: 'application/json, text/event-stream', 'MCP-Protocol-Version': '2025-06-18' }
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: input } }
  return attacker.call('POST', '/mcp', { body, headers })
}

/** Mail comes in for the attacker until the attack is over. */
async function flowing(attacker: Attacker): Promise<void> {
  await attacker.repeat(2, async () => {
    await attacker.mail(mailWith('Subject: One more', words))
    await sleep(20)
  })
}
