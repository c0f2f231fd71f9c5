import { expect, test } from 'vitest'
import { day } from '../../src/core/clock.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { attempt, type Browser, person as ada, signIn, withPassword } from '../support/people.ts'
import { pillarbox } from '../support/pillarbox.ts'

const password = 'another long and quiet evening'

/** The link that an owner gets for someone. */
async function invited(owner: Browser, email: string, role: string): Promise<Record<string, string>> {
  const { status, body } = await owner.call('POST', '/v1/people/invitations', { email, role, password: ada.password })
  expect([status, body.error]).toEqual([201, undefined])
  const fragment = new URLSearchParams(new URL(body['url'] as string).hash.slice(1))
  expect(fragment.get('email')).toBe(email)
  return { ...(body as Record<string, string>), token: fragment.get('token')! }
}

const accept = (box: Appliance, token: string, headers = {}) =>
  box.call('POST', '/v1/people/invitations/accept', { token, password }, { key: null, headers: { Origin: box.url, ...headers } })

async function joined(box: Appliance, owner: Browser, email: string, role: string): Promise<Browser & { id: string }> {
  const { token } = await invited(owner, email, role)
  const { status, body } = await accept(box, token!)
  expect([status, body.error]).toEqual([200, undefined])
  return { ...(await signIn(box, { email, password })), id: body['id'] as string }
}

/** A box whose first person is signed in. */
async function owned(clock?: HeldClock): Promise<{ box: Appliance; owner: Browser; ownerId: string }> {
  const box = await appliance({ PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '1000' }, clock)
  await withPassword(box)
  const owner = await signIn(box)
  const { body } = await owner.call('GET', '/v1/session')
  return { box, owner, ownerId: body.person.id as string }
}

const code = ({ status, body }: { status: number; body: { error?: { code?: string } } }): unknown => [status, body.error?.code]

test('an invitation makes one person, who signs in with a password, sessions and a second factor of their own', async () => {
  const { box, owner, ownerId } = await owned()
  const { token, id } = await invited(owner, 'grace@example.com', 'approver')
  expect((await owner.call('GET', '/v1/people/invitations')).body.data).toMatchObject([
    { id, email: 'grace@example.com', role: 'approver', created_by: ownerId },
  ])
  expect(JSON.stringify((await owner.call('GET', '/v1/people/invitations')).body)).not.toContain(token)
  expect(code(await accept(box, token!, { Origin: 'https://elsewhere.test' }))).toEqual([403, 'csrf'])
  const twice = await Promise.all([accept(box, token!), accept(box, token!)])
  expect(twice.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(code(await accept(box, token!))).toEqual([403, 'invitation_invalid'])
  expect((await owner.call('GET', '/v1/people/invitations')).body.data).toEqual([])
  const people = (await owner.call('GET', '/v1/people')).body.data
  expect(people).toMatchObject([
    { email: 'grace@example.com', role: 'approver', totp_enabled: false },
    { id: ownerId, email: ada.email, role: 'owner' },
  ])
  const grace = await signIn(box, { email: 'grace@example.com', password })
  expect((await grace.call('GET', '/v1/session')).body).toMatchObject({
    account: { email: 'grace@example.com' },
    person: { id: people[0].id, role: 'approver' },
  })
  // a second factor of hers is none of the owner's
  expect((await grace.call('POST', '/v1/account/totp', { password })).status).toBe(200)
  expect((await grace.call('GET', '/v1/account/sessions')).body.data).toHaveLength(1)
  expect((await owner.call('GET', '/v1/account/sessions')).body.data).toHaveLength(1)
  expect((await box.call('GET', '/v1/account/sessions')).body.data).toHaveLength(2)
  const changed = { current_password: password, password: 'a third long and quiet evening' }
  expect((await grace.call('POST', '/v1/account/password', changed)).body).toMatchObject({ email: 'grace@example.com' })
  expect((await owner.call('GET', '/v1/session')).status).toBe(200)
  expect((await attempt(box, ada)).status).toBe(200)
})

test('an invitation ends after three days, when it is withdrawn, and by a new one for the same address', async () => {
  const clock = new HeldClock()
  const { box, owner } = await owned(clock)
  const old = await invited(owner, 'grace@example.com', 'reader')
  const other = await invited(owner, 'grace@example.com', 'reader')
  expect(code(await accept(box, old['token']!))).toEqual([403, 'invitation_invalid'])
  expect((await owner.call('DELETE', `/v1/people/invitations/${other['id']}`)).status).toBe(200)
  expect(code(await accept(box, other['token']!))).toEqual([403, 'invitation_invalid'])
  const late = await invited(owner, 'alan@example.com', 'reader')
  clock.advance(3 * day)
  expect((await owner.call('GET', '/v1/people/invitations')).body.data).toEqual([])
  expect(code(await accept(box, late['token']!))).toEqual([403, 'invitation_invalid'])
  expect(code(await accept(box, 'guessed'))).toEqual([403, 'invitation_invalid'])
})

test('an invitation replaces an earlier one of the same address in other letters, and none of another account', async () => {
  const { box, owner } = await owned()
  await box.app.accounts.add({ name: 'Other', email: 'eve@example.com', password: ada.password })
  const eve = await signIn(box, { email: 'eve@example.com', password: ada.password })
  const elsewhere = await invited(eve, 'Grace@Example.com', 'owner')
  const mistaken = await invited(owner, 'Grace@Example.com', 'owner')
  const { id } = await invited(owner, 'grace@example.com', 'reader')
  expect((await owner.call('GET', '/v1/people/invitations')).body.data).toMatchObject([{ id, role: 'reader' }])
  expect(code(await accept(box, mistaken['token']!))).toEqual([403, 'invitation_invalid'])
  expect((await accept(box, elsewhere['token']!)).status).toBe(200)
})

test('each role may do what it says, and sign out and change its own password', async () => {
  const { box, owner } = await owned()
  const approver = await joined(box, owner, 'grace@example.com', 'approver')
  const reader = await joined(box, owner, 'alan@example.com', 'reader')
  const { body: identity } = await owner.call('POST', '/v1/identities', { name: 'Mailer' })
  const at = `/v1/identities/${identity.id}`
  const of = async (method: string, path: string, body?: unknown): Promise<unknown[]> => {
    const told = []
    for (const page of [approver, reader]) told.push(code(await page.call(method, path, body)))
    return told
  }
  const [yes, no] = [
    [200, undefined],
    [403, 'insufficient_scope'],
  ]
  for (const path of ['/v1/identities', `${at}/emails`, '/v1/api-keys', '/v1/audit', '/v1/people', '/v1/account']) {
    expect([path, await of('GET', path)]).toEqual([path, [yes, yes]])
  }
  expect(await of('GET', '/v1/holds')).toEqual([yes, no])
  expect(await of('PATCH', '/v1/policy', { preset: 'all' })).toEqual([[403, 'owner_required'], no])
  const writes: [string, string, unknown?][] = [
    ['POST', '/v1/identities', { name: 'x' }],
    ['POST', `${at}/emails`, { to: 'ada@example.com', subject: 's', body_text: 't' }],
    ['DELETE', at],
    ['POST', '/v1/api-keys', { scopes: ['emails:read'] }],
    ['POST', '/v1/webhooks', { url: 'https://receiver.test/', events: ['email.received'] }],
    ['POST', '/v1/people/invitations', { email: 'eve@example.com', role: 'owner', password }],
    ['PATCH', `/v1/people/${reader.id}`, { role: 'owner' }],
    ['DELETE', `/v1/people/${reader.id}`],
  ]
  for (const [method, path, body] of writes) expect([path, await of(method, path, body)]).toEqual([path, [no, no]])
  expect((await reader.call('POST', '/v1/identities', { name: 'x' })).body.error['message']).toMatch(/role reader/)
  const own = { current_password: password, password }
  expect(await of('POST', '/v1/account/password', own)).toEqual([yes, yes])
  expect(await of('DELETE', '/v1/account/sessions')).toEqual([yes, yes])
  expect(await of('DELETE', '/v1/session')).toEqual([yes, yes])
  expect((await owner.call('GET', '/v1/session')).status).toBe(200)
})

test('a held message is decided by an approver, who stays named when removed; a reader does not decide', async () => {
  const { box, owner } = await owned()
  const approver = await joined(box, owner, 'grace@example.com', 'approver')
  const reader = await joined(box, owner, 'alan@example.com', 'reader')
  await owner.call('PATCH', '/v1/policy', { preset: 'all' })
  const { body: identity } = await box.call('POST', '/v1/identities', { name: 'Mailer' })
  await box.call('POST', '/v1/identities', { name: 'Bob' })
  const { body: sent } = await box.call('POST', `/v1/identities/${identity.id}/emails`, {
    to: 'bob@pillarbox.test',
    subject: 's',
    body_text: 't',
  })
  const hold = `/v1/holds/${sent.hold.id}`
  expect(code(await reader.call('POST', `${hold}/approve`, {}))).toEqual([403, 'insufficient_scope'])
  expect((await approver.call('POST', `${hold}/approve`, {})).body).toMatchObject({ status: 'approved', decided_by: approver.id })
  expect((await owner.call('DELETE', `/v1/people/${approver.id}`)).body).toMatchObject({ email: 'grace@example.com' })
  expect((await owner.call('GET', hold)).body).toMatchObject({ decided_by: approver.id })
  const { body: log } = await owner.call('GET', '/v1/audit?action=hold.approved')
  expect(log.data).toMatchObject([{ actor: approver.id, target: sent.hold.id }])
  const { body: removal } = await owner.call('GET', '/v1/audit?action=person.removed')
  expect(removal.data).toMatchObject([{ target: approver.id, detail: { email: 'grace@example.com', role: 'approver' } }])
  const { body: joining } = await owner.call('GET', `/v1/audit?action=person.joined&actor=${approver.id}`)
  expect(joining.data).toMatchObject([{ detail: { email: 'grace@example.com', role: 'approver' } }])
})

test('who is removed or gets another role is signed out, and their invitations end; a removed person cannot sign in', async () => {
  const { box, owner, ownerId } = await owned()
  const second = await joined(box, owner, 'grace@example.com', 'owner')
  const { body: link } = await second.call('POST', '/v1/people/invitations', {
    email: 'eve@example.com',
    role: 'owner',
    password,
  })
  const token = new URLSearchParams(new URL(link['url'] as string).hash.slice(1)).get('token')!
  expect((await owner.call('PATCH', `/v1/people/${second.id}`, { role: 'reader' })).body).toMatchObject({ role: 'reader' })
  expect((await second.call('GET', '/v1/session')).status).toBe(401)
  expect(code(await accept(box, token))).toEqual([403, 'invitation_invalid'])
  const again = await signIn(box, { email: 'grace@example.com', password })
  expect(code(await again.call('POST', '/v1/identities', { name: 'x' }))).toEqual([403, 'insufficient_scope'])
  expect((await owner.call('DELETE', `/v1/people/${second.id}`)).status).toBe(200)
  expect((await again.call('GET', '/v1/session')).status).toBe(401)
  expect(code(await attempt(box, { email: 'grace@example.com', password }))).toEqual([401, 'invalid_credentials'])
  expect(code(await owner.call('DELETE', `/v1/people/${second.id}`))).toEqual([404, 'not_found'])
  expect((await owner.call('GET', '/v1/people')).body.data).toMatchObject([{ id: ownerId }])
  // the address can come back
  await joined(box, owner, 'grace@example.com', 'reader')
})

test('the last owner is neither removed nor demoted, also when two owners remove each other at once', async () => {
  const { box, owner, ownerId } = await owned()
  await joined(box, owner, 'alan@example.com', 'approver')
  expect(code(await owner.call('DELETE', `/v1/people/${ownerId}`))).toEqual([409, 'last_owner'])
  expect(code(await owner.call('PATCH', `/v1/people/${ownerId}`, { role: 'approver' }))).toEqual([409, 'last_owner'])
  expect((await owner.call('PATCH', `/v1/people/${ownerId}`, { role: 'owner' })).status).toBe(200)
  const second = await joined(box, owner, 'grace@example.com', 'owner')
  const outcomes = await Promise.all([
    owner.call('DELETE', `/v1/people/${second.id}`),
    second.call('PATCH', `/v1/people/${ownerId}`, { role: 'reader' }),
  ])
  expect(outcomes.filter(({ status }) => status === 200)).toHaveLength(1)
  const { body } = await box.call('GET', '/v1/people')
  expect(body.data.filter(({ role }: { role: string }) => role === 'owner')).toHaveLength(1)
})

test('a key changes nothing of people, whatever its scopes; a session needs the password to invite, and other accounts see nothing', async () => {
  const { box, owner, ownerId } = await owned()
  const invitation = { email: 'eve@example.com', role: 'owner' }
  expect(code(await box.call('POST', '/v1/people/invitations', { ...invitation, password: ada.password }))).toEqual([
    403,
    'session_required',
  ])
  expect(code(await box.call('PATCH', `/v1/people/${ownerId}`, { role: 'owner' }))).toEqual([403, 'session_required'])
  expect(code(await box.call('DELETE', `/v1/people/${ownerId}`))).toEqual([403, 'session_required'])
  expect((await owner.call('POST', '/v1/people/invitations', invitation)).body.error).toMatchObject({ param: 'password' })
  expect(code(await owner.call('POST', '/v1/people/invitations', { ...invitation, password: 'wrong and long' }))).toEqual([
    403,
    'wrong_password',
  ])
  expect(
    code(await owner.call('POST', '/v1/people/invitations', { ...invitation, email: ada.email, password: ada.password })),
  ).toEqual([409, 'email_taken'])
  const { id } = await invited(owner, 'grace@example.com', 'reader')
  await box.app.accounts.add({ name: 'Elsewhere', email: 'alan@example.com', password })
  const other = await signIn(box, { email: 'alan@example.com', password })
  expect((await other.call('GET', '/v1/people')).body.data).toHaveLength(1)
  expect((await other.call('GET', '/v1/people/invitations')).body.data).toEqual([])
  expect(code(await other.call('DELETE', `/v1/people/invitations/${id}`))).toEqual([404, 'not_found'])
  expect(code(await other.call('PATCH', `/v1/people/${ownerId}`, { role: 'reader' }))).toEqual([404, 'not_found'])
  expect(code(await other.call('DELETE', `/v1/people/${ownerId}`))).toEqual([404, 'not_found'])
})

test('a person without the rights of an owner grants no access to a program', async () => {
  const { box, owner } = await owned()
  const reader = await joined(box, owner, 'alan@example.com', 'reader')
  for (const method of ['GET', 'POST']) {
    const { status, body } = await reader.call(method, '/oauth/authorize?client_id=x')
    expect([method, status, JSON.stringify(body)]).toEqual([method, 403, expect.stringContaining('account:write')])
  }
})

test('the operator lists, invites, changes and removes people on the machine of the box', async () => {
  const { box } = await owned()
  const link = await pillarbox(box, ['people', 'invite', 'grace@example.com', '--role', 'approver'])
  const [url] = /http\S+#\S+/.exec(link.output)!
  expect((await pillarbox(box, ['people', 'list'])).output).toMatch(/grace@example.com +approver +invited, until/)
  await accept(box, new URLSearchParams(new URL(url).hash.slice(1)).get('token')!)
  expect((await pillarbox(box, ['people', 'role', 'Grace@example.com', 'owner'])).output).toBe(
    'grace@example.com has the role owner.\n',
  )
  expect((await pillarbox(box, ['people', 'remove', ada.email])).output).toContain(`${ada.email} was removed`)
  expect((await pillarbox(box, ['people', 'remove', 'grace@example.com'])).errors).toContain('last owner')
  const changed = await pillarbox(box, ['account', 'password', 'grace@example.com'], `${ada.password}\n`)
  expect(changed.output).toContain('The password of default (grace@example.com) was changed')
  await signIn(box, { email: 'grace@example.com', password: ada.password })
  await pillarbox(box, ['people', 'invite', 'alan@example.com', '--role', 'reader'])
  expect((await pillarbox(box, ['people', 'uninvite', 'alan@example.com'])).output).toContain('was withdrawn')
})

test.each(['\u200b', '\u00ad', '\u2066', '\ufeff'])('an address with %j, which is not seen, is refused', async (character) => {
  const { owner } = await owned()
  const email = `grace@example.com${character}`
  const { status, body } = await owner.call('POST', '/v1/people/invitations', { email, role: 'reader', password: ada.password })
  expect([status, body.error.param]).toEqual([400, 'email'])
})
