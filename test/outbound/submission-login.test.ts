import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HeldClock } from '../support/held-clock.ts'
import {
  base64,
  type Door,
  greeted,
  loggedIn,
  newKey,
  office,
  type Office,
  openOffice,
  plain,
  submit,
} from '../support/submission.ts'

const ada = 'ada@pillarbox.test'
const hello = 'From: ada@pillarbox.test\r\nSubject: Hello\r\n\r\nHi.\r\n'
const wrong = '535 5.7.8 User name or password is wrong'

describe('a login', () => {
  const clock = new HeldClock()
  let here: Office
  let close: () => Promise<void>
  beforeAll(async () => {
    ;({ here, close } = await openOffice({ PILLARBOX_SUBMISSION__MAX_FAILED_LOGINS: '1000' }, clock))
  })
  afterAll(() => close())

  /** AUTH on a session of its own; answers the last reply. */
  async function answerTo(...lines: string[]): Promise<string> {
    const client = await greeted(here.port('tls'), 'tls')
    let answer = ''
    for (const line of lines) answer = await client.say(line)
    client.destroy()
    return answer
  }

  test('is by the address of an identity and a key that may send as it, in each way clients have', async () => {
    const { key: bound } = await newKey(here.box, { identity_id: here.ada })
    const { key: narrow } = await newKey(here.box, { scopes: ['emails:write'] })
    const key = here.box.key
    const routing = [
      [plain(ada, key)],
      [plain(ada, bound)],
      [plain(ada, narrow)],
      [plain('ADA@PillarBox.Test', key)],
      [plain(ada, key, ada)],
      [plain(ada, key, 'ADA@pillarbox.test')],
      [plain('', key, ada)],
      ['AUTH PLAIN', base64(`\0${ada}\0${key}`)],
      ['auth plain', base64(`\0${ada}\0${key}`)],
      ['AUTH LOGIN', base64(ada), base64(key)],
      [`AUTH LOGIN ${base64(ada)}`, base64(key)],
    ]
    for (const way of routing) expect([way, await answerTo(...way)]).toEqual([way, expect.stringMatching(/^235 2\.7\.0 /)])
  })

  test('that is no good gets one answer, whatever is wrong, and no secret is logged', async () => {
    const { box } = here
    const made = async (name: string): Promise<string> => (await box.call('POST', '/v1/identities', { name })).body.id as string
    const [bob, suspended, deleted] = [await made('Bob'), await made('Suspended'), await made('Deleted')]
    await box.call('PATCH', `/v1/identities/${suspended}`, { status: 'suspended' })
    await box.call('DELETE', `/v1/identities/${deleted}`)
    const revoked = await newKey(box)
    await box.call('DELETE', `/v1/api-keys/${revoked.id}`)
    const rotated = await newKey(box)
    await box.call('POST', `/v1/api-keys/${rotated.id}/rotate`, {})
    const expired = await newKey(box, { expires_at: '2026-11-20T10:06:00Z' })
    clock.advance(120_000)
    const { key: bobs } = await newKey(box, { identity_id: bob })
    const { key: reading } = await newKey(box, { scopes: ['messages:read', 'emails:read', 'sms:write', 'account:write'] })
    const { key: good } = await newKey(box)
    const table: [string, string, string][] = [
      ['no such key', ada, 'pbx_nobodyhasthissecretkey'],
      ['no password', ada, ''],
      ['a key with something behind it', ada, `${good}x`],
      ['a key in capitals', ada, good.toUpperCase()],
      ['a revoked key', ada, revoked.key],
      ['a rotated key', ada, rotated.key],
      ['an expired key', ada, expired.key],
      ["another identity's key", ada, bobs],
      ['a key that may only read', ada, reading],
      ['a suspended identity', 'suspended@pillarbox.test', good],
      ['a deleted identity', 'deleted@pillarbox.test', good],
      ['no such identity', 'nobody@pillarbox.test', good],
      ['a tag in the name', 'ada+tag@pillarbox.test', good],
      ['the local part alone', 'ada', good],
      ['another domain', 'ada@elsewhere.test', good],
      ['name and password swapped', good, ada],
      ['two names', `${ada},${ada}`, good],
      ['a blank', ` ${ada}`, good],
    ]
    const answers = []
    for (const [what, user, password] of table) {
      answers.push([what, await answerTo(plain(user, password)), await answerTo('AUTH LOGIN', base64(user), base64(password))])
    }
    answers.push(['on behalf of another', await answerTo(plain(ada, good, 'bob@pillarbox.test')), wrong])
    expect(answers).toEqual(answers.map(([what]) => [what, wrong, wrong]))
    const failures = box.logged
      .filter((line) => line.includes('"login failed"'))
      .map((line) => JSON.parse(line) as { ip: string; reply: string })
    // of those that are alike thirty in a minute are lines
    expect(failures.length).toBeGreaterThanOrEqual(30)
    expect(new Set(failures.map(({ ip, reply }) => `${ip} ${reply}`))).toEqual(new Set([`127.0.0.1 ${wrong.trim()}`]))
    const log = box.logged.join('\n')
    const secrets = [good, bobs, reading, revoked.key, rotated.key, expired.key, 'nobodyhasthissecretkey']
    for (const secret of secrets.flatMap((one) => [one, base64(one), one.toUpperCase()])) expect(log).not.toContain(secret)
  })

  test.each([
    ['AUTH', /^504 /],
    ['AUTH CRAM-MD5', /^504 /],
    ['AUTH XOAUTH2 eA==', /^504 /],
    ['AUTH PLAIN !!!!', /^501 /],
    [`AUTH PLAIN ${base64('\0a\0b\0c')}`, /^501 /],
    [`AUTH PLAIN ${base64('\0a\r\nb\0c')}`, /^501 /],
    ['AUTH PLAIN a b', /^501 /],
    ['XCLIENT LOGIN=ada@pillarbox.test', /^500 /],
  ])('spelled %j is none', async (line, answer) => {
    expect(await answerTo(line)).toMatch(answer)
    expect(await answerTo(line, 'MAIL FROM:<ada@pillarbox.test>')).toMatch(/^530 5\.7\.0 /)
  })

  test('may be broken off, and is made once', async () => {
    const client = await greeted(here.port())
    expect(await client.say('AUTH LOGIN')).toMatch(/^334 /)
    expect(await client.say('*')).toMatch(/^501 /)
    expect(await client.say(plain(ada, here.box.key))).toMatch(/^235 /)
    expect(await client.say(plain(ada, here.box.key))).toMatch(/^503 /)
    expect(await client.say('EHLO client.test')).not.toContain('AUTH')
    client.destroy()
  })

  test('ends with its key or identity, at once', async () => {
    const { box } = here
    const { body } = await box.call('POST', '/v1/identities', { name: 'Eve' })
    const user = 'eve@pillarbox.test'
    const raw = hello.replace('ada@', 'eve@')
    const ends: [string, (id: string) => Promise<unknown>][] = [
      ['revoked', (id) => box.call('DELETE', `/v1/api-keys/${id}`)],
      ['rotated', (id) => box.call('POST', `/v1/api-keys/${id}/rotate`, {})],
      ['suspended', () => box.call('PATCH', `/v1/identities/${body.id}`, { status: 'suspended' })],
    ]
    for (const [what, end] of ends) {
      const { id, key } = await newKey(box)
      const idle = await loggedIn(here, { user, key })
      const busy = await loggedIn(here, { user, key })
      expect([what, await submit(busy, { from: user, raw })]).toEqual([what, expect.stringMatching(/^250 /)])
      for (const command of [`MAIL FROM:<${user}>`, 'RCPT TO:<bob@elsewhere.test>', 'DATA']) await busy.say(command)
      // a clock that stands still cannot tell before from after
      clock.advance(1)
      await end(id)
      clock.advance(1)
      expect([what, await idle.say(`MAIL FROM:<${user}>`)]).toEqual([what, expect.stringMatching(/^421 4\.7\.0 /)])
      busy.send(raw)
      expect([what, await busy.say('.')]).toEqual([what, expect.stringMatching(/^421 4\.7\.0 /)])
      await Promise.all([idle.end(), busy.end()])
    }
    const { body: list } = await box.call('GET', `/v1/identities/${body.id}/emails?direction=outbound`)
    expect(list.data).toHaveLength(ends.length)
  })

  test('by a rotated key lasts for the time of grace', async () => {
    const { id, key } = await newKey(here.box)
    const client = await loggedIn(here, { key })
    await here.box.call('POST', `/v1/api-keys/${id}/rotate`, { grace_seconds: 60 })
    expect(await submit(client, { raw: hello })).toMatch(/^250 /)
    clock.advance(61_000)
    expect(await client.say(`MAIL FROM:<${ada}>`)).toMatch(/^421 4\.7\.0 /)
    await client.end()
  })
})

describe('guessing', () => {
  test('ends a session after three wrong logins', async () => {
    const here = await office({ PILLARBOX_SUBMISSION__MAX_FAILED_LOGINS: '1000' })
    const client = await greeted(here.port())
    for (let count = 0; count < 3; count++) expect(await client.say(plain(ada, `guess-${count}`))).toBe(wrong)
    expect(await client.say(plain(ada, here.box.key))).toMatch(/^421 4\.7\.0 /)
    await client.end()
  })

  test('ends for a network after five different logins, at all doors, until a quarter of an hour has passed', async () => {
    const clock = new HeldClock()
    const here = await office({}, clock)
    const open = await loggedIn(here)
    const attempt = async (password: string, door: Door = 'tls'): Promise<string> => {
      const client = await greeted(here.port(door), door)
      const answer = await client.say(plain(ada, password))
      client.destroy()
      return answer
    }
    for (let count = 0; count < 20; count++) expect(await attempt('the same old key')).toBe(wrong)
    for (let count = 1; count < 5; count++) expect(await attempt(`guess-${count}`)).toBe(wrong)
    for (const door of ['tls', 'starttls'] as const) {
      expect(await attempt('guess-6', door)).toMatch(/^454 4\.7\.0 /)
      expect(await attempt(here.box.key, door)).toMatch(/^454 4\.7\.0 /)
    }
    // who is in stays in
    expect(await submit(open, { raw: hello })).toMatch(/^250 /)
    open.destroy()
    clock.advance(15 * 60_000)
    expect(await attempt(here.box.key)).toMatch(/^235 /)
    expect(await attempt('guess-7')).toBe(wrong)
    const metrics = await here.box.app.metrics.text()
    expect(metrics).toMatch(/pillarbox_smtp_logins_total\{result="blocked"\} 4/)
    expect(metrics).toMatch(/pillarbox_smtp_logins_total\{result="wrong"\} 25/)
  })

  test('waits for each answer', async () => {
    const here = await office({ PILLARBOX_SUBMISSION__FAILED_LOGIN_DELAY: '2 s' })
    const client = await greeted(here.port())
    let answered = false
    const answer = client.say(plain(ada, 'wrong')).finally(() => (answered = true))
    // another session is served meanwhile
    const other = await loggedIn(here)
    expect(answered).toBe(false)
    expect(await answer).toBe(wrong)
    client.destroy()
    other.destroy()
  })
})
