import { describe, expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'

describe('the address made from a name', () => {
  const table: [string, string][] = [
    ['Ada Lovelace', 'ada-lovelace'],
    ['Søren Ærø', 'soren-aero'],
    ['Zażółć Gęślą', 'zazolc-gesla'],
    ['Größe', 'grosse'],
    ['Nguyễn Văn Đức', 'nguyen-van-duc'],
    ['Иван Петров', 'ivan-petrov'],
    ['Тарас Шевченко', 'taras-shevchenko'],
    ['Αλέξανδρος', 'alexandros'],
    ['山田太郎', 'shantiantailang'],
    ['さくら', 'sakura'],
    ['カタカナ', 'katakana'],
    ['김철수', 'gimcheolsu'],
    ['محمد', 'mhmd'],
    ['דוד', 'dvd'],
    ['अमित', 'amit'],
    ['অমিত', 'amit'],
    ['தமிழ்', 'tmil'],
    ['สมชาย', 'smchay'],
    ['გიორგი', 'giorgi'],
    ['Արամ', 'aram'],
    ['አበበ', 'abebe'],
    ['I. Q. (Test) & Co.', 'i.q.test-co'],
    ['__weird..name--', 'weird.name'],
    ['a+b@c.test', 'a-b-c.test'],
    ['ＦＵＬＬ　ＷＩＤＴＨ', 'full-width'],
    ['"quoted" <x@y.test>', 'quoted-x-y.test'],
  ]

  test('is readable in every script, and always a plain local part', async () => {
    const box = await appliance()
    const made: [string, string][] = []
    for (const [name, expected] of table) {
      const { body } = await box.call('POST', '/v1/identities', { name })
      const local = String(body.email).split('@')[0]!
      expect(local).toMatch(/^[a-z0-9](?:[a-z0-9]|[._-](?=[a-z0-9])){0,55}$/)
      made.push([name, local.startsWith(expected) ? expected : local])
    }
    expect(made).toEqual(table)
  })

  test('is made up when nothing of the name is left', async () => {
    const box = await appliance()
    for (const name of ['…', '***', '~', '¿?']) {
      const { body } = await box.call('POST', '/v1/identities', { name })
      expect(body.email).toMatch(/^[a-z0-9][a-z0-9.-]*@pillarbox\.test$/)
    }
  })

  test('has at most 56 characters, also when a number must tell it from sixty others', async () => {
    const box = await appliance()
    const made = await Promise.all(
      Array.from({ length: 60 }, (_, number) =>
        box.call('POST', '/v1/identities', { name: `${'long-name-'.repeat(10)}${number}` }),
      ),
    )
    const addresses = new Set(made.map(({ body }) => body['email'] as string))
    expect(addresses.size).toBe(60)
    for (const address of addresses) expect(address.split('@')[0]).toMatch(/^[a-z0-9](?:[a-z0-9]|[._-](?=[a-z0-9])){0,55}$/)
  })

  test('counts up when taken or retired, and steps round what is the operator’s', async () => {
    const box = await appliance()
    const emailOf = async (body: object): Promise<string> => (await box.call('POST', '/v1/identities', body)).body['email']
    expect(await emailOf({ name: 'Buzz' })).toBe('buzz@pillarbox.test')
    expect(await emailOf({ name: 'Buzz!' })).toBe('buzz-2@pillarbox.test')
    expect(await emailOf({ name: 'bùzz' })).toBe('buzz-3@pillarbox.test')
    for (const name of ['postmaster', 'Abuse', 'hostmaster', 'Mailer Daemon', 'bounce', 'dmarc', 'tlsrpt', 'security']) {
      expect(await emailOf({ name })).toMatch(/^[a-z-]+-2@pillarbox\.test$/)
    }
    for (const email_username of [
      'postmaster',
      'abuse',
      'hostmaster',
      'mailer-daemon',
      'bounce',
      'dmarc',
      'tlsrpt',
      'security',
    ]) {
      const told = await box.call('POST', '/v1/identities', { email_username })
      expect(told).toMatchObject({ status: 409, body: { error: { type: 'conflict', param: 'email_username' } } })
    }
  })

  test('can be wished for, in its one form and at its one domain', async () => {
    const box = await appliance()
    for (const email_username of ['a', 'a.b', 'a_b-c.d', '9', 'x'.repeat(56)]) {
      const { body } = await box.call('POST', '/v1/identities', { email_username, email_domain: 'PILLARBOX.test' })
      expect(body.email).toBe(`${email_username}@pillarbox.test`)
    }
    for (const email_username of ['', 'A', '.a', 'a.', 'a..b', 'a@b', 'a+b', 'ä', 'a b', 'x'.repeat(57), 'a\nb', '-a']) {
      const told = await box.call('POST', '/v1/identities', { email_username })
      expect([email_username, told.status, told.body.error['param']]).toEqual([email_username, 400, 'email_username'])
    }
    for (const email_domain of [
      'other.test',
      'pillarbox.test.',
      'x.pillarbox.test',
      '@pillarbox.test',
      'pillarbox.test/x',
      ' ',
    ]) {
      const told = await box.call('POST', '/v1/identities', { email_domain })
      expect([email_domain, told.status, told.body.error['param']]).toEqual([email_domain, 400, 'email_domain'])
    }
  })
})

describe('a name', () => {
  test('is text a person can see, of 1 to 128 characters', async () => {
    const box = await appliance()
    for (const name of [
      'a',
      ' padded ',
      'x'.repeat(128),
      '😀'.repeat(128),
      '👩‍👩‍👧',
      'نرم‌افزار',
      "O'Brien; DROP TABLE identities --",
      '{{7*7}}',
      '<b>x</b>',
    ]) {
      const told = await box.call('POST', '/v1/identities', { name })
      expect([name, told.status, told.body['name']]).toEqual([name, 201, name.trim()])
    }
    const hidden = [
      '',
      '   ',
      'x'.repeat(129),
      '😀'.repeat(129),
      '\u200b\u200d',
      '\u200e\u200f',
      '\u2060\ufeff',
      'a\r\nBcc: x@y.test',
      'a\nb',
      'a\tb',
      '\u0001',
      'a\u0085b',
      'a\u2028b',
      'evil\u202egpj',
      '\u2067x',
      '\u200b',
      '\u200b\u2060',
      '\ufeff\u00ad',
    ]
    for (const name of hidden) {
      for (const [method, path] of [
        ['POST', '/v1/identities'],
        ['PATCH', `/v1/identities/${(await box.call('GET', '/v1/identities')).body.data[0].id}`],
      ] as const) {
        const told = await box.call(method, path, { name })
        expect([method, JSON.stringify(name), told.status]).toEqual([method, JSON.stringify(name), 400])
        expect(told.body.error).toMatchObject({ param: 'name' })
      }
    }
  })

  test('is taken without regard to case or composition, by the living only, in one account only', async () => {
    const box = await appliance()
    const { body: first } = await box.call('POST', '/v1/identities', { name: 'Zoë' })
    for (const name of ['zoë', 'ZOË', 'Zoe\u0308', 'Ｚｏë', ' Zoë ']) {
      expect((await box.call('POST', '/v1/identities', { name })).body.error).toMatchObject({ type: 'conflict', param: 'name' })
    }
    expect((await box.call('PATCH', `/v1/identities/${first.id}`, { name: 'ZOË' })).body['name']).toBe('ZOË')
    const { body: other } = await box.call('POST', '/v1/identities', { display_name: 'Other' })
    const clash = await box.call('PATCH', `/v1/identities/${other.id}`, { display_name: 'zoë' })
    expect(clash).toMatchObject({ status: 409, body: { error: { param: 'name' } } })
    const both = await box.call('POST', '/v1/identities', { name: 'One', display_name: 'Two' })
    expect(both).toMatchObject({ status: 400, body: { error: { param: 'display_name' } } })
    await box.call('DELETE', `/v1/identities/${first.id}`)
    const { body: again } = await box.call('POST', '/v1/identities', { name: 'Zoë' })
    expect([again.email, again.email === first.email]).toEqual(['zoe-2@pillarbox.test', false])
  })

  test('wanted by forty at once is given to one, and so is an address', async () => {
    const box = await appliance()
    for (const body of [{ name: 'Race' }, { email_username: 'race-car' }]) {
      const answers = await Promise.all(Array.from({ length: 40 }, () => box.call('POST', '/v1/identities', body)))
      expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
      expect(answers.filter(({ status }) => status === 409)).toHaveLength(39)
    }
    expect((await box.call('GET', '/v1/identities')).body.data).toHaveLength(2)
  })
})

test('mail for the postmaster is taken whatever names the callers have taken', async () => {
  const box = await appliance()
  for (const name of ['postmaster', 'Postmaster of pillarbox.test']) {
    expect((await box.call('POST', '/v1/identities', { name })).status).toBe(201)
  }
  for (const to of ['postmaster', 'postmaster@pillarbox.test', 'ABUSE@pillarbox.test', 'Postmaster+tag@pillarbox.test']) {
    expect([to, await deliver(box.smtp, { to, raw: message({ Subject: to }, 'Help\n') })]).toEqual([
      to,
      expect.stringMatching(/^250 /),
    ])
  }
})
