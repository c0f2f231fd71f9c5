import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { openStore, type Store } from '../support/open-store.ts'
import { expect, onTestFinished, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { randomFrom } from '../support/random.ts'
import { Dialogue } from '../support/smtp.ts'
import { addedDomain } from '../support/verified-domain.ts'
import { accountKey } from '../support/account-key.ts'

/** A box with shop.example, a verified domain of its account, and Ada and Bob at the box's own. */
async function shop(): Promise<{ box: Appliance; aliases: string; domain: string; ada: string; bob: string }> {
  const box = await appliance()
  const { id } = await addedDomain(box, 'shop.example')
  const ada = await identity(box, { name: 'Ada' })
  const bob = await identity(box, { name: 'Bob' })
  return { box, domain: `/v1/domains/${id}`, aliases: `/v1/domains/${id}/aliases`, ada, bob }
}

async function identity(box: Appliance, input: object, key = box.key): Promise<string> {
  const { status, body } = await box.call('POST', '/v1/identities', input, { key })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.id as string
}

async function alias(box: Appliance, aliases: string, local_part: string, identity_id: string): Promise<string> {
  const { status, body } = await box.call('POST', aliases, { local_part, identity_id })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.id as string
}

/** The database of a box that runs, read and written beside it. */
function beside(box: Appliance): Store {
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  onTestFinished(() => database.close())
  return database
}

/** Adds aliases a1@… to aCOUNT@… of a domain, for an identity. */
function many(database: Store, count: number, domain: string, identity_id: string): void {
  const numbers = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})`
  const id = "'alias_' || lower(printf('%026d', n))"
  const account = '(SELECT account_id FROM identities LIMIT 1)'
  database.exec(`BEGIN IMMEDIATE;
    INSERT INTO aliases (id, domain_id, address, created_at) ${numbers} SELECT ${id}, '${domain}', 'a' || n || '@shop.example', '2026' FROM numbers;
    INSERT INTO addresses (address, identity_id, alias_id, alias_account_id)
      ${numbers} SELECT 'a' || n || '@shop.example', '${identity_id}', ${id}, ${account} FROM numbers;
    COMMIT`)
}

const left = (database: Store): unknown =>
  database
    .prepare('SELECT (SELECT count(*) FROM aliases) + (SELECT count(*) FROM addresses WHERE alias_id IS NOT NULL) AS n')
    .get()!['n']

/** Sends one message to the addresses; answers the reply of the first command that was refused, else of the end of DATA. */
async function send(box: Appliance, to: string | string[], subject = 'Hello'): Promise<string> {
  return deliver(box.smtp, { to, raw: message({ Subject: subject, 'Message-ID': `<${randomUUID()}@sender.test>` }, 'Hello\n') })
}

/** The addresses at which an identity's e-mails arrived, oldest first, each with its tag. */
async function arrived(box: Appliance, id: string, query = '', key = box.key): Promise<[to: string, tag: string | null][]> {
  const { body } = await box.call('GET', `/v1/identities/${id}/emails${query}`, undefined, { key })
  return body.data.map(({ to, tag }) => [to as string, tag as string | null] as [string, string | null]).toReversed()
}

test('mail to an alias reaches its identity, with the address it came to; where it points can be changed, and it ends at once', async () => {
  const { box, aliases, ada, bob } = await shop()
  expect(await send(box, 'sales@shop.example')).toMatch(/^550 5\.1\.1/)
  const made = await box.call('POST', aliases, { local_part: 'sales', identity_id: ada })
  expect(made.status).toBe(201)
  const at = `${aliases}/${made.body.id}`
  expect(made.headers.get('location')).toBe(at)
  expect(made.body).toEqual({
    id: expect.stringMatching(/^alias_[0-9a-z]{26}$/),
    domain_id: aliases.split('/')[3],
    address: 'sales@shop.example',
    local_part: 'sales',
    identity_id: ada,
    created_at: expect.stringMatching(/^\d{4}-.*Z$/),
  })
  expect((await box.call('GET', at)).body).toEqual(made.body)
  expect((await box.call('GET', aliases)).body.data).toEqual([made.body])
  expect(await send(box, 'Sales@SHOP.example')).toMatch(/^250 /)
  expect(await send(box, 'sales+spring@shop.example')).toMatch(/^250 /)
  expect(await send(box, 'sale@shop.example')).toMatch(/^550 5\.1\.1/)
  expect(await arrived(box, ada)).toEqual([
    ['Sales@shop.example', null],
    ['sales+spring@shop.example', 'spring'],
  ])

  expect((await box.call('PATCH', at, { identity_id: bob })).body).toEqual({ ...made.body, identity_id: bob })
  expect(await send(box, 'sales@shop.example', 'For Bob')).toMatch(/^250 /)
  expect(await arrived(box, bob)).toEqual([['sales@shop.example', null]])
  expect(await arrived(box, ada)).toHaveLength(2)

  expect((await box.call('DELETE', at)).body).toEqual({ id: made.body.id, deleted: true })
  expect((await box.call('DELETE', at)).status).toBe(404)
  expect((await box.call('GET', aliases)).body.data).toEqual([])
  expect(await send(box, 'sales@shop.example')).toMatch(/^550 5\.1\.1/)
})

test('one message to an identity and its alias is an e-mail for each address, and a list can be of one of them', async () => {
  const { box, aliases, ada } = await shop()
  await alias(box, aliases, 'sales', ada)
  expect(await send(box, ['ada@pillarbox.test', 'sales@shop.example'])).toMatch(/^250 /)
  expect(new Set(await arrived(box, ada))).toEqual(
    new Set([
      ['ada@pillarbox.test', null],
      ['sales@shop.example', null],
    ]),
  )
  expect(await arrived(box, ada, '?to=SALES@shop')).toEqual([['sales@shop.example', null]])
  expect(await arrived(box, ada, '/search?to=sales%40shop.example')).toEqual([['sales@shop.example', null]])
})

test('an address is given out once: as an identity’s own, also a deleted one’s, or as an alias; the operator’s never', async () => {
  const { box, aliases, ada } = await shop()
  const gone = await identity(box, { email_username: 'gone', email_domain: 'shop.example' })
  await box.call('DELETE', `/v1/identities/${gone}`)
  await identity(box, { email_username: 'carol', email_domain: 'shop.example' })
  await alias(box, aliases, 'sales', ada)
  const refused: Record<string, string> = {
    sales: 'sales@shop.example is taken; it is an alias.',
    carol: 'carol@shop.example is taken; an address is never reused.',
    gone: 'gone@shop.example is taken; an address is never reused.',
    postmaster: 'postmaster@shop.example is reserved for the operator.',
    abuse: 'abuse@shop.example is reserved for the operator.',
    bounce: 'bounce@shop.example is reserved for the operator.',
  }
  for (const [local_part, said] of Object.entries(refused)) {
    const { status, body } = await box.call('POST', aliases, { local_part, identity_id: ada })
    expect([status, body.error]).toMatchObject([409, { type: 'conflict', param: 'local_part', message: said }])
  }
  for (const local_part of ['', 'Sales', 'a+b', '.a', 'a b', 'ä', 'a@b', 'x'.repeat(57)]) {
    const { status, body } = await box.call('POST', aliases, { local_part, identity_id: ada })
    expect([local_part, status, body.error['param']]).toEqual([local_part, 400, 'local_part'])
  }
  const named = await box.call('POST', '/v1/identities', { email_username: 'sales', email_domain: 'shop.example' })
  expect(named.body.error).toMatchObject({ status: 409, param: 'email_username', message: refused['sales'] })
  // a name makes an address that is free
  const { body: auto } = await box.call('POST', '/v1/identities', { name: 'Sales', email_domain: 'shop.example' })
  expect(auto['email']).toBe('sales-2@shop.example')
  // what was an alias is its account's to give out again
  const { body: list } = await box.call('GET', aliases)
  await box.call('DELETE', `${aliases}/${list.data[0].id}`)
  const taken = await box.call('POST', '/v1/identities', { email_username: 'sales', email_domain: 'shop.example' })
  expect(taken.status).toBe(201)
})

test('of calls for one address at the same time one is given it, as an alias or as an identity’s own', async () => {
  const { box, aliases, ada, bob } = await shop()
  for (let round = 0; round < 5; round += 1) {
    const local_part = `race${round}`
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, turn) =>
        turn % 3 === 0
          ? box.call('POST', '/v1/identities', { email_username: local_part, email_domain: 'shop.example' })
          : box.call('POST', aliases, { local_part, identity_id: turn % 3 === 1 ? ada : bob }),
      ),
    )
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      201,
      ...Array.from({ length: 11 }, () => 409),
    ])
  }
})

test('the catch-all receives what is nobody’s: no identity’s, present or deleted, no alias’s, none of the operator’s names', async () => {
  const { box, domain, aliases, ada, bob } = await shop()
  expect((await box.call('GET', domain)).body['catch_all']).toBeNull()
  const gone = await identity(box, { email_username: 'gone', email_domain: 'shop.example' })
  await box.call('DELETE', `/v1/identities/${gone}`)
  await alias(box, aliases, 'sales', ada)
  const set = await box.call('PATCH', domain, { catch_all: bob })
  expect([set.status, set.body['catch_all'], set.body['name']]).toEqual([200, bob, 'shop.example'])
  expect((await box.call('GET', '/v1/domains')).body.data.find(({ name }) => name === 'shop.example').catch_all).toBe(bob)
  expect((await box.call('PATCH', domain, {})).body['catch_all']).toBe(bob)

  for (const local of ['anything', 'Odd+Tag', "o'brien", 'sales'])
    expect([local, await send(box, `${local}@shop.example`)]).toEqual([local, expect.stringMatching(/^250 /)])
  for (const local of ['gone', 'hostmaster', 'mailer-daemon', 'security', 'bounce', 'bounce+x', 'Security+x'])
    expect([local, await send(box, `${local}@shop.example`)]).toEqual([local, expect.stringMatching(/^550 5\.1\.1/)])
  expect(await send(box, 'anything@pillarbox.test')).toMatch(/^550 5\.1\.1/)
  expect(await send(box, 'abuse@shop.example', 'For the operator')).toMatch(/^250 /)
  expect(await arrived(box, bob)).toEqual([
    ['anything@shop.example', null],
    ['Odd+Tag@shop.example', 'tag'],
    ["o'brien@shop.example", null],
  ])
  expect(await arrived(box, ada)).toEqual([['sales@shop.example', null]])
  // an alias that is taken away is refused: that is how an address ends
  await box.call('DELETE', `${aliases}/${(await box.call('GET', aliases)).body.data[0].id}`)
  expect(await send(box, 'sales@shop.example')).toMatch(/^550 5\.1\.1/)
  // an identity made later takes its own mail from then on
  const named = await identity(box, { email_username: 'anything', email_domain: 'shop.example' })
  expect(await send(box, 'anything@shop.example')).toMatch(/^250 /)
  expect(await arrived(box, named)).toHaveLength(1)

  await box.restart()
  expect(await send(box, 'after@shop.example')).toMatch(/^250 /)
  box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
  expect((await box.call('PATCH', domain, { catch_all: null })).body['catch_all']).toBeNull()
  expect(await send(box, 'after@shop.example')).toMatch(/^550 5\.1\.1/)
})

test('a suspended identity puts off the mail of its aliases and catch-all too; with a deleted one they go', async () => {
  const { box, domain, aliases, ada, bob } = await shop()
  const sales = await alias(box, aliases, 'sales', ada)
  await alias(box, aliases, 'press', bob)
  await box.call('PATCH', domain, { catch_all: ada })
  await box.call('PATCH', `/v1/identities/${ada}`, { status: 'suspended' })
  for (const to of ['sales@shop.example', 'whoever@shop.example']) expect(await send(box, to)).toMatch(/^450 4\.2\.1/)
  await box.call('PATCH', `/v1/identities/${ada}`, { status: 'active' })
  expect(await send(box, 'sales@shop.example')).toMatch(/^250 /)
  await box.call('DELETE', `/v1/identities/${ada}`)
  for (const to of ['sales@shop.example', 'whoever@shop.example']) expect(await send(box, to)).toMatch(/^550 5\.1\.1/)
  expect((await box.call('GET', domain)).body['catch_all']).toBeNull()
  expect((await box.call('GET', `${aliases}/${sales}`)).status).toBe(404)
  expect((await box.call('GET', aliases)).body.data.map(({ address }) => address)).toEqual(['press@shop.example'])
  // the alias was the account's, not the identity's: it may lead to another
  await alias(box, aliases, 'sales', bob)
  expect(await send(box, 'sales@shop.example')).toMatch(/^250 /)
  expect(await arrived(box, bob)).toEqual([['sales@shop.example', null]])
})

test('an alias that is deleted while its mail is on the way gets none of it, and the sender is told', async () => {
  const { box, aliases, ada } = await shop()
  const id = await alias(box, aliases, 'sales', ada)
  const client = await Dialogue.hello(box.smtp.port)
  expect(await client.begin(['sales@shop.example'])).toMatch(/^354/)
  await box.call('DELETE', `${aliases}/${id}`)
  client.send(message({ Subject: 'Late' }, 'x\n'))
  expect(await client.say('.')).toMatch(/^550 5\.1\.1/)
  client.destroy()
  expect(await arrived(box, ada)).toEqual([])
})

test('what an alias receives counts for its identity: a full mailbox is full at every address', async () => {
  const box = await appliance({ PILLARBOX_MAIL__QUOTA: '1 KiB' })
  const { id } = await addedDomain(box, 'shop.example')
  const ada = await identity(box, { name: 'Ada' })
  await alias(box, `/v1/domains/${id}/aliases`, 'sales', ada)
  const raw = message({ Subject: 'Large' }, `${'x'.repeat(900)}\n`)
  expect(await deliver(box.smtp, { to: 'sales@shop.example', raw })).toMatch(/^250 /)
  for (const to of ['sales@shop.example', 'ada@pillarbox.test'])
    expect(await deliver(box.smtp, { to, raw })).toMatch(/^452 4\.2\.2/)
})

test('the address of an alias finds its identity, and mail within the box goes by the same ways', async () => {
  const { box, domain, aliases, ada, bob } = await shop()
  await alias(box, aliases, 'sales', ada)
  await box.call('PATCH', domain, { catch_all: bob })
  const { body: found } = await box.call('GET', '/v1/identities?email=Sales@shop.example')
  expect(found.data.map(({ id }) => id)).toEqual([ada])
  expect((await box.call('GET', '/v1/identities?email=whoever@shop.example')).body.data).toEqual([])
  const to = ['sales@shop.example', 'whoever@shop.example', 'security@shop.example']
  const { body: sent } = await box.call('POST', `/v1/identities/${bob}/emails`, { to, subject: 'Within' })
  const outcome = async (): Promise<unknown> => {
    const { body } = await box.call('GET', `/v1/identities/${bob}/emails/${sent.id}`)
    return body['deliveries'].map(({ status, enhanced_code }: Record<string, unknown>) => [status, enhanced_code])
  }
  await box.settled()
  expect(await outcome()).toEqual([
    ['delivered', null],
    ['delivered', null],
    ['bounced', '5.1.1'],
  ])
  expect(await arrived(box, ada)).toEqual([['sales@shop.example', null]])
  expect((await arrived(box, bob)).filter(([at]) => at.startsWith('whoever'))).toHaveLength(1)
})

test('a domain that is not verified gives no aliases; one that is deleted takes them along', async () => {
  const { box, domain, aliases, ada } = await shop()
  const { body: pending } = await box.call('POST', '/v1/domains', { name: 'later.example' })
  const early = await box.call('POST', `/v1/domains/${pending.id}/aliases`, { local_part: 'sales', identity_id: ada })
  expect(early.body.error).toMatchObject({ status: 409, code: 'domain_not_verified' })
  const id = await alias(box, aliases, 'sales', ada)
  await box.call('PATCH', domain, { catch_all: ada })
  expect((await box.call('DELETE', domain)).status).toBe(200)
  expect((await box.call('GET', `${aliases}/${id}`)).status).toBe(404)
  expect(await send(box, 'sales@shop.example')).toMatch(/^550 5\.7\.1/)
  const again = await addedDomain(box, 'shop.example')
  expect(again.catch_all).toBeNull()
  expect(await send(box, 'sales@shop.example')).toMatch(/^550 5\.1\.1/)
  await alias(box, `/v1/domains/${again.id}/aliases`, 'sales', ada)
})

test('twenty thousand aliases of a deleted identity accept nothing at once, and end in batches', async () => {
  const { box, domain, aliases, ada, bob } = await shop()
  const database = beside(box)
  many(database, 20_000, domain.split('/')[3]!, ada)
  await box.call('PATCH', domain, { catch_all: bob })
  expect(await send(box, 'a20000@shop.example')).toMatch(/^250 /)
  await box.call('DELETE', `/v1/identities/${ada}`)
  expect(left(database)).toBeGreaterThan(0)
  for (const name of ['a1', 'a20000']) expect(await send(box, `${name}@shop.example`)).toMatch(/^550 5\.1\.1/)
  await expect.poll(() => left(database), { timeout: 100_000 }).toBe(0)
  await alias(box, aliases, 'a20000', bob)
  expect(await send(box, 'a20000@shop.example')).toMatch(/^250 /)
})

test('twenty thousand aliases of a deleted domain end in batches, also after a restart', async () => {
  const { box, domain, ada } = await shop()
  const database = beside(box)
  many(database, 20_000, domain.split('/')[3]!, ada)
  expect((await box.call('DELETE', domain)).status).toBe(200)
  expect(left(database)).toBeGreaterThan(0)
  await box.restart()
  await expect.poll(() => left(database), { timeout: 100_000 }).toBe(0)
})

test('an alias whose domain was deleted and that still has its row receives nothing and sends nothing', async () => {
  const { box, domain, ada, bob } = await shop()
  await box.call('DELETE', domain)
  const again = await addedDomain(box, 'shop.example')
  const database = beside(box)
  many(database, 1, 'dom_deleted', ada)
  await box.call('PATCH', `/v1/domains/${again.id}`, { catch_all: bob })
  expect(await send(box, 'a1@shop.example')).toMatch(/^550 5\.1\.1/)
  const letter = { to: 'bob@pillarbox.test', from: 'a1@shop.example', subject: 'x' }
  expect((await box.call('POST', `/v1/identities/${ada}/emails`, letter)).status).toBe(400)
})

test('a list of aliases goes page by page', async () => {
  const { box, aliases, ada } = await shop()
  for (const name of ['one', 'two', 'three']) await alias(box, aliases, name, ada)
  const first = (await box.call('GET', `${aliases}?limit=2`)).body
  expect([first.data.map(({ local_part }) => local_part), first['has_more']]).toEqual([['three', 'two'], true])
  const rest = (await box.call('GET', `${aliases}?limit=2&cursor=${first['next_cursor']}`)).body
  expect([rest.data.map(({ local_part }) => local_part), rest['has_more']]).toEqual([['one'], false])
})

test('an address that was an alias stays with its account: also at the box’s own domain, and when the domain is another’s', async () => {
  const { box, domain, aliases, ada } = await shop()
  const { body: all } = await box.call('GET', '/v1/domains')
  const common = `/v1/domains/${all.data.find((one) => one['default'] === true).id}`
  const key = accountKey(box)
  for (const list of [`${common}/aliases`, aliases]) {
    await box.call('DELETE', `${list}/${await alias(box, list, 'sales', ada)}`)
  }
  await box.call('DELETE', domain)
  const theirs = await addedDomain(box, 'shop.example', key)
  const mallory = await identity(box, { name: 'Mallory' }, key)
  const call = (method: string, path: string, body: unknown) => box.call(method, path, body, { key })
  for (const email_domain of ['shop.example', 'pillarbox.test']) {
    const { body } = await call('POST', '/v1/identities', { email_username: 'sales', email_domain, provision_phone: true })
    expect(body.error).toMatchObject({ status: 409, param: 'email_username' })
  }
  const input = { local_part: 'sales', identity_id: mallory }
  expect((await call('POST', `/v1/domains/${theirs.id}/aliases`, input)).body.error).toMatchObject({ param: 'local_part' })
  await call('PATCH', `/v1/domains/${theirs.id}`, { catch_all: mallory })
  expect(await send(box, 'sales@shop.example')).toMatch(/^550 5\.1\.1/)
  expect(await send(box, 'other@shop.example')).toMatch(/^250 /)
  await alias(box, `${common}/aliases`, 'sales', ada)
  expect(await send(box, 'sales@pillarbox.test')).toMatch(/^250 /)
})

test('no account reaches another’s domain, identity or alias, nor the addresses of the box’s own domain', async () => {
  const { box, domain, aliases, ada } = await shop()
  const id = await alias(box, aliases, 'sales', ada)
  const key = accountKey(box)
  const mallory = await identity(box, { name: 'Mallory' }, key)
  const theirs = await addedDomain(box, 'mallory.example', key)
  const own = `/v1/domains/${theirs.id}`
  const call = (method: string, path: string, body?: unknown) => box.call(method, path, body, { key })
  for (const [method, path, body] of [
    ['GET', aliases],
    ['POST', aliases, { local_part: 'spy', identity_id: mallory }],
    ['GET', `${aliases}/${id}`],
    ['PATCH', `${aliases}/${id}`, { identity_id: mallory }],
    ['DELETE', `${aliases}/${id}`],
    ['PATCH', domain, { catch_all: mallory }],
    // another's alias by the way of one's own domain
    ['GET', `${own}/aliases/${id}`],
    ['PATCH', `${own}/aliases/${id}`, { identity_id: mallory }],
    ['DELETE', `${own}/aliases/${id}`],
  ] as const) {
    expect([method, path, (await call(method, path, body)).status]).toEqual([method, path, 404])
  }
  for (const [method, path, body, param] of [
    ['POST', `${own}/aliases`, { local_part: 'ada', identity_id: ada }, 'identity_id'],
    ['PATCH', own, { catch_all: ada }, 'catch_all'],
  ] as const) {
    expect([(await call(method, path, body)).body.error]).toMatchObject([{ status: 400, param }])
  }
  // one may list a name that another holds, and the box's own: it gives nothing
  for (const name of ['shop.example', 'pillarbox.test']) {
    const { body: spare } = await call('POST', '/v1/domains', { name })
    const input = { local_part: 'spy', identity_id: mallory }
    expect((await call('POST', `/v1/domains/${spare.id}/aliases`, input)).body.error).toMatchObject({
      code: 'domain_not_verified',
    })
    expect((await call('PATCH', `/v1/domains/${spare.id}`, { catch_all: mallory })).status).toBe(200)
    expect(await send(box, `spy@${name}`)).toMatch(/^550 5\.1\.1/)
  }
  expect((await box.call('GET', `${aliases}/${id}`)).body['identity_id']).toBe(ada)
  expect(await arrived(box, mallory, '', key)).toEqual([])

  const { body: bound } = await box.call('POST', '/v1/api-keys', { identity_id: ada })
  for (const [method, path, body] of [
    ['GET', aliases],
    ['POST', aliases, { local_part: 'mine', identity_id: ada }],
    ['DELETE', `${aliases}/${id}`],
    ['PATCH', domain, { catch_all: ada }],
  ] as const) {
    expect((await box.call(method, path, body, { key: bound['key'] })).status).toBe(404)
  }
})

test('an alias of another account’s agent does not tell whose it is', async () => {
  const { box, aliases, ada } = await shop()
  await alias(box, aliases, 'sales', ada)
  const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: ada, handle: 'ada' })
  const key = accountKey(box)
  const ask = async (email: string, by: string) =>
    JSON.stringify((await box.call('POST', '/v1/trust/evaluate', { email }, { key: by })).body)
  expect(await ask('ada@pillarbox.test', key)).toContain(agent['handle'])
  const strange = await ask('sales@shop.example', key)
  expect(strange).not.toContain(agent['handle'])
  expect(strange).not.toContain(ada)
})

test('whatever two accounts do in whatever order, no address ever reaches both', async () => {
  const box = await appliance()
  const keys = [box.key, accountKey(box)] as const
  const { body: all } = await box.call('GET', '/v1/domains')
  const common = all.data[0].id as string
  const places: [string[], string[]] = [[common, (await addedDomain(box, 'shop.example')).id], []]
  for (const name of ['shop.example', 'pillarbox.test']) {
    const { body } = await box.call('POST', '/v1/domains', { name }, { key: keys[1] })
    places[1].push(body.id as string)
  }
  const people: [string[], string[]] = [[], []]
  for (const who of [0, 1] as const) people[who].push(await identity(box, {}, keys[who]))
  const roll = randomFrom(20_261_122)
  const pick = <T>(list: readonly T[]): T => list[roll(list.length)]!
  const reached = new Map<string, number>()
  /** Sends to the address, and looks who has it. */
  const mail = async (step: number, to: string): Promise<void> => {
    if (!(await send(box, to)).startsWith('250')) return
    for (const account of [0, 1] as const) {
      for (const address of await arrivals(box, people[account], keys[account])) {
        expect([step, address, reached.get(address) ?? account]).toEqual([step, address, account])
        reached.set(address, account)
      }
    }
  }
  const found = async (who: 0 | 1, address: string): Promise<void> => {
    const [email_username, email_domain] = address.split('@')
    const { status, body } = await box.call('POST', '/v1/identities', { email_username, email_domain }, { key: keys[who] })
    if (status === 201) people[who].push(body.id as string)
  }
  for (let step = 0; step < 200; step += 1) {
    const who = pick([0, 1] as const)
    // now and then with what is the other's
    const mine = pick([who, who, who, who, (1 - who) as 0 | 1])
    // few names, so that they meet, and fresh ones from time to time
    const local_part = `${pick(['a', 'b', 'c'])}${Math.floor(step / 50)}`
    const address = `${local_part}@${pick(['shop.example', 'pillarbox.test'])}`
    const domain = `/v1/domains/${pick(places[who])}`
    const identity_id = pick(people[mine])
    const call = (method: string, path: string, body?: unknown) => box.call(method, path, body, { key: keys[who] })
    switch (pick(['found', 'alias', 'alias', 'alias', 'point', 'drop', 'drop', 'catch', 'leave', 'mail', 'mail'])) {
      case 'found':
        await found(who, address)
        break
      case 'alias':
        await call('POST', `${domain}/aliases`, { local_part, identity_id })
        break
      case 'point':
      case 'drop': {
        const { body } = await call('GET', `${domain}/aliases`)
        if (body.data.length === 0) break
        const { id, address: its } = pick(body.data)
        await mail(step, its)
        if (pick([true, false])) await call('PATCH', `${domain}/aliases/${id}`, { identity_id })
        else await call('DELETE', `${domain}/aliases/${id}`)
        await found((1 - who) as 0 | 1, its)
        await mail(step, its)
        break
      }
      case 'catch':
        // what the operator catches at the box's own domain was given to nobody yet
        if (!domain.endsWith(common)) await call('PATCH', domain, { catch_all: pick([identity_id, null]) })
        break
      case 'leave':
        if (people[who].length > 2) await call('DELETE', `/v1/identities/${people[who].shift()!}`)
        break
      default:
        await mail(step, address)
    }
  }
  expect(new Set(reached.values())).toEqual(new Set([0, 1]))
})

async function arrivals(box: Appliance, identities: string[], key: string): Promise<string[]> {
  const lists = await Promise.all(identities.map((id) => arrived(box, id, '?limit=200', key)))
  return lists.flat().map(([to]) => to)
}
