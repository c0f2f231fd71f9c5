import { argon2Sync } from 'node:crypto'
import { openStore } from '../support/open-store.ts'
import { join } from 'node:path'
import { generateSync } from 'otplib'
import { expect, test } from 'vitest'
import { Guesses } from '../../src/accounts/sign-in/guesses.ts'
import { PasswordHashes } from '../../src/accounts/sign-in/password-hash.ts'
import { day } from '../../src/core/clock.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { attempt, person, signIn, withPassword } from '../support/people.ts'

const unlimited = { PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0' }

test('a wrong password and an address that nobody has are answered alike', async () => {
  const box = await appliance()
  await withPassword(box)
  const wrong = await attempt(box, { ...person, password: 'a short and loud morning' })
  const nobody = await attempt(box, { ...person, email: 'nobody@example.com' })
  expect([wrong.status, wrong.body.error['code']]).toEqual([401, 'invalid_credentials'])
  const plain = (answer: typeof wrong): string => JSON.stringify(answer.body).replace(/req_\w+/, '')
  expect(plain(nobody)).toBe(plain(wrong))
  expect([wrong.headers.getSetCookie(), nobody.headers.getSetCookie()]).toEqual([[], []])
})

test('five attempts a minute from one address, whoever they are for', async () => {
  const clock = new HeldClock()
  const box = await appliance({}, clock)
  await withPassword(box)
  for (let n = 0; n < 5; n += 1) expect((await attempt(box, { email: `p${n}@example.com`, password: 'wrong' })).status).toBe(401)
  const sixth = await attempt(box, person)
  expect([sixth.status, sixth.headers.get('ratelimit-policy')]).toEqual([429, '"sign-in";q=5;w=60'])
  expect(Number(sixth.headers.get('retry-after'))).toBeGreaterThan(0)
  clock.advance(60_000)
  expect((await attempt(box, person)).status).toBe(200)
})

test('wrong passwords for one account make pauses that grow, from there alone, and end with the right one', async () => {
  const clock = new HeldClock()
  // the proxy's word is believed, so that the test may come from anywhere
  const box = await appliance({ ...unlimited, PILLARBOX_HTTP__TRUSTED_PROXIES: '127.0.0.0/8' }, clock)
  await withPassword(box)
  const guess = (address: string, password: string) => attempt(box, { ...person, password }, { 'X-Forwarded-For': address })
  for (let n = 0; n < 5; n += 1) expect((await guess('192.0.2.1', `wrong ${n}`)).status).toBe(401)
  const paused = await guess('192.0.2.1', person.password)
  expect([paused.status, paused.body.error['code'], paused.headers.get('retry-after')]).toEqual([429, 'too_many_attempts', '60'])
  // the owner elsewhere feels nothing
  expect((await guess('192.0.2.2', person.password)).status).toBe(200)
  expect((await guess('2001:db8::1', person.password)).status).toBe(200)
  clock.advance(60_000)
  expect((await guess('192.0.2.1', 'wrong again')).status).toBe(401)
  clock.advance(60_000)
  expect((await guess('192.0.2.1', person.password)).headers.get('retry-after')).toBe('60')
  clock.advance(60_000)
  expect((await guess('192.0.2.1', person.password)).status).toBe(200)
  expect((await guess('192.0.2.1', 'wrong after all')).status).toBe(401)
  expect((await guess('192.0.2.1', person.password)).status).toBe(200)
})

test('an attempt at an address that nobody has is paused just so', async () => {
  const box = await appliance(unlimited)
  await withPassword(box)
  for (let n = 0; n < 5; n += 1) await attempt(box, { email: 'nobody@example.com', password: `wrong ${n}` })
  expect((await attempt(box, { email: 'NOBODY@example.com', password: 'wrong' })).body.error['code']).toBe('too_many_attempts')
})

test('attempts at once are counted before they are answered', async () => {
  const box = await appliance(unlimited)
  await withPassword(box)
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => attempt(box, { ...person, password: `wrong ${n}` })))
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(5)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(15)
})

const anywhere = { ...unlimited, PILLARBOX_HTTP__TRUSTED_PROXIES: '127.0.0.0/8' }

/** How many of these wrong guesses at the person's password were looked at, each from its place. */
async function lookedAt(box: Appliance, places: string[]): Promise<number> {
  const answers = []
  for (const place of places) {
    const { status, body } = await attempt(box, { ...person, password: 'wrong' }, { 'X-Forwarded-For': place })
    answers.push(status === 401 ? 'looked at' : body.error['code'])
  }
  const count = answers.filter((answer) => answer === 'looked at').length
  expect(answers.filter((answer) => answer === 'too_many_attempts')).toHaveLength(places.length - count)
  return count
}

const places = (count: number, place: (n: number) => string): string[] => Array.from({ length: count }, (_, n) => place(n))

test('a password is not guessed from a /56 or a /48 without end', async () => {
  const box = await appliance(anywhere, new HeldClock())
  await withPassword(box)
  expect(
    await lookedAt(
      box,
      places(8, (n) => `2001:db8:1:1::${n}`),
    ),
  ).toBe(5)
  expect(
    await lookedAt(
      box,
      places(15, (n) => `2001:db8:2:${n.toString(16)}::1`),
    ),
  ).toBe(10)
  expect(
    await lookedAt(
      box,
      places(25, (n) => `2001:db8:3:${(n * 256).toString(16)}::1`),
    ),
  ).toBe(20)
})

test('a password is not guessed from everywhere without end, and its owner gets in meanwhile', async () => {
  const clock = new HeldClock()
  const box = await appliance(anywhere, clock)
  await withPassword(box)
  const home = { 'X-Forwarded-For': '2001:db8:9:9::1' }
  const page = await signIn(box, person, home)
  const { body: factor } = await page.call('POST', '/v1/account/totp', { password: person.password })
  const code = (): string => generateSync({ secret: factor['secret'] as string, epoch: Math.floor(clock.now() / 1000) })
  await page.call('POST', '/v1/account/totp/confirm', { code: code() })
  await page.call('DELETE', '/v1/session')
  await box.restart()

  expect(
    await lookedAt(
      box,
      places(55, (n) => `192.0.2.${n}`),
    ),
  ).toBe(50)
  const elsewhere = { 'X-Forwarded-For': '198.51.100.7' }
  const held = await attempt(box, person, elsewhere)
  expect([held.status, held.headers.get('retry-after')]).toEqual([429, '60'])
  clock.advance(60_000)
  // where the owner has been before; a neighbour on the same network is at home too
  await signIn(box, { ...person, totp: code() }, { 'X-Forwarded-For': '2001:db8:9:9::2' })
  expect(
    await lookedAt(
      box,
      places(3, (n) => `192.0.2.${100 + n}`),
    ),
  ).toBe(1)
  // and anywhere with what only the owner has
  await signIn(box, { ...person, recovery_code: factor['recovery_codes'][0] as string }, elsewhere)
  const spent = await attempt(
    box,
    { ...person, recovery_code: factor['recovery_codes'][0] },
    { 'X-Forwarded-For': '192.0.2.200' },
  )
  expect(spent.status).toBe(429)
})

const at = (name: string) => ({ name, exists: true, known: false })

test('names that nobody has push out of memory nothing about one that somebody has', () => {
  const guesses = new Guesses(new HeldClock())
  for (let n = 0; n < 5; n += 1) guesses.begin(at('ada'), '192.0.2.1')
  for (let n = 0; n < 200_000; n += 1) guesses.begin({ ...at(`nobody ${n}`), exists: false }, '192.0.2.2')
  expect(() => guesses.begin(at('ada'), '192.0.2.1')).toThrow(/Try again in 60 s/)
  expect(guesses.size).toBeLessThan(50_000)
})

test('networks from which such names were guessed count as memory too', () => {
  const guesses = new Guesses(new HeldClock())
  for (let n = 0; n < 10_000; n += 1) {
    for (let from = 0; from < 40; from += 1) guesses.begin({ ...at(`nobody ${n}`), exists: false }, `10.0.0.${from}`)
  }
  expect(guesses.size).toBeLessThan(5000)
})

test('pauses double, and none is longer than a quarter of an hour', () => {
  const clock = new HeldClock()
  const guesses = new Guesses(clock)
  const pauses: number[] = []
  for (let n = 0; n < 4; n += 1) guesses.begin(at('ada'), '192.0.2.1')
  for (let n = 0; n < 7; n += 1) {
    guesses.begin(at('ada'), '192.0.2.1')
    let waited = 0
    while (refuses(guesses)) {
      clock.advance(60_000)
      waited += 1
    }
    pauses.push(waited)
  }
  expect(pauses).toEqual([1, 2, 4, 8, 15, 15, 15])
})

test('what was guessed while the clock was ahead holds nobody up once it is right again', () => {
  const clock = new HeldClock()
  const guesses = new Guesses(clock)
  clock.advance(day)
  for (let n = 0; n < 5; n += 1) guesses.begin(at('ada'), '192.0.2.1')
  for (let n = 0; n < 45; n += 1) guesses.begin(at('ada'), `198.51.100.${n}`)
  for (let n = 0; n < 30; n += 1) guesses.beginCode(at('ada'))
  expect(() => guesses.begin(at('ada'), '203.0.113.1')).toThrow(/Try again in 60 s/)
  clock.advance(-day)
  // the network that has guessed, one that has not, and codes
  guesses.begin(at('ada'), '192.0.2.1')
  guesses.begin(at('ada'), '203.0.113.1')
  guesses.beginCode(at('ada'))
  // from here on it is counted as ever
  for (let n = 0; n < 4; n += 1) guesses.begin(at('ada'), '192.0.2.1')
  expect(() => guesses.begin(at('ada'), '192.0.2.1')).toThrow(/Try again in 60 s/)
  for (let n = 0; n < 29; n += 1) guesses.beginCode(at('ada'))
  expect(() => guesses.beginCode(at('ada'))).toThrow(/Try again in 3600 s/)
})

test('a hash that takes less work than ours still opens, and is made anew at sign-in', async () => {
  const box = await appliance({}, undefined, { passwordCost: undefined })
  await withPassword(box)
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  const kept = (): string => (database.prepare('SELECT password FROM logins').get() as { password: string }).password
  // argon2id of "a long and quiet evening", m=8192 t=1, as another implementation writes it
  const weak = weakHash(person.password)
  database.prepare('UPDATE logins SET password = ?').run(weak)
  expect(kept()).toContain('m=8192,t=1')
  await box.call('POST', '/v1/identities', { name: 'so that the box looks again' })
  await signIn(box)
  expect(kept()).toContain('m=19456,t=2,p=1')
  await signIn(box)
  database.close()
})

test('what is kept is argon2id as others write it, and what is not is refused', async () => {
  const hashes = new PasswordHashes()
  // made by the reference implementation's command: echo -n password | argon2 somesalt -id -t 2 -k 65536 -p 1 -l 32 -e
  const known = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
  expect(await hashes.fits('password', known)).toBe(true)
  expect(await hashes.fits('Password', known)).toBe(false)
  expect(await hashes.fits('password', undefined)).toBe(false)
  // the same letters, typed with a combining accent
  const kept = await hashes.hash('caf\u00e9 au lait')
  expect(await hashes.fits('cafe\u0301 au lait', kept)).toBe(true)
  for (const bad of ['', 'plain', known.replace('argon2id', 'argon2i'), known.replace('65536', '999999999')]) {
    await expect(hashes.fits('password', bad)).rejects.toThrow(/not an argon2id hash/)
  }
})

test('only so many wait for their password to be looked at; the others are told to come again', async () => {
  const hashes = new PasswordHashes({ longestQueue: 3 })
  const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => hashes.fits('x', undefined)))
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(5)
  const refused = outcomes.filter((one) => one.status === 'rejected')
  expect(refused.map(({ reason }) => (reason as { code: string }).code)).toEqual(['busy', 'busy', 'busy'])
  expect(await hashes.fits('x', await hashes.hash('x'))).toBe(true)
})

function weakHash(password: string): string {
  const nonce = Buffer.alloc(16, 7)
  const tag = argon2Sync('argon2id', { message: password, nonce, parallelism: 1, tagLength: 32, memory: 8192, passes: 1 })
  return `$argon2id$v=19$m=8192,t=1,p=1$${unpadded(nonce)}$${unpadded(tag)}`
}

/** Whether the next attempt would be refused; it is not made. */
function refuses(guesses: Guesses): boolean {
  try {
    guesses.begin(at('ada'), '192.0.2.1').undone()
    return false
  } catch {
    return true
  }
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
