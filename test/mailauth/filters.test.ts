import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Lookup } from '../../src/net/dns.ts'
import { blocklisted, rspamd } from '../../src/mailauth/filters.ts'
import { envelope } from '../support/signed-mail.ts'

describe('DNS blocklists', () => {
  test('name the list that has the address', async () => {
    const lookup = listed({ '9.113.0.203.two.test': ['127.0.0.2'] })
    expect(await blocklisted('203.0.113.9', ['one.test', 'two.test'], lookup)).toBe('two.test')
    expect(await blocklisted('::ffff:203.0.113.9', ['one.test', 'two.test'], lookup)).toBe('two.test')
    expect(await blocklisted('203.0.113.8', ['one.test', 'two.test'], lookup)).toBeNull()
  })

  test('have IPv6 addresses by nibbles', async () => {
    const lookup = listed({ '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.list.test': ['127.0.0.4'] })
    expect(await blocklisted('2001:db8::1', ['list.test'], lookup)).toBe('list.test')
  })

  test.each([['192.0.2.1'], ['127.255.255.254'], ['10.0.0.1']])('an answer of %s lists nobody', async (answer) => {
    expect(await blocklisted('203.0.113.9', ['list.test'], listed({ '9.113.0.203.list.test': [answer] }))).toBeNull()
  })

  test('in trouble list nobody, and what is no address is on no list', async () => {
    expect(await blocklisted('203.0.113.9', ['list.test'], broken)).toBeNull()
    expect(await blocklisted('unknown', ['list.test'], broken)).toBeNull()
  })
})

describe('rspamd', () => {
  let server: Server
  let url: string
  let seen: { request: IncomingMessage; body: string } | null
  let answer: (response: ServerResponse) => void

  beforeEach(async () => {
    seen = null
    answer = (response) => response.end()
    server = createServer((request, response) => {
      void (async () => {
        seen = { request, body: await text(request) }
        answer(response)
      })()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  })
  afterEach(() => {
    server.closeAllConnections()
    server.close()
  })

  const ask = (change = {}, settings = {}) =>
    rspamd(Buffer.from('Subject: hi\r\n\r\nhello\r\n'), envelope(change), { url, timeout: 60_000, ...settings })
  const says = (body: unknown, status = 200) => {
    answer = (response) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

  test.each([
    ['no action', 'keep', null],
    ['greylist', 'keep', null],
    ['add header', 'spam', null],
    ['rewrite subject', 'spam', null],
    ['soft reject', 'defer', 451],
    ['reject', 'reject', 550],
    ['something new', 'keep', null],
  ])('its "%s" is our %s', async (action, expected, code) => {
    says(reply(action))
    const opinion = await ask()
    expect(opinion).toMatchObject({ action: expected, score: 7.5, symbols: ['BAYES_SPAM', 'MISSING_DATE'] })
    expect(opinion.reply?.code ?? null).toBe(code)
  })

  test('is told of the envelope and given the message', async () => {
    says(reply('no action'))
    await ask({ recipients: ['a@mx.test', 'b@mx.test'], session: 'Q1' }, { password: 'secret' })
    expect(seen?.request).toMatchObject({ method: 'POST', url: '/checkv2' })
    expect(seen?.body).toBe('Subject: hi\r\n\r\nhello\r\n')
    expect(seen?.request.headersDistinct).toMatchObject({
      ip: ['192.0.2.1'],
      helo: ['mail.evil.test'],
      from: ['eve@evil.test'],
      rcpt: ['a@mx.test', 'b@mx.test'],
      'queue-id': ['Q1'],
      password: ['secret'],
    })
  })

  test('cannot be told of more than one line by a sender', async () => {
    says(reply('add header'))
    expect((await ask({ helo: 'x\r\nSettings: {}', mail_from: 'ü@evil.test', recipients: ['\0@mx.test'] })).action).toBe('spam')
    expect(seen?.request.headers['settings']).toBeUndefined()
    expect(Buffer.from(String(seen?.request.headers.from), 'latin1').toString()).toBe('ü@evil.test')
  })

  test('that errs, babbles, dawdles or is not there changes nothing', async () => {
    says({ error: 'overload' }, 503)
    expect((await ask()).action).toBe('keep')
    says({ nothing: 'useful' })
    expect((await ask()).action).toBe('keep')
    answer = (response) => response.end('x'.repeat(2 * 1024 * 1024))
    expect((await ask()).action).toBe('keep')
    answer = () => undefined
    expect((await ask({}, { timeout: 100 })).action).toBe('keep')
    expect((await ask({}, { url: 'http://127.0.0.1:1' })).action).toBe('keep')
  })
})

function listed(entries: Record<string, string[]>): Lookup {
  return async (name) => {
    const answer = entries[name]
    if (answer) return answer
    throw Object.assign(new Error('none'), { code: 'ENOTFOUND' })
  }
}

const broken: Lookup = async () => {
  throw Object.assign(new Error('late'), { code: 'ETIMEOUT' })
}

/** The shape of rspamd 3: symbols by name, each with score, metric_score and options. */
function reply(action: string, score = 7.5) {
  return {
    is_skipped: false,
    score,
    required_score: 15,
    action,
    thresholds: { reject: 15, 'add header': 6, greylist: 4 },
    symbols: {
      BAYES_SPAM: {
        name: 'BAYES_SPAM',
        score: 5.1,
        metric_score: 5.1,
        description: 'Message probably spam',
        options: ['99.95%'],
      },
      MISSING_DATE: { name: 'MISSING_DATE', score: 1, metric_score: 1 },
    },
    messages: {},
    'message-id': 'undef',
    time_real: 0.012,
  }
}
