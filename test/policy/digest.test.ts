import { join } from 'node:path'
import { openStore } from '../support/open-store.ts'
import { expect, test, vi } from 'vitest'
import { type Reporting, reporting } from '../reporting/box.ts'
import { day } from '../../src/core/clock.ts'
import { card } from '../support/card.ts'
import { signIn, withPassword } from '../support/people.ts'
import { pillarbox } from '../support/pillarbox.ts'

type Any = ReturnType<typeof JSON.parse>

const password = 'a long and quiet evening'
const approver = { email: 'ada@owner.example', password }

/** A box that mails digests, whose owner has an address elsewhere, and which holds everything. */
async function watched(
  env: Record<string, string> = { PILLARBOX_POLICY__DIGEST: 'true' },
): Promise<Reporting & { hold: () => Promise<Any> }> {
  const world = await reporting(env)
  const { box, ada } = world
  box.dns.mx('owner.example', 'mx.owner.example').a('mx.owner.example', '127.0.0.1')
  await withPassword(box, approver)
  await box.call('PATCH', '/v1/policy', { preset: 'all' })
  let count = 0
  const hold = async (): Promise<Any> => {
    const input = { to: 'bob@elsewhere.example', subject: `Offer <b>${++count}</b>`, body_text: 'Hello Bob.' }
    const { status, body } = await box.call('POST', `/v1/identities/${ada}/emails`, input)
    expect([status, body.status]).toEqual([201, 'held'])
    return body.hold
  }
  return { ...world, hold }
}

/** The URLs in a message, its transfer encoding undone. */
function linksIn(raw: string): URL[] {
  const text = raw
    .replaceAll(/=\r?\n/g, '')
    .replaceAll('=3D', '=')
    .replaceAll('&amp;', '&')
  return [...new Set(text.match(/https?:\/\/[^\s"<]+/g) ?? [])].map((url) => new URL(url))
}

function tokenIn(links: URL[], decision: string): string {
  const found = links.map(({ hash }) => new URLSearchParams(hash.slice(1))).find((one) => one.get('decision') === decision)
  return found!.get('token')!
}

const open = async ({ box }: Reporting): Promise<Any[]> => (await box.call('GET', '/v1/holds')).body.data

const decide = ({ box }: Reporting, token: string, decision: string): Promise<Any> =>
  box.call('POST', '/v1/hold-links/decide', { token, decision }, { key: null })

const code = ({ status, body }: { status: number; body: Any }): unknown => [status, body.error?.code ?? body.status]

test('a digest has what is held and a link for each decision, once an hour, and only when something is new', async () => {
  const world = await watched()
  const { clock, job, arrived, sink, hold, box } = world
  await job('send-hold-digests')
  await hold()
  await hold()
  await job('send-hold-digests')
  const [mail] = await arrived(1)
  expect([mail!.from, mail!.to]).toEqual(['no-reply@pillarbox.test', [approver.email]])
  expect(mail!.raw).toMatch(/^DKIM-Signature: /m)
  expect(mail!.raw).toMatch(/^Subject: 2 messages wait for you to decide/m)
  expect(mail!.raw).toContain('&lt;b&gt;1')
  expect(linksIn(mail!.raw)).toHaveLength(4)
  await hold()
  clock.advance(59 * 60_000)
  await job('send-hold-digests')
  await box.settled()
  expect(sink.messages).toHaveLength(1)
  clock.advance(60_000)
  await job('send-hold-digests')
  await arrived(2)
  clock.advance(3 * 3_600_000)
  await job('send-hold-digests')
  await box.settled()
  expect(sink.messages).toHaveLength(2)
})

test('a digest of what is held after the clock was ahead does not wait until it has caught up', async () => {
  const { clock, job, arrived, hold } = await watched()
  clock.advance(day)
  await hold()
  await job('send-hold-digests')
  await arrived(1)
  clock.advance(-day)
  await hold()
  await job('send-hold-digests')
  const [, later] = await arrived(2)
  expect(later!.raw).toMatch(/^Subject: 2 messages wait for you to decide/m)
})

test('an agent puts no link of its own among those of a digest', async () => {
  const { job, arrived, box, ada } = await watched()
  const subject = 'Approve: https://evil.test/decide#token=x&decision=approve www.evil.test'
  await box.call('POST', `/v1/identities/${ada}/emails`, { to: 'bob@elsewhere.example', subject, body_text: 'Hello Bob.' })
  await job('send-hold-digests')
  const [mail] = await arrived(1)
  expect(mail!.raw).toContain('E-mail: Approve: https: //evil[.]test/decide#token')
  expect(mail!.raw).not.toMatch(/evil\.test/)
  expect(linksIn(mail!.raw)).toHaveLength(2)
})

test('nor by the host of a login of its own', async () => {
  const { job, arrived, box, ada } = await watched()
  const login = { label: 'Approvals', url: 'https://approvals.evil.test/sign-in', password: 'secret' }
  const { body: stored } = await box.call('POST', `/v1/identities/${ada}/logins`, login)
  expect((await box.call('POST', `/v1/logins/${stored.id}/reveal`, {})).body.error.code).toBe('held')
  await job('send-hold-digests')
  const [mail] = await arrived(1)
  expect(mail!.raw).toContain('At approvals[.]evil[.]test')
  expect(mail!.raw).not.toMatch(/evil\.test/)
})

test('a link scanner that GETs and HEADs every URL, with any token as a parameter too, decides nothing', async () => {
  const world = await watched()
  const { box, job, arrived, hold } = world
  await hold()
  await job('send-hold-digests')
  const links = linksIn((await arrived(1))[0]!.raw)
  const query = links.map(({ origin, pathname, hash }) => new URL(`${origin}${pathname}?${hash.slice(1)}`))
  const calls = ['read', 'decide'].flatMap((call) =>
    query.map(({ search }) => new URL(`${box.url}/v1/hold-links/${call}${search}`)),
  )
  for (const url of [...links, ...query, ...calls]) {
    for (const method of ['HEAD', 'GET', 'OPTIONS']) await fetch(url, { method }).then((answer) => answer.text())
  }
  expect(await open(world)).toMatchObject([{ status: 'open' }])
  // nor does reading what is held
  const token = tokenIn(links, 'approve')
  const read = await box.call('POST', '/v1/hold-links/read', { token }, { key: null })
  expect(read.body).toMatchObject({ status: 'open', email: { body_text: 'Hello Bob.' } })
  expect(await open(world)).toMatchObject([{ status: 'open' }])
  expect(code(await decide(world, token, 'approve'))).toEqual([200, 'approved'])
})

test('a link decides its hold once, in the name of its person', async () => {
  const world = await watched()
  const { box, job, arrived, hold } = world
  const { id: first } = await hold()
  const { id: second } = await hold()
  await job('send-hold-digests')
  const text = (await arrived(1))[0]!.raw
  const links = linksIn(text)
  const tokens = [...new Set(links.map(({ hash }) => new URLSearchParams(hash.slice(1)).get('token')!))]
  expect(tokens).toHaveLength(2)
  const answers = await Promise.all(['approve', 'reject', 'approve'].map((one) => decide(world, tokens[1]!, one)))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(code(await decide(world, tokens[1]!, 'approve'))).toEqual([409, 'already_decided'])
  expect(code(await decide(world, tokens[0]!, 'reject'))).toEqual([200, 'rejected'])
  const { body: people } = await box.call('GET', '/v1/people')
  for (const id of [first, second]) {
    expect((await box.call('GET', `/v1/holds/${id}`)).body).toMatchObject({ decided_by: people.data[0].id })
  }
  const page = await signIn(box, approver)
  const { body: log } = await page.call('GET', `/v1/audit?action=hold.rejected&actor=${people.data[0].id}`)
  expect(log.data.find(({ target }: Any) => target === second)).toMatchObject({ client: 'digest', address: '127.0.0.1' })
  expect(code(await decide(world, 'guessed', 'approve'))).toEqual([403, 'hold_link_invalid'])
})

test('a link ends with the hold, and with the right of its person to decide', async () => {
  const world = await watched()
  const { box, clock, job, arrived, hold } = world
  const owner = await signIn(box, approver)
  const { body: link } = await owner.call('POST', '/v1/people/invitations', {
    email: 'grace@owner.example',
    role: 'approver',
    password,
  })
  const token = new URLSearchParams(new URL(link.url as string).hash.slice(1)).get('token')
  const { body: grace } = await box.call(
    'POST',
    '/v1/people/invitations/accept',
    { token, password },
    { key: null, headers: { Origin: box.url } },
  )
  await hold()
  await job('send-hold-digests')
  const mails = await arrived(2)
  const tokenOf = (address: string): string => tokenIn(linksIn(mails.find(({ to }) => to[0] === address)!.raw), 'approve')
  await owner.call('PATCH', `/v1/people/${grace.id}`, { role: 'reader' })
  expect(code(await decide(world, tokenOf('grace@owner.example'), 'approve'))).toEqual([403, 'hold_link_invalid'])
  await owner.call('DELETE', `/v1/people/${grace.id}`)
  expect(code(await decide(world, tokenOf('grace@owner.example'), 'approve'))).toEqual([403, 'hold_link_invalid'])
  clock.advance(3 * 86_400_000)
  expect(code(await decide(world, tokenOf(approver.email), 'approve'))).toEqual([403, 'hold_link_invalid'])
})

test('a link approves no other bytes than those that were held when it was mailed', async () => {
  const world = await watched()
  const { box, job, arrived, hold } = world
  const { id } = await hold()
  await job('send-hold-digests')
  const token = tokenIn(linksIn((await arrived(1))[0]!.raw), 'approve')
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  database.prepare('UPDATE holds SET sha256 = ? WHERE id = ?').run('0'.repeat(64), id)
  database.close()
  expect(code(await decide(world, token, 'approve'))).toEqual([409, 'hold_changed'])
  expect(await open(world)).toMatchObject([{ id, status: 'open' }])
  expect(code(await decide(world, token, 'reject'))).toEqual([200, 'rejected'])
})

test('links that were mailed to an address decide nothing once their person has another', async () => {
  const world = await watched()
  const { box, job, arrived, hold } = world
  await hold()
  await job('send-hold-digests')
  const token = tokenIn(linksIn((await arrived(1))[0]!.raw), 'approve')
  const owner = await signIn(box, approver)
  const sameAddress = { email: 'Ada@Owner.example', current_password: password, password: 'another quiet evening' }
  expect((await owner.call('POST', '/v1/account/password', sameAddress)).status).toBe(200)
  const read = (): Promise<Any> => box.call('POST', '/v1/hold-links/read', { token }, { key: null })
  expect((await read()).status).toBe(200)
  const change = { email: 'ada@correct.example', current_password: 'another quiet evening', password: 'another quiet evening' }
  expect((await owner.call('POST', '/v1/account/password', change)).status).toBe(200)
  expect(code(await read())).toEqual([403, 'hold_link_invalid'])
  expect(code(await decide(world, token, 'approve'))).toEqual([403, 'hold_link_invalid'])
  expect(await open(world)).toMatchObject([{ status: 'open' }])
  // what is held is mailed to the new one
  box.dns.mx('correct.example', 'mx.owner.example')
  await job('send-hold-digests')
  const [, anew] = await arrived(2)
  expect(anew!.to).toEqual(['ada@correct.example'])
  expect(code(await decide(world, tokenIn(linksIn(anew!.raw), 'approve'), 'approve'))).toEqual([200, 'approved'])
})

test('a digest, and the command that shows a hold, say how much of which card would be revealed', async () => {
  const world = await watched()
  const { box, ada, job, arrived } = world
  const { body: stored } = await box.call(
    'POST',
    `/v1/identities/${ada}/cards`,
    card({ card_name: 'travel', budget_cents: 5_000_000 }),
  )
  const asked = { amount_cents: 1_234_500, purpose: 'a stamp for one dollar' }
  expect((await box.call('POST', `/v1/cards/${stored.id}/reveal`, asked)).body.error['code']).toBe('held')
  await job('send-hold-digests')
  const [mail] = await arrived(1)
  expect(mail!.raw).toContain('$12,345.00')
  expect(mail!.raw).toContain('ending in 4242')
  const [hold] = await open(world)
  const { output } = await pillarbox(box, ['holds', 'show', hold.id])
  for (const fact of ['travel', '4242', '$12,345.00', asked.purpose]) expect(output).toContain(fact)
})

test.each([
  ['huf', 1_000_000, '10,000.00'],
  ['jpy', 1_000_000, '1,000,000'],
  ['iqd', 1_000_000, '1,000.000'],
  ['uyw', 1_000_000, '100.0000'],
])('the amount of a card in %s has the digits of ISO 4217', async (currency, amount_cents, shown) => {
  const world = await watched()
  const { box, ada } = world
  const { body: stored } = await box.call('POST', `/v1/identities/${ada}/cards`, card({ currency, budget_cents: 2_000_000 }))
  expect((await box.call('POST', `/v1/cards/${stored.id}/reveal`, { amount_cents })).body.error['code']).toBe('held')
  const [hold] = await open(world)
  const { output } = await pillarbox(box, ['holds', 'show', hold.id])
  expect(/^amount: \D*(.*)$/m.exec(output)![1]).toBe(shown)
})

test('the command that shows a hold shows a held text message whole', async () => {
  const { box, ada } = await watched({ PILLARBOX_SMS__PROVIDER: 'loopback' })
  await box.call('POST', `/v1/identities/${ada}/phone`, {})
  const { body } = await box.call('POST', `/v1/identities/${ada}/sms`, { to: '+15550100199', body: 'The door is open.' })
  const { output } = await pillarbox(box, ['holds', 'show', body.hold.id])
  for (const fact of ['+15550100199', 'The door is open.']) expect(output).toContain(fact)
  expect(output).not.toContain('deleted')
})

test('none is sent while the setting is off, to readers, or to an address of this box, whose mail keys can read', async () => {
  const world = await watched({})
  const { box, job, sink, hold, reload } = world
  await hold()
  await job('send-hold-digests')
  await box.settled()
  expect(sink.messages).toEqual([])
  const owner = await signIn(box, approver)
  const change = { email: 'ada@pillarbox.test', current_password: password, password }
  expect((await owner.call('POST', '/v1/account/password', change)).status).toBe(200)
  await reload({ PILLARBOX_POLICY__DIGEST: 'true' })
  await job('send-hold-digests')
  await vi.waitFor(() => expect(box.logged.join('')).toContain('no digest of holds is sent to an address of this box'))
  await box.settled()
  expect(sink.messages).toEqual([])
})
