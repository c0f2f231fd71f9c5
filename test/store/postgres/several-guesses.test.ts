import { generateSync } from 'otplib'
import { expect, test } from 'vitest'
import { type GuessTarget, SharedGuesses } from '../../../src/accounts/sign-in/guesses.ts'
import { SharedFailedLogins } from '../../../src/smtp/failed-logins.ts'
import { sql } from '../../../src/store/database.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import { HeldClock } from '../../support/held-clock.ts'
import { attempt, person, signIn, withPassword } from '../../support/people.ts'
import { greeted, plain } from '../../support/submission.ts'
import { severalBoxes } from './boxes.ts'
import { emptyDatabase, opened, serverOfFile } from './server.ts'

const postgres = serverOfFile()
const unlimited = { PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0' }
const at = (name: string): GuessTarget => ({ name, exists: true, known: false })

test('of two boxes each counts the wrong passwords that were tried at the other, also those tried at once', async () => {
  const boxes = await severalBoxes(postgres(), 2, unlimited)
  const [one, other] = boxes
  await withPassword(one)
  const tried = await Promise.all(
    boxes.flatMap((box) => Array.from({ length: 10 }, (_, n) => attempt(box, { ...person, password: `wrong ${n}` }))),
  )
  expect(tried.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([...Array(5).fill(401), ...Array(15).fill(429)])
  for (const box of boxes) expect((await attempt(box, person)).body.error['code']).toBe('too_many_attempts')
  // an address that nobody has is counted the same
  for (let n = 0; n < 5; n += 1) await attempt(n % 2 ? one : other, { email: 'nobody@example.com', password: `wrong ${n}` })
  expect((await attempt(one, { email: 'NOBODY@example.com', password: 'x' })).body.error['code']).toBe('too_many_attempts')
})

test('of two boxes each knows that the other was given the right password, and a failed change of it is no part of its call', async () => {
  const [one, other] = await severalBoxes(postgres(), 2, unlimited)
  await withPassword(one)
  for (let n = 0; n < 4; n += 1) expect((await attempt(n % 2 ? one : other, { ...person, password: 'wrong' })).status).toBe(401)
  const page = await signIn(other)
  for (let n = 0; n < 4; n += 1) expect((await attempt(n % 2 ? one : other, { ...person, password: 'wrong' })).status).toBe(401)
  const change = { current_password: 'wrong', password: 'another long and quiet evening' }
  for (let n = 0; n < 5; n += 1) {
    const { status } = await page.call('POST', '/v1/account/password', change, { headers: { 'Idempotency-Key': `change ${n}` } })
    expect(status).toBe(403)
  }
  expect((await page.call('POST', '/v1/account/password', change)).status).toBe(429)
  const { body: log } = await page.call('GET', '/v1/audit?action=password.changed')
  expect(log.data).toEqual([])
})

test('of two boxes each counts the codes that were tried at the other', async () => {
  const boxes = await severalBoxes(postgres(), 2, { ...unlimited, PILLARBOX_HTTP__TRUSTED_PROXIES: '127.0.0.0/8' })
  const [one] = boxes
  await withPassword(one)
  const page = await signIn(one)
  const { body: factor } = await page.call('POST', '/v1/account/totp', { password: person.password })
  const code = generateSync({ secret: factor['secret'] as string })
  expect((await page.call('POST', '/v1/account/totp/confirm', { code })).status).toBe(200)
  const statuses: number[] = []
  for (let n = 0; n < 34; n += 1) {
    const from = { 'X-Forwarded-For': `192.0.2.${n}` }
    statuses.push((await attempt(boxes[n % 2]!, { ...person, totp: '000000' }, from)).status)
  }
  expect(statuses).toEqual([...Array(30).fill(401), ...Array(4).fill(429)])
})

test('of two boxes, what strangers try at names that nobody has does not count as attempts of a person with a recovery code', async () => {
  const boxes = await severalBoxes(postgres(), 2, { ...unlimited, PILLARBOX_HTTP__TRUSTED_PROXIES: '127.0.0.0/8' })
  const [one, other] = boxes
  await withPassword(one)
  const page = await signIn(one)
  const { body: factor } = await page.call('POST', '/v1/account/totp', { password: person.password })
  const code = generateSync({ secret: factor['secret'] as string })
  const { body: confirmed } = await page.call('POST', '/v1/account/totp/confirm', { code })
  const recovery_code = ((confirmed['recovery_codes'] ?? factor['recovery_codes']) as string[])[0]!
  const statuses = await Promise.all(
    Array.from({ length: 52 }, async (_, n) => {
      const from = { 'X-Forwarded-For': `198.51.${n}.1` }
      return (await attempt(boxes[n % 2]!, { email: 'recovery ada@example.com', password: 'x' }, from)).status
    }),
  )
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0)
  const from = { 'X-Forwarded-For': '203.0.113.1' }
  expect((await attempt(other, { ...person, recovery_code }, from)).status).toBe(200)
})

test('of two boxes each counts the logins by SMTP that failed at the other', async () => {
  const listener = { PILLARBOX_SUBMISSION__LISTEN: '127.0.0.1:0', PILLARBOX_SUBMISSION__FAILED_LOGIN_DELAY: '0 ms' }
  const boxes = await severalBoxes(postgres(), 2, { ...listener, PILLARBOX_SUBMISSION__MAX_FAILED_LOGINS: '4' })
  const answers: string[] = []
  const login = async (box: (typeof boxes)[number], password: string): Promise<void> => {
    const client = await greeted(box.app.submissionAddresses.starttls[0]!.port)
    answers.push((await client.say(plain('ada@pillarbox.test', password))).slice(0, 3))
    client.socket.destroy()
  }
  // a repeated one counts once
  for (const box of boxes) await login(box, 'outdated')
  for (let n = 0; n < 5; n += 1) await login(boxes[n % 2]!, `wrong ${n}`)
  expect(answers).toEqual(['535', '535', '535', '535', '535', '454', '454'])
})

test('what counts no more is removed, and of names that nobody has only the latest stay', async () => {
  const target = await emptyDatabase(postgres(), 'swept')
  await preparePostgres(target, false)
  const { database } = await opened(target, { shared: true })
  const clock = new HeldClock()
  const guesses = new SharedGuesses(database, clock)
  const logins = new SharedFailedLogins({ database, clock, key: Buffer.from('key') })
  await guesses.begin(at('ada'), '192.0.2.1')
  await logins.note('192.0.2.1', 'ada', 'wrong')
  await database.transaction((tx) =>
    tx.run(
      sql`INSERT INTO guesses SELECT 'nobody ' || n, '{}', 0, CAST(${clock.now()} AS BIGINT) + n FROM generate_series(1, 50010) AS n`,
    ),
  )
  const names = (): Promise<unknown[]> =>
    database.all(sql`SELECT known, CAST(count(*) AS BIGINT) AS names FROM guesses GROUP BY known ORDER BY known`)
  await guesses.sweep()
  expect(await names()).toEqual([
    { known: 0, names: 50_000 },
    { known: 1, names: 1 },
  ])
  await logins.sweep()
  expect(await logins.tooMany('192.0.2.1', 1)).toBe(true)
  clock.advance(86_500_000)
  await guesses.sweep()
  await logins.sweep()
  expect([await names(), await database.all(sql`SELECT * FROM failed_logins`)]).toEqual([[], []])
})

test('logins by SMTP that failed while the clock of a box was ahead block nobody once it is right, and are removed', async () => {
  const target = await emptyDatabase(postgres(), 'ahead')
  await preparePostgres(target, false)
  const { database } = await opened(target, { shared: true })
  const clock = new HeldClock()
  const logins = new SharedFailedLogins({ database, clock, key: Buffer.from('key') })
  const year = 365 * 86_400_000
  clock.advance(year)
  for (const password of ['one', 'two']) await logins.note('192.0.2.1', 'ada', password)
  expect(await logins.tooMany('192.0.2.1', 2)).toBe(true)
  clock.advance(-year)
  expect(await logins.tooMany('192.0.2.1', 2)).toBe(false)
  for (const password of ['one', 'two']) await logins.note('192.0.2.1', 'ada', password)
  expect(await logins.tooMany('192.0.2.1', 2)).toBe(true)
  // the clocks of two boxes differ a little
  clock.advance(-20_000)
  expect(await logins.tooMany('192.0.2.1', 2)).toBe(true)
  clock.advance(-year)
  await logins.sweep()
  expect(await database.all(sql`SELECT * FROM failed_logins`)).toEqual([])
})
