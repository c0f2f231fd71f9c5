import { createHash, randomBytes } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { inflateRawSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Examiner, type ExaminerOptions } from '../../src/mail/workers/examiner.ts'
import type { ExamineSettings, ExamineOrder, WorkerReport } from '../../src/mail/workers/examine.ts'
import { startThread, type WorkerThread } from '../../src/mail/workers/worker-slot.ts'
import { DnsStub } from '../support/dns-stub.ts'
import { envelope, plainMail, rsaKey, sign } from '../support/signed-mail.ts'
import { warmThread } from '../support/warm-threads.ts'

let stub: DnsStub
let examiner: Examiner | undefined
beforeAll(async () => {
  stub = await DnsStub.start()
  stub.txt('evil.test', 'v=spf1 ip4:192.0.2.1 -all').txt('_dmarc.evil.test', 'v=DMARC1; p=reject')
})
afterAll(() => stub.close())
afterEach(async () => {
  await examiner?.stop()
  examiner = undefined
})

/** Starts threads of a program beside the tests. */
const threadOf =
  (name: string): NonNullable<ExaminerOptions['thread']> =>
  (start, memory) =>
    startThread(new URL(`../support/${name}`, import.meta.url), start, memory)
const hostile = threadOf('hostile-worker.ts')
/** With the parsers loaded by an earlier test. */
const loaded: ExaminerOptions = { thread: warmThread }
const settings = (): ExamineSettings => ({
  hostname: 'mx.test',
  dmarc: 'reject',
  deadline: 60_000,
  trusted_sealers: [],
  dns: { servers: stub.servers, timeout: 30_000 },
  verify: true,
})

function open(options: ExaminerOptions = {}, change: Partial<ExamineSettings> = {}): Examiner {
  examiner = new Examiner({ ...settings(), ...change }, undefined, options)
  return examiner
}

const mail = (subject: string, body = 'hello\r\n') =>
  Buffer.from(plainMail('Eve <eve@evil.test>', body).replace('Subject: pay', `Subject: ${subject}`))

/** A worker that dies over what it is given, and answers nothing about what it is given alone. */
class MortalWorker extends EventEmitter<{ message: [WorkerReport]; error: [Error]; exit: [] }> implements WorkerThread {
  readonly #alone: (subject: string) => void

  constructor(alone: (subject: string) => void) {
    super()
    this.#alone = alone
    setImmediate(() => this.emit('message', { alive: true }))
  }

  postMessage(order: ExamineOrder): void {
    if ('settings' in order) return
    const [task] = order.tasks
    if (task?.suspect !== true) return void setImmediate(() => this.emit('exit'))
    this.#alone(/^Subject: (.*)\r$/m.exec(Buffer.from(order.octets).toString('latin1'))?.[1] ?? '')
  }

  async terminate(): Promise<void> {}
}

describe('a message', () => {
  test('is read, judged, hashed and packed', async () => {
    const key = rsaKey()
    stub.txt('s._domainkey.evil.test', key.record)
    const raw = await sign(plainMail('Eve <eve@evil.test>', 'hello '.repeat(500)), 'evil.test', 's', key)
    const { parsed, verdict, sha256, deflated } = await open().examine(raw, envelope())
    expect(parsed).toMatchObject({ subject: 'pay', from: { address: 'eve@evil.test', name: 'Eve' }, parse_error: null })
    expect(verdict).toMatchObject({ verified_domain: 'evil.test', action: 'keep' })
    expect(verdict.authentication.dkim).toMatchObject([{ result: 'pass' }])
    expect(sha256).toBe(createHash('sha256').update(raw).digest('hex'))
    expect(inflateRawSync(deflated!).equals(raw)).toBe(true)
  })

  test('that does not get smaller is not packed, and stays the caller’s own', async () => {
    const raw = Buffer.concat([Buffer.from('Subject: x\r\n\r\n'), randomBytes(5000)])
    const before = Buffer.from(raw)
    expect((await open(loaded).examine(raw, envelope())).deflated).toBeNull()
    expect(raw.equals(before)).toBe(true)
  })

  test.each([
    ['in a part', 'Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\n', 'AA==\r\n', 'too_many_lines'],
    ['in no part', 'Content-Type: multipart/mixed; boundary=b\r\n\r\n', '--bx\r\n', 'no_parts'],
  ])('of a million lines %s needs no memory for each', async (_, head, line, flaw) => {
    const raw = Buffer.from(`From: eve@evil.test\r\n${head}${line.repeat(1_300_000)}`)
    const { parsed } = await open({ workers: 1, memory: 64, parseTimeout: 60_000 }, { verify: false }).examine(raw, envelope())
    expect(parsed.parse_error).toMatch(new RegExp(`^${flaw}`))
  })

  test('may be empty', async () => {
    const { sha256, verdict } = await open(loaded).examine(Buffer.alloc(0), envelope())
    expect(sha256).toBe(createHash('sha256').digest('hex'))
    expect(verdict.action).toBe('keep')
  })

  test('gets its own answer among many', async () => {
    const pool = open({ ...loaded, workers: 2, depth: 4 })
    const answers = await Promise.all(Array.from({ length: 300 }, (_, index) => pool.examine(mail(`n${index}`), envelope())))
    expect(answers.map(({ parsed }) => parsed.subject)).toEqual(Array.from({ length: 300 }, (_, index) => `n${index}`))
    expect(answers.every(({ verdict }) => verdict.verified_domain === 'evil.test')).toBe(true)
    expect(pool.counters).toEqual({ examined: 300, retried: 0, killed: 0 })
    expect([pool.waiting, pool.outstanding]).toEqual([0, 0])
  })

  test('is verified only for the author it shows', async () => {
    const pool = open(loaded)
    const authors = ['eve@evil.test', '(a(b)<eve@evil.test>) ceo@bank.test', '"a;" <x@y>, g: "q;z" <eve@evil.test>;']
    authors.push(
      'ceo@bank.test .evil.test',
      '"ceo@bank.test" <eve@evil.test>',
      '=?utf-8?Q?=22ceo=40bank.test=22?= <eve@evil.test>',
    )
    authors.push(
      'eve@evil.test\r\nFrom: ceo@bank.test',
      '<@evil.test:ceo@bank.test>',
      'eve@evil.test, ceo@bank.test',
      'eve@EVIL.test.',
    )
    authors.push(
      'ceo@bank.test\r\nFrom\r\n : eve@evil.test',
      'g: eve@evil.test;',
      '=?utf-8?Q?ceo=40bank.test?= eve@evil.test',
      '',
    )
    const answers = await Promise.all(authors.map((from) => pool.examine(Buffer.from(plainMail(from)), envelope())))
    expect(answers.filter(({ verdict }) => verdict.verified_domain !== null).length).toBeGreaterThanOrEqual(4)
    for (const { parsed, verdict } of answers) {
      const domain = parsed.from?.address.split('@').at(-1)?.replace(/\.$/, '')
      expect([null, domain]).toContain(verdict.verified_domain)
    }
  })

  test('is refused when its sender asks so', async () => {
    const { verdict } = await open(loaded).examine(mail('forged'), envelope({ remote_address: '203.0.113.9' }))
    expect(verdict).toMatchObject({ action: 'reject', reply: { code: 550 } })
  })

  test('does not keep others waiting while it waits for the DNS', async () => {
    stub.txt('slow.test', 'v=spf1 -all').slow('slow.test', 60_000)
    const pool = open({ ...loaded, workers: 1 }, { deadline: 1500, dns: { servers: stub.servers, timeout: 60_000 } })
    const order: string[] = []
    const slow = pool.examine(mail('slow'), envelope({ mail_from: 'a@slow.test' })).then(() => order.push('slow'))
    const quick = pool.examine(mail('quick'), envelope()).then(() => order.push('quick'))
    await Promise.all([slow, quick])
    expect(order).toEqual(['quick', 'slow'])
  })
})

describe('a message the parser cannot read', () => {
  test('is kept with what its header says', async () => {
    const { parsed, verdict } = await open({ thread: hostile }).examine(mail('throw'), envelope())
    expect(parsed).toMatchObject({
      subject: 'throw',
      from: { address: 'eve@evil.test', name: 'Eve' },
      to: [{ address: 'u@mx.test' }],
      message_id: '<1@evil.test>',
      parse_error: 'cannot be read at all',
    })
    expect(verdict.verified_domain).toBe('evil.test')
  })

  test.each([
    ['spin', 'deadline', 2000],
    // A busy machine takes its time to fill the heap.
    ['hoard', 'memory', 25_000],
    ['exit', 'crash', 25_000],
  ])('because of "%s" is kept, and those beside and after it are read', async (subject, why, parseTimeout) => {
    const pool = open({ workers: 1, thread: hostile, parseTimeout, memory: 32 })
    const killer = mail(subject)
    const [before, killed, after] = await Promise.all([
      pool.examine(mail('before'), envelope()),
      pool.examine(killer, envelope()),
      pool.examine(mail('after'), envelope()),
    ])
    expect([before.parsed.parse_error, after.parsed.parse_error]).toEqual([null, null])
    expect([before.verdict.verified_domain, after.verdict.verified_domain]).toEqual(['evil.test', 'evil.test'])
    expect(killed.parsed).toMatchObject({
      subject,
      from: { address: 'eve@evil.test' },
      parse_error: `the parser did not finish (${why})`,
    })
    expect(killed.verdict).toMatchObject({
      action: 'keep',
      verified_domain: 'evil.test',
      authentication: { spf: { result: 'pass' }, dmarc: { result: 'pass' } },
    })
    expect(killed.sha256).toBe(createHash('sha256').update(killer).digest('hex'))
    expect(pool.counters.killed).toBe(1)
    expect((await pool.examine(mail('next'), envelope())).parsed).toMatchObject({ subject: 'next', parse_error: null })
  })

  test.each([
    ['spin', 2000],
    ['exit', 25_000],
  ])('because of "%s" is refused all the same when its sender asks so', async (subject, parseTimeout) => {
    const pool = open({ workers: 1, thread: hostile, parseTimeout })
    const { verdict } = await pool.examine(mail(subject), envelope({ remote_address: '203.0.113.9' }))
    expect(verdict).toMatchObject({
      action: 'reject',
      reply: { code: 550 },
      verified_domain: null,
      authentication: { spf: { result: 'fail' }, dmarc: { result: 'fail' } },
    })
    expect((await pool.examine(mail('next'), envelope())).parsed.parse_error).toBeNull()
  })

  test('leaves those beside it to other workers', async () => {
    const pool = open({ workers: 1, thread: hostile, parseTimeout: 3000 })
    const order: string[] = []
    const ask = (raw: Buffer, name: string) => pool.examine(raw, envelope()).then(() => order.push(name))
    await Promise.all([
      ask(mail('spin'), 'spin'),
      ask(mail('large', 'large\r\n'.repeat(1000)), 'large'),
      ask(mail('small', ''), 'small'),
      ask(mail('larger', 'large\r\n'.repeat(2000)), 'larger'),
    ])
    expect(order.at(-1)).toBe('spin')
    expect(order).toHaveLength(4)
  })

  test('leaves those that its worker had not begun as they were, unless they are of its account or sender', async () => {
    const pool = open({ workers: 1, thread: hostile, parseTimeout: 2000 }, { verify: false })
    const order: string[] = []
    const ask = async (subject: string, account: string, address: string) => {
      const { parsed } = await pool.examine(mail(subject), envelope({ remote_address: address }), account)
      order.push(subject)
      return parsed.parse_error
    }
    const errors = await Promise.all([
      ask('spin', 'a', '192.0.2.1'),
      ask('honest', 'b', '198.51.100.1'),
      ask('of its account', 'a', '198.51.100.2'),
      ask('of its sender', 'c', '192.0.2.1'),
      ask('honest too', 'b', '198.51.100.1'),
    ])
    expect(errors).toEqual(['the parser did not finish (deadline)', null, null, null, null])
    expect(order.filter((subject) => subject.startsWith('honest'))).toEqual(['honest', 'honest too'])
    expect(pool.counters).toEqual({ examined: 4, retried: 3, killed: 1 })
  })

  test('and that waits for what never comes is given up alone, and makes room for others', async () => {
    // long before its worker would be ended
    const pool = open({ workers: 1, depth: 2, thread: hostile, parseTimeout: 120_000 }, { verify: false })
    const ask = (subject: string, account: string) => pool.examine(mail(subject), envelope(), account)
    const stuck = Promise.all(['a', 'a', 'b'].map((account) => ask('never', account)))
    expect((await ask('honest', 'c')).parsed).toMatchObject({ subject: 'honest', parse_error: null })
    for (const { parsed } of await stuck)
      expect(parsed).toMatchObject({ subject: 'never', parse_error: 'the parser did not finish (deadline)' })
    expect(pool.counters).toEqual({ examined: 4, retried: 0, killed: 3 })
  })

  test('waits for a worker of its own beside few of its sender only, and not behind those of others', async () => {
    const alone: string[] = []
    const { promise: othersTurn, resolve } = Promise.withResolvers<void>()
    const thread = (): WorkerThread =>
      new MortalWorker((subject) => {
        alone.push(subject)
        if (subject === 'other') resolve()
      })
    const pool = open({ workers: 1, depth: 2, timeout: 0, parseTimeout: 120_000, thread })
    const bad = Array.from({ length: 12 }, (_, index) =>
      // to two accounts
      pool.examine(mail('bad'), envelope({ remote_address: '192.0.2.1' }), `account${index % 2}`),
    )
    const unread: string[] = []
    const { promise: enough, resolve: reached } = Promise.withResolvers<void>()
    const settled = Promise.allSettled(
      bad.map(async (one) => {
        unread.push((await one).parsed.parse_error ?? '')
        if (unread.length === 4) reached()
      }),
    )
    await enough
    const other = pool.examine(mail('other'), envelope({ remote_address: '198.51.100.1' }), 'account2').catch(() => undefined)
    await othersTurn
    // two have a worker, three wait for each account
    expect(alone).toEqual(['bad', 'bad', 'other'])
    expect(unread).toEqual(Array.from({ length: 4 }, () => 'the parser did not finish (crash)'))
    await pool.stop()
    await Promise.all([settled, other])
  })

  test('has no other large one beside it when it is large, but small ones', async () => {
    const alone: string[] = []
    const largeTurn = Promise.withResolvers<void>()
    const othersTurn = Promise.withResolvers<void>()
    const thread = (): WorkerThread =>
      new MortalWorker((subject) => {
        alone.push(subject)
        if (subject === 'other') othersTurn.resolve()
        else largeTurn.resolve()
      })
    const pool = open({ workers: 1, timeout: 0, parseTimeout: 120_000, thread })
    const from = (sender: number, subject: string, body?: string) =>
      pool
        .examine(mail(subject, body), envelope({ remote_address: `192.0.2.${sender}` }), `account${sender}`)
        .catch(() => undefined)
    const lines = 'words\r\n'.repeat(700_000)
    const large = [from(1, 'large', lines), from(2, 'large', lines)]
    await largeTurn.promise
    const other = from(3, 'other')
    await othersTurn.promise
    expect(alone).toEqual(['large', 'other'])
    await pool.stop()
    await Promise.all([...large, other])
  })

  test('is not given up while it waits for the DNS alone', async () => {
    stub.txt('slower.test', 'v=spf1 -all').slow('slower.test', 60_000)
    const pool = open(
      { ...loaded, workers: 1, parseTimeout: 400 },
      { deadline: 1500, dns: { servers: stub.servers, timeout: 60_000 } },
    )
    const { parsed } = await pool.examine(mail('slow'), envelope({ mail_from: 'a@slower.test' }))
    expect(parsed).toMatchObject({ subject: 'slow', parse_error: null })
  })
})

describe('the examiner', () => {
  test('hands out attachments', async () => {
    const pool = open(loaded)
    const raw = Buffer.from(
      [
        'From: eve@evil.test',
        'MIME-Version: 1.0',
        'Content-Type: multipart/mixed; boundary=b',
        '',
        '--b',
        'Content-Type: text/plain',
        '',
        'hi',
        '--b',
        'Content-Type: application/octet-stream',
        'Content-Disposition: attachment; filename=a.bin',
        'Content-Transfer-Encoding: base64',
        '',
        'Y29udGVudA==',
        '--b--',
        '',
      ].join('\r\n'),
    )
    const [found, ...others] = await pool.attachments(raw, [0, 7])
    expect(others).toEqual([])
    expect(found?.content.toString()).toBe('content')
    expect(found?.attachment.sha256).toBe(createHash('sha256').update('content').digest('hex'))
    expect(await pool.attachments(raw, [7])).toEqual([])
  })

  test('takes over new settings', async () => {
    const pool = open(loaded)
    const forged = envelope({ remote_address: '203.0.113.9' })
    expect((await pool.examine(mail('one'), forged)).verdict.action).toBe('reject')
    pool.reload({ ...settings(), dmarc: 'quarantine' })
    expect((await pool.examine(mail('two'), forged)).verdict.action).toBe('spam')
    pool.reload({ ...settings(), verify: false })
    expect((await pool.examine(mail('three'), forged)).verdict).toMatchObject({
      action: 'keep',
      authentication: { spf: { result: 'none' } },
    })
  })

  test('answers what it took when it is stopped, and takes no more', async () => {
    const pool = open({ ...loaded, workers: 1 })
    const answers = Promise.all(Array.from({ length: 50 }, (_, index) => pool.examine(mail(`n${index}`), envelope())))
    await pool.stop()
    expect(await answers).toHaveLength(50)
    await expect(pool.examine(mail('late'), envelope())).rejects.toMatchObject({ type: 'internal_error' })
  })

  test('stops without what its workers do not finish', async () => {
    const pool = open({ workers: 1, depth: 2, thread: hostile, parseTimeout: 120_000, timeout: 50 })
    const subjects = ['spin', 'never', 'waits', 'waits']
    const asked = Promise.allSettled(subjects.map((subject) => pool.examine(mail(subject), envelope())))
    await pool.stop()
    for (const { status } of await asked) expect(status).toBe('rejected')
    expect([pool.waiting, pool.outstanding]).toEqual([0, 0])
  })

  test('has small messages in a worker beside the largest, and no others', async () => {
    const inWorker: string[] = []
    const { promise: lastCame, resolve } = Promise.withResolvers<void>()
    class SilentWorker extends MortalWorker {
      override postMessage(order: ExamineOrder): void {
        if ('settings' in order) return
        for (const { start, end } of order.tasks) {
          const [, subject = ''] = /^Subject: (.*)\r$/m.exec(Buffer.from(order.octets, start, end - start).toString('latin1'))!
          inWorker.push(subject)
          if (subject === 'last') resolve()
        }
      }
    }
    const pool = open({ workers: 1, timeout: 0, parseTimeout: 120_000, thread: () => new SilentWorker(() => undefined) })
    const of = (account: string, subject: string, octets: number) =>
      pool.examine(mail(subject, 'words\r\n'.repeat(octets / 7)), envelope(), account).catch(() => undefined)
    const settled = [
      of('one', 'largest', 20_000_000),
      of('two', 'large', 100_000),
      of('three', 'small', 50_000),
      of('four', 'last', 70),
    ]
    await lastCame
    expect(inWorker).toEqual(['largest', 'small', 'last'])
    await pool.stop()
    await Promise.all(settled)
  })

  test('keeps mail unread when no worker starts at all', async () => {
    const pool = open({ workers: 1, thread: threadOf('no-such-worker.ts') })
    const { parsed, verdict } = await pool.examine(mail('anyway'), envelope())
    expect(parsed).toMatchObject({ subject: 'anyway', parse_error: 'the parser did not finish (crash)' })
    expect(verdict.action).toBe('keep')
  })
})
