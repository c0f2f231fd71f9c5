import { createHash, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Appliance } from '../../support/appliance.ts'
import { type Browser, signIn, withPassword } from '../../support/people.ts'
import { severalBoxes } from './boxes.ts'
import { serverOfFile } from './server.ts'

const postgres = serverOfFile()
const origin = 'https://box.example.test'
const callback = 'http://127.0.0.1:4711/callback'
const verifier = randomBytes(32).toString('base64url')
const code_challenge = createHash('sha256').update(verifier).digest('base64url')

async function boxes(): Promise<{ one: Appliance; other: Appliance; code: () => Promise<string>; client_id: string }> {
  const all = await severalBoxes(postgres(), 2, { PILLARBOX_PUBLIC_URL: origin })
  for (const box of all) box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
  const [one, other] = all
  await withPassword(one)
  const person = await signIn(one, undefined, { Origin: origin })
  const { body: ada } = await one.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: client } = await one.call(
    'POST',
    '/oauth/register',
    { client_name: 'Test', redirect_uris: [callback] },
    { key: null },
  )
  const client_id = client['client_id'] as string
  const code = (): Promise<string> => issued(one, person, { client_id, identity: ada.email })
  return { one, other, code, client_id }
}

async function issued(box: Appliance, person: Browser, fields: { client_id: string; identity: string }): Promise<string> {
  const form = new URLSearchParams({
    response_type: 'code',
    redirect_uri: callback,
    code_challenge,
    code_challenge_method: 'S256',
    scopes: 'messages:read',
    decision: 'allow',
    ...fields,
  })
  const response = await fetch(`${box.url}/oauth/authorize`, {
    method: 'POST',
    redirect: 'manual',
    headers: { Cookie: person.cookie, Origin: origin, 'Content-Type': 'application/x-www-form-urlencoded' },
    body: form.toString(),
  })
  expect([response.status, await response.text()]).toEqual([303, 'See the program.\n'])
  return new URL(response.headers.get('location')!).searchParams.get('code')!
}

async function redeem(
  box: Appliance,
  client_id: string,
  code: string,
  code_verifier = verifier,
): Promise<{ status: number; body: Record<string, string> }> {
  const given = { grant_type: 'authorization_code', code, client_id, redirect_uri: callback, code_verifier }
  const response = await fetch(`${box.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(given) })
  return { status: response.status, body: (await response.json()) as Record<string, string> }
}

async function accepted(box: Appliance, token: string): Promise<number> {
  const response = await fetch(`${box.url}/mcp`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  })
  await response.text()
  return response.status
}

test('a code of OAuth that one box gave is redeemed at another, once; when it comes again at any box its grant ends', async () => {
  const { one, other, code, client_id } = await boxes()
  const given = await code()
  const tokens = await redeem(other, client_id, given)
  expect([tokens.status, tokens.body['scope']]).toEqual([200, 'messages:read'])
  for (const box of [one, other]) expect(await accepted(box, tokens.body['access_token']!)).toBe(200)
  expect(await redeem(one, client_id, given)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  for (const box of [one, other]) await expect.poll(() => accepted(box, tokens.body['access_token']!)).toBe(401)
})

test('of two boxes that are given a code at the same time at most one gives tokens, and these end', async () => {
  const { one, other, code, client_id } = await boxes()
  for (let round = 0; round < 5; round += 1) {
    const given = await code()
    const answers = await Promise.all([one, other].map((box) => redeem(box, client_id, given)))
    const tokens = answers.filter(({ status }) => status === 200)
    expect(tokens.length).toBeLessThan(2)
    for (const { body } of tokens) await expect.poll(() => accepted(one, body['access_token']!)).toBe(401)
  }
  expect((await one.call<{ data: unknown[] }>('GET', '/v1/api-keys')).body.data).toHaveLength(1)
})

test('a code is used up by a wrong verifier at another box, and is not stored as it is', async () => {
  const { one, other, code, client_id } = await boxes()
  const given = await code()
  const name = new URL(one.env['PILLARBOX_DATABASE__URL']!).pathname.slice(1)
  expect(JSON.stringify(await postgres().run(name, 'SELECT * FROM oauth_codes'))).not.toContain(given)
  expect((await redeem(other, client_id, given, 'x'.repeat(43))).status).toBe(400)
  expect((await redeem(one, client_id, given)).status).toBe(400)
})
