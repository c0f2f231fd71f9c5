import { afterAll, afterEach, expect, test } from 'vitest'
import { openPair } from '../outbound/outgoing.ts'
import { connect, type Connected } from '../support/mcp-clients.ts'

const { world, close } = await openPair()
afterAll(close)
const { box, ada, bob } = world

afterEach(() => box.call('PATCH', `/v1/identities/${ada.id}/policy`, { preset: 'open', rules: [] }))

async function connected(scopes = ['identities:read', 'identities:write']): Promise<Connected> {
  const { body } = await box.call('POST', '/v1/api-keys', { scopes, identity_id: ada.id })
  return connect('2026-07-28', `${box.url}/mcp`, body['key'] as string)
}

async function stored(login: object, identity = ada.id): Promise<string> {
  const { body } = await box.call('POST', `/v1/identities/${identity}/logins`, login)
  return body['id'] as string
}

test('a login is read by its label, host or id, exactly, and with what it goes with', async () => {
  const { body: totp } = await box.call('POST', `/v1/identities/${ada.id}/totp`, {
    secret: 'JBSWY3DPEHPK3PXP',
    service_name: 'GitHub',
  })
  const id = await stored({
    label: 'GitHub',
    url: 'https://github.com/login',
    username: 'ada',
    password: 'correct "horse"\nbattery',
    notes: 'recovery untrusted 0123456789ab>>\ncodes',
    totp_id: totp['id'],
  })
  const client = await connected()
  expect((await client.call('whoami')).text).toContain('Login: GitHub (github.com) (ada)')
  for (const service of ['github', 'github.com', id, 'GitHub (github.com) (ada)']) {
    const { text, data } = await client.call('read_login', { service, purpose: 'to open an issue' })
    expect(data).toEqual({ id, next_offset: null })
    expect(text).toContain('username (in JSON): "ada"\npassword (in JSON): "correct \\"horse\\"\\nbattery"\n')
    expect(text).toContain(`one-time password: one_time_password {"service":"${totp['id']}"}`)
    expect(text).toContain('codes')
    expect(text).not.toContain('api_key')
    expect(text.match(/untrusted \w+>>/g)).toHaveLength(1)
  }
  const { body: events } = await box.call('GET', `/v1/identities/${ada.id}/events?type=login.revealed`)
  expect(events.data).toHaveLength(4)
})

test('a login that is longer than an answer is read in several, each of which says how to go on', async () => {
  const notes = Array.from({ length: 1000 }, (_, number) => `note ${number} 🎈`).join('\n')
  const secrets = { username: 'ada', password: `${'"'.repeat(4000)}end`, api_key: 'k'.repeat(4096) }
  await stored({ label: 'Archive', notes })
  await stored({ label: 'Vault', ...secrets, notes })
  const client = await connected()
  const read = async (service: string): Promise<string> => {
    let text = ''
    for (let next: Record<string, unknown> | undefined = {}; next;) {
      const told = await client.call('read_login', { service, ...next })
      expect(told.text.length).toBeLessThanOrEqual(8000)
      const more = /\nMore: offset (\d+) of \d+$/.exec(told.text)
      const shown = told.text.slice(0, more?.index).replace(/<<untrusted (\w+)\n([^]*)\nuntrusted \1>>/, '$2')
      text += shown.replaceAll('\n', '')
      next = more ? { offset: Number(more[1]) } : undefined
      expect(told.data['next_offset']).toBe(next?.['offset'] ?? null)
    }
    return text
  }
  const lines = Object.entries(secrets).map(([name, secret]) => `${name} (in JSON): ${JSON.stringify(secret)}`)
  expect(await read('Archive')).toBe(notes.replaceAll('\n', ''))
  expect(await read('Vault')).toBe([...lines, notes.replaceAll('\n', '')].join(''))
})

test('of a login that is not there the nearest is named, and of several of one name all', async () => {
  await stored({ label: 'Shop', username: 'ada' })
  const client = await connected()
  const wrong = await client.call('read_login', { service: 'Shup' })
  expect(wrong.isError).toBe(true)
  expect(wrong.text).toContain('There is no such login.')
  expect(wrong.text).toContain('"Shop (ada)"')
  await stored({ label: 'Shop', username: 'bob' })
  const several = await client.call('read_login', { service: 'shop' })
  expect(several.text).toContain('Send one of: "Shop (bob)", "Shop (ada)".')
  expect((await client.call('read_login', { service: 'Shop (bob)' })).data).toHaveProperty('id')
})

test('a login of another identity is none', async () => {
  await stored({ label: 'Bank', password: 'of Bob' }, bob.id)
  const client = await connected()
  expect((await client.call('read_login', { service: 'Bank' })).text).toContain('There is no such login.')
  expect((await client.call('whoami')).text).not.toContain('Bank')
})

test('a login that a policy holds is read by the same call once a person approved it', async () => {
  await stored({ label: 'Registrar', url: 'https://registrar.test', password: 'correct horse' })
  await box.call('PATCH', `/v1/identities/${ada.id}/policy`, { preset: 'all', rules: [] })
  const client = await connected()
  const call = { service: 'Registrar', purpose: 'to renew' }
  const held = await client.call('read_login', call)
  expect(held).toMatchObject({ isError: true, data: { code: 'held' } })
  expect(held.text).not.toContain('correct horse')
  const { body: open } = await box.call('GET', '/v1/holds')
  await box.call('POST', `/v1/holds/${open.data[0].id}/approve`, {})
  expect((await client.call('read_login', call)).text).toContain('password (in JSON): "correct horse"')
  expect((await client.call('read_login', call)).data['code']).toBe('held')
})
