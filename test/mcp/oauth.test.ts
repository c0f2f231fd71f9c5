import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { auth, type OAuthClientProvider } from '@modelcontextprotocol/client'
import { auth as oldAuth, type OAuthClientProvider as OldProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { whatScopesAllow } from '../../src/core/scopes.ts'
import { openPair } from '../outbound/outgoing.ts'
import { authority } from '../support/authority.ts'
import { IssuerHost } from '../support/issuer-host.ts'
import { connect } from '../support/mcp-clients.ts'
import { openStore } from '../support/open-store.ts'
import { type Browser, signIn, withPassword } from '../support/people.ts'

const directory = mkdtempSync(join(tmpdir(), 'pillarbox-oauth-'))
const trusted = await authority(directory)
const { world, close } = await openPair({
  PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8',
  PILLARBOX_FETCH__CA_FILE: trusted.caFile,
})
afterAll(async () => {
  await close()
  rmSync(directory, { recursive: true })
})
const { box, ada, bob } = world
const resource = `${box.url}/mcp`
let person: Browser
beforeAll(async () => {
  await withPassword(box)
  person = await signIn(box)
})

const callback = 'http://127.0.0.1:4711/callback'
const verifier = randomBytes(32).toString('base64url')
const challenge = createHash('sha256').update(verifier).digest('base64url')

async function registered(redirect_uris = [callback], more = {}): Promise<string> {
  const { body } = await box.call(
    'POST',
    '/oauth/register',
    { client_name: 'Test <b>client</b>', redirect_uris, ...more },
    { key: null },
  )
  return body['client_id'] as string
}

function query(client_id: string, changes: Record<string, string | undefined> = {}): string {
  const all = {
    response_type: 'code',
    client_id,
    redirect_uri: callback,
    code_challenge: challenge,
    code_challenge_method: 'S256',
    resource,
    state: 'a state',
    ...changes,
  }
  return new URLSearchParams(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)).toString()
}

interface Page {
  status: number
  text: string
  location: URL | undefined
  headers: Headers
}

/** What a browser of the person is answered. */
async function browse(method: string, path: string, form?: URLSearchParams, headers: Record<string, string> = {}): Promise<Page> {
  const response = await fetch(`${box.url}${path}`, {
    method,
    redirect: 'manual',
    headers: {
      Cookie: person.cookie,
      ...(form ? { Origin: box.url, 'Content-Type': 'application/x-www-form-urlencoded' } : {}),
      ...headers,
    },
    ...(form ? { body: form.toString() } : {}),
  })
  const location = response.headers.get('location')
  return {
    status: response.status,
    text: await response.text(),
    location: location === null ? undefined : new URL(location),
    headers: response.headers,
  }
}

/** The form as a browser would send it, allowed for Ada unless said. */
function filled(
  asked: string,
  changes: Record<string, string> = {},
  scopes = ['identities:read', 'messages:read', 'messages:write'],
): URLSearchParams {
  const form = new URLSearchParams(asked)
  for (const scope of scopes) form.append('scopes', scope)
  for (const [name, value] of Object.entries({ identity: ada.email, decision: 'allow', ...changes })) form.set(name, value)
  return form
}

async function codeFor(asked: string, changes = {}, scopes?: string[]): Promise<string> {
  const { location, status, text } = await browse('POST', '/oauth/authorize', filled(asked, changes, scopes))
  const code = location?.searchParams.get('code')
  if (!code) throw new Error(`${status} ${text}`)
  return code
}

async function token(given: Record<string, string>): Promise<{ status: number; body: Record<string, string> }> {
  const response = await fetch(`${box.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(given) })
  return { status: response.status, body: (await response.json()) as Record<string, string> }
}

async function revoke(given: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${box.url}/oauth/revoke`, { method: 'POST', body: new URLSearchParams({ token: given }) })
  return { status: response.status, body: await response.json() }
}

async function granted(scopes?: string[]): Promise<{ client_id: string; tokens: Record<string, string> }> {
  const client_id = await registered()
  const code = await codeFor(query(client_id), {}, scopes)
  const { body } = await token({
    grant_type: 'authorization_code',
    code,
    client_id,
    redirect_uri: callback,
    code_verifier: verifier,
  })
  return { client_id, tokens: body }
}

function list(key: string): Promise<Response> {
  return fetch(resource, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  })
}

/** A provider that keeps all in memory; the person consents as a browser does. */
function provider(metadataUrl?: string) {
  const kept: { client?: object; tokens?: object; verifier?: string; asked?: URL } = {}
  const it = {
    redirectUrl: callback,
    ...(metadataUrl === undefined ? {} : { clientMetadataUrl: metadataUrl }),
    clientMetadata: { client_name: 'Stock client', redirect_uris: [callback], token_endpoint_auth_method: 'none' },
    clientInformation: () => kept.client,
    saveClientInformation: (client: object) => void (kept.client = client),
    tokens: () => kept.tokens,
    saveTokens: (tokens: object) => void (kept.tokens = tokens),
    redirectToAuthorization: (url: URL) => void (kept.asked = url),
    saveCodeVerifier: (text: string) => void (kept.verifier = text),
    codeVerifier: () => kept.verifier!,
  }
  return { it, kept }
}

describe('a stock client library', () => {
  test('finds out all by the URL alone, asks with its metadata document, and acts as the one identity that a person chose', async () => {
    const host = await IssuerHost.start(trusted)
    const id = `${host.origin}/client.json`
    host.pages.set('/client.json', {
      body: { client_id: id, client_name: 'Assistant', redirect_uris: [callback], token_endpoint_auth_method: 'none' },
    })
    const { it, kept } = provider(id)
    const stock = it as unknown as OAuthClientProvider
    expect(await auth(stock, { serverUrl: resource })).toBe('REDIRECT')
    const page = await browse('GET', kept.asked!.pathname + kept.asked!.search)
    expect(page.text).toContain('Assistant')
    expect(page.text).toContain(host.origin.replace('https://', ''))
    const code = await codeFor(kept.asked!.search.slice(1))
    const iss = box.url
    expect(await auth(stock, { serverUrl: resource, authorizationCode: code, iss })).toBe('AUTHORIZED')
    const { access_token } = kept.tokens as Record<string, string>
    const client = await connect('2026-07-28', resource, access_token!)
    expect((await client.call('whoami')).data['identity_id']).toBe(ada.id)
    // with a refresh token, without asking anybody
    const before = access_token
    expect(await auth(stock, { serverUrl: resource })).toBe('AUTHORIZED')
    expect((kept.tokens as Record<string, string>)['access_token']).not.toBe(before)
  })

  test('of the older kind registers itself', async () => {
    const { it, kept } = provider()
    const old = it as unknown as OldProvider
    expect(await oldAuth(old, { serverUrl: resource })).toBe('REDIRECT')
    const code = await codeFor(kept.asked!.search.slice(1), { identity: bob.email })
    expect(await oldAuth(old, { serverUrl: resource, authorizationCode: code })).toBe('AUTHORIZED')
    const client = await connect('sdk 1', resource, (kept.tokens as Record<string, string>)['access_token']!)
    expect((await client.call('whoami')).data['identity_id']).toBe(bob.id)
    expect((await client.list()).map(({ name }) => name)).not.toContain('list_identities')
  })
})

describe('what is granted', () => {
  test('is for /mcp alone, and of one identity', async () => {
    const { tokens } = await granted()
    const key = tokens['access_token']!
    expect((await list(key)).status).toBe(200)
    for (const path of ['/v1/whoami', `/v1/identities/${ada.id}`, `/v1/identities/${ada.id}/emails`, '/v1/api-keys']) {
      expect((await box.call('GET', path, undefined, { key })).status).toBe(401)
    }
    const refresh = await list(tokens['refresh_token']!)
    expect(refresh.status).toBe(401)
  })

  test('is told to a client that asks for too much, and is less', async () => {
    const client_id = await registered()
    const asked = query(client_id, { scope: 'account:write cards:read messages:read admin' })
    const page = await browse('GET', `/oauth/authorize?${asked}`)
    expect(page.text).toContain('account:write, cards:read, admin')
    // also when the form is made up
    const code = await codeFor(asked, {}, ['messages:read', 'account:write', 'messages:write'])
    const { body } = await token({
      grant_type: 'authorization_code',
      code,
      client_id,
      redirect_uri: callback,
      code_verifier: verifier,
    })
    expect(body['scope']).toBe('messages:read')
    const none = await browse('GET', `/oauth/authorize?${query(client_id, { scope: 'account:write' })}`)
    expect(none.location!.searchParams.get('error')).toBe('invalid_scope')
  })

  test('is shown with the keys, and ends when it is revoked there, by the client, or with its identity', async () => {
    const { tokens } = await granted()
    const { body } = await person.call('GET', '/v1/api-keys')
    const key = body.data.find((one) => one.label.startsWith('Test'))
    expect(key).toMatchObject({ identity_id: ada.id, scopes: ['identities:read', 'messages:read', 'messages:write'] })
    const all = body.data.filter((one) => one.label.startsWith('Test'))
    for (const one of all) await person.call('DELETE', `/v1/api-keys/${one.id}`)
    expect((await list(tokens['access_token']!)).status).toBe(401)
    const { client_id } = await granted()
    expect((await token({ grant_type: 'refresh_token', refresh_token: tokens['refresh_token']!, client_id })).body['error']).toBe(
      'invalid_grant',
    )

    const own = await granted()
    await fetch(`${box.url}/oauth/revoke`, { method: 'POST', body: new URLSearchParams({ token: own.tokens['refresh_token']! }) })
    expect((await list(own.tokens['access_token']!)).status).toBe(401)

    const { body: eve } = await box.call('POST', '/v1/identities', { name: 'Eve' })
    const id = await registered()
    const code = await codeFor(query(id), { identity: eve['email'] })
    const { body: hers } = await token({
      grant_type: 'authorization_code',
      code,
      client_id: id,
      redirect_uri: callback,
      code_verifier: verifier,
    })
    expect((await list(hers['access_token']!)).status).toBe(200)
    await box.call('DELETE', `/v1/identities/${eve['id'] as string}`)
    expect((await list(hers['access_token']!)).status).toBe(401)
  })

  test('is refused while the account is stopped, and holds again when it is resumed', async () => {
    const { client_id, tokens } = await granted()
    await person.call('POST', '/v1/account/stop', {})
    const refused = await list(tokens['access_token']!)
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('account_stopped')])
    await person.call('POST', '/v1/account/resume', {})
    expect((await list(tokens['access_token']!)).status).toBe(200)
    const refreshed = await token({ grant_type: 'refresh_token', refresh_token: tokens['refresh_token']!, client_id })
    expect(refreshed.body['error']).toBeUndefined()
  })

  test('ends while the account is stopped: when it is revoked, and when a token or code comes twice', async () => {
    const [revoked, stolen] = [await granted(), await granted()]
    const client_id = await registered()
    const code = await codeFor(query(client_id))
    const given = { grant_type: 'authorization_code', code, client_id, redirect_uri: callback, code_verifier: verifier }
    const { body: redeemed } = await token(given)
    await person.call('POST', '/v1/account/stop', {})
    const { status, body } = await revoke(revoked.tokens['refresh_token']!)
    expect([status, body]).toEqual([200, {}])
    const again = {
      grant_type: 'refresh_token',
      refresh_token: stolen.tokens['refresh_token']!,
      client_id: stolen.client_id,
    }
    const thief = await token(again)
    expect(thief.status).toBe(200)
    expect((await token(again)).body['error']).toBe('invalid_grant')
    expect((await token(given)).body['error']).toBe('invalid_grant')
    await person.call('POST', '/v1/account/resume', {})
    for (const { access_token } of [revoked.tokens, thief.body, redeemed]) expect((await list(access_token!)).status).toBe(401)
    const { body: left } = await token({ ...again, refresh_token: thief.body['refresh_token']! })
    expect(left['error']).toBe('invalid_grant')
  })

  test('ends when it is revoked after an owner has given its key a new secret, which ends too', async () => {
    const { tokens } = await granted()
    const { body: keys } = await person.call('GET', '/v1/api-keys?limit=1')
    const { body: rotated } = await person.call('POST', `/v1/api-keys/${keys.data[0].id}/rotate`, { grace_seconds: 600 })
    expect((await list(tokens['access_token']!)).status).toBe(200)
    const { status, body } = await revoke(tokens['refresh_token']!)
    expect([status, body]).toEqual([200, {}])
    for (const key of [tokens['access_token']!, rotated.key]) expect((await list(key)).status).toBe(401)
  })

  test('is in the audit log with its client, and so is what the client reads', async () => {
    const { client_id, tokens } = await granted()
    const { body: keys } = await person.call('GET', '/v1/api-keys?limit=1')
    const key = keys.data[0].id as string
    expect((await list(tokens['access_token']!)).status).toBe(200)
    await fetch(`${box.url}/mcp`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${tokens['access_token']}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_messages', arguments: {} } }),
    })
    await fetch(`${box.url}/oauth/revoke`, { method: 'POST', body: new URLSearchParams({ token: tokens['access_token']! }) })
    const rows = async (filter: string): Promise<Record<string, unknown>[]> =>
      (await person.call<{ data: Record<string, unknown>[] }>('GET', `/v1/audit?${filter}`)).body.data.toReversed()
    for (let tries = 0; tries < 60 && (await rows(`actor=${key}`)).length < 2; tries += 1) await sleep(50)
    const [made] = (await rows('action=oauth_grant.created')).filter(({ target }) => target === key)
    expect(made).toMatchObject({ actor: expect.stringMatching(/^person_/), identity_id: ada.id, address: '127.0.0.1' })
    const done = await rows(`actor=${key}`)
    expect(done.map(({ action, client }) => [action, client])).toEqual(
      expect.arrayContaining([
        ['email.listed', made!['client']],
        ['oauth_grant.ended', made!['client']],
      ]),
    )
    // what the client says of itself is not in it
    expect(made!['client']).toMatch(/^oauth_.{22}$/)
    expect(client_id.length).toBeGreaterThan(100)
  })

  test('lasts by refresh tokens, each of which is used once; the second use of one ends it all', async () => {
    const { client_id, tokens } = await granted()
    const first = tokens['refresh_token']!
    const second = await token({ grant_type: 'refresh_token', refresh_token: first, client_id })
    expect(second.status).toBe(200)
    expect((await list(tokens['access_token']!)).status).toBe(401)
    expect((await list(second.body['access_token']!)).status).toBe(200)
    expect(
      (await token({ grant_type: 'refresh_token', refresh_token: second.body['refresh_token']!, client_id: 'https://x.test/y' }))
        .status,
    ).toBe(400)
    expect((await token({ grant_type: 'refresh_token', refresh_token: first, client_id })).body['error']).toBe('invalid_grant')
    expect((await list(second.body['access_token']!)).status).toBe(401)
  })

  test('leaves no key that nobody can use where it cannot be stored', async () => {
    const client_id = await registered()
    const code = await codeFor(query(client_id))
    const keys = async (): Promise<unknown[]> => (await box.call('GET', '/v1/api-keys?limit=200')).body['data']
    const before = await keys()
    const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
    database.exec("CREATE TRIGGER lost BEFORE INSERT ON oauth_grants BEGIN SELECT RAISE(ABORT, 'lost'); END")
    const given = { grant_type: 'authorization_code', code, client_id, redirect_uri: callback, code_verifier: verifier }
    expect((await token(given)).status).toBe(500)
    database.exec('DROP TRIGGER lost')
    database.close()
    expect(await keys()).toEqual(before)
    expect((await granted()).tokens).toMatchObject({ token_type: 'Bearer' })
  })

  test('ends when an earlier refresh token is revoked', async () => {
    const { client_id, tokens } = await granted()
    const { body } = await token({ grant_type: 'refresh_token', refresh_token: tokens['refresh_token']!, client_id })
    await fetch(`${box.url}/oauth/revoke`, { method: 'POST', body: new URLSearchParams({ token: tokens['refresh_token']! }) })
    expect((await list(body['access_token']!)).status).toBe(401)
  })

  test('ends by the second use of any earlier refresh token, and by no other text', async () => {
    const { client_id, tokens } = await granted()
    let newest = tokens
    for (let time = 0; time < 3; time += 1) {
      newest = (await token({ grant_type: 'refresh_token', refresh_token: newest['refresh_token']!, client_id })).body
    }
    const first = tokens['refresh_token']!
    for (const forged of [`${first.slice(0, 20)}.x`, first.replace('pbxr_', 'pbxr_0'), 'pbxr_.', '.']) {
      expect((await token({ grant_type: 'refresh_token', refresh_token: forged, client_id })).status).toBe(400)
    }
    expect((await list(newest['access_token']!)).status).toBe(200)
    expect((await token({ grant_type: 'refresh_token', refresh_token: first, client_id })).body['error']).toBe('invalid_grant')
    expect((await list(newest['access_token']!)).status).toBe(401)
  })
})

describe('tricks', () => {
  test('of the codes of one account the newest twenty are valid, and an id with something behind it is none', async () => {
    const client_id = await registered()
    expect((await browse('GET', `/oauth/authorize?${query(`${client_id}.x`)}`)).status).toBe(400)
    const codes: string[] = []
    for (let count = 0; count < 22; count += 1) {
      const form = new URLSearchParams(query(client_id))
      for (const [name, value] of Object.entries({ decision: 'allow', scopes: 'messages:read', identity: ada.email }))
        form.set(name, value)
      codes.push((await browse('POST', '/oauth/authorize', form)).location!.searchParams.get('code')!)
    }
    const redeemed = async (code: string) =>
      (
        await token({
          grant_type: 'authorization_code',
          code,
          redirect_uri: callback,
          client_id,
          code_verifier: verifier,
          resource,
        })
      ).status
    expect(await redeemed(codes[1]!)).toBe(400)
    expect(await redeemed(codes[2]!)).toBe(200)
    expect(await redeemed(codes[21]!)).toBe(200)
  })

  test('PKCE cannot be left out, nor be plain, nor guessed', async () => {
    const client_id = await registered()
    for (const changes of [
      { code_challenge: undefined },
      { code_challenge_method: undefined },
      { code_challenge_method: 'plain' },
      { code_challenge: 'short' },
    ]) {
      const { location } = await browse('GET', `/oauth/authorize?${query(client_id, changes)}`)
      expect([changes, location?.searchParams.get('error'), location?.searchParams.get('state')]).toEqual([
        changes,
        'invalid_request',
        'a state',
      ])
      const posted = await browse('POST', '/oauth/authorize', filled(query(client_id, changes)))
      expect(posted.location?.searchParams.get('code')).toBeNull()
    }
    const given = { grant_type: 'authorization_code', client_id, redirect_uri: callback }
    for (const code_verifier of ['', challenge, 'x'.repeat(43)]) {
      const code = await codeFor(query(client_id))
      expect((await token({ ...given, code, code_verifier })).status).toBe(400)
      // it is used up
      expect((await token({ ...given, code, code_verifier: verifier })).body['error']).toBe('invalid_grant')
    }
  })

  test('an answer goes to a URI of the client exactly, on this machine at any port', async () => {
    const client_id = await registered(['https://app.test/cb', 'http://127.0.0.1/callback', 'com.example.app:/cb'])
    for (const redirect_uri of ['https://app.test/cb', 'http://127.0.0.1:9999/callback', 'com.example.app:/cb']) {
      expect((await browse('GET', `/oauth/authorize?${query(client_id, { redirect_uri })}`)).status).toBe(200)
    }
    for (const redirect_uri of [
      'https://app.test/cb/',
      'https://app.test/cb?x=1',
      'https://app.test/other',
      'https://app.test:8443/cb',
      'https://app.test.evil.test/cb',
      'https://app.test@evil.test/cb',
      'https://APP.test/cb',
      'http://app.test/cb',
      'http://127.0.0.1:9999/other',
      'http://localhost:9999/callback',
      'http://127.0.0.1.evil.test/callback',
      'javascript:alert(1)',
      'com.example.app:/cb#x',
      '',
    ]) {
      const page = await browse('GET', `/oauth/authorize?${query(client_id, { redirect_uri })}`)
      expect([redirect_uri, page.status, page.location]).toEqual([redirect_uri, 400, undefined])
    }
    for (const uri of [
      'javascript:alert(1)',
      'http://app.test/cb',
      'https://app.test/cb#x',
      'data:text/html,x',
      'https://a@app.test/',
      // a browser, a shell and others that do more than one program's sign-in
      'microsoft-edge:https://evil.test/cb',
      'shell:startup',
      'steam://run/1',
      // names of directives in the policy of the page
      'https://a;sandbox;x.test/',
    ]) {
      const { status, body } = await box.call('POST', '/oauth/register', { redirect_uris: [uri] }, { key: null })
      expect([uri, status, body.error]).toEqual([uri, 400, 'invalid_redirect_uri'])
    }
    const code = await codeFor(query(client_id, { redirect_uri: 'https://app.test/cb' }))
    const elsewhere = { grant_type: 'authorization_code', code, client_id, redirect_uri: callback, code_verifier: verifier }
    expect((await token(elsewhere)).body['error']).toBe('invalid_grant')
  })

  test('the page says the whole URI of a program that is not a web site', async () => {
    const redirect_uri = 'com.example.app:/cb?next=https://other.test/'
    const client_id = await registered([redirect_uri, 'cursor://anysphere.cursor/oauth'])
    const page = await browse('GET', `/oauth/authorize?${query(client_id, { redirect_uri })}`)
    expect(page.text).toContain('com.example.app:/cb?next=https://other.test/')
    const editor = await browse(
      'GET',
      `/oauth/authorize?${query(client_id, { redirect_uri: 'cursor://anysphere.cursor/oauth' })}`,
    )
    expect(editor.status).toBe(200)
  })

  test('a code that comes twice ends what it gave', async () => {
    const client_id = await registered()
    const code = await codeFor(query(client_id))
    const given = { grant_type: 'authorization_code', code, client_id, redirect_uri: callback, code_verifier: verifier }
    const first = await token(given)
    expect((await list(first.body['access_token']!)).status).toBe(200)
    expect((await token(given)).body['error']).toBe('invalid_grant')
    expect((await list(first.body['access_token']!)).status).toBe(401)
  })

  test('of a code or refresh token that comes many times at once each is answered as OAuth says', async () => {
    const client_id = await registered()
    const code = await codeFor(query(client_id))
    const given = { grant_type: 'authorization_code', code, client_id, redirect_uri: callback, code_verifier: verifier }
    const codes = await Promise.all(Array.from({ length: 8 }, () => token(given)))
    const { tokens } = await granted()
    const again = { grant_type: 'refresh_token', refresh_token: tokens['refresh_token']!, client_id }
    const refreshed = await Promise.all(Array.from({ length: 8 }, () => token(again)))
    for (const { status, body } of [...codes, ...refreshed]) {
      expect([status, body['error']]).toEqual(status === 200 ? [200, undefined] : [400, 'invalid_grant'])
    }
  })

  test('tokens are for this resource, and codes for their client', async () => {
    const client_id = await registered()
    const other = await browse('GET', `/oauth/authorize?${query(client_id, { resource: 'https://other.test/mcp' })}`)
    expect(other.location!.searchParams.get('error')).toBe('invalid_target')
    const given = { grant_type: 'authorization_code', client_id, redirect_uri: callback, code_verifier: verifier }
    const code = await codeFor(query(client_id))
    expect((await token({ ...given, code, resource: `${box.url}/v1` })).body['error']).toBe('invalid_target')
    const stolen = await codeFor(query(client_id))
    expect((await token({ ...given, code: stolen, client_id: await registered(['https://evil.test/']) })).body['error']).toBe(
      'invalid_grant',
    )
  })

  test('only a page of the box consents, for a person who is signed in', async () => {
    const client_id = await registered()
    const asked = query(client_id)
    for (const headers of [{ Origin: 'https://evil.test' }, { Origin: 'null' }]) {
      const { status, text } = await browse('POST', '/oauth/authorize', filled(asked), headers)
      expect([status, text]).toEqual([403, expect.stringContaining('csrf')])
    }
    const stranger = await fetch(`${box.url}/oauth/authorize?${asked}`)
    expect(await stranger.text()).toContain('Sign in')
    const key = await fetch(`${box.url}/oauth/authorize`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${box.key}` },
      body: filled(asked),
    })
    expect(((await key.json()) as { error: { code: string } }).error.code).toBe('session_required')
    const denied = await browse('POST', '/oauth/authorize', filled(asked, { decision: 'deny' }))
    expect(denied.location!.searchParams.get('error')).toBe('access_denied')
    expect(denied.location!.searchParams.get('iss')).toBe(box.url)
    for (const changes of [{ identity: '' }, { identity: 'nobody@pillarbox.test' }]) {
      expect((await browse('POST', '/oauth/authorize', filled(asked, changes))).status).toBe(400)
    }
  })

  test('the page runs nothing, is framed by nobody, and shows names as text', async () => {
    const page = await browse('GET', `/oauth/authorize?${query(await registered(), { state: '"><script>' })}`)
    expect(page.text).toContain('Test &#60;b&#62;client')
    expect(page.text).not.toMatch(/<b>client|<script/)
    const policy = page.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('script-src')
    expect(page.headers.get('referrer-policy')).toBe('same-origin')
  })

  test('the page says that whoever reads the identity gets its passwords', async () => {
    const page = await browse('GET', `/oauth/authorize?${query(await registered(), { scope: 'identities:read' })}`)
    expect(page.text).toContain('get codes of your one-time passwords, and your logins with their passwords')
    expect(whatScopesAllow).toContain('one-time passwords and their codes, logins with their passwords')
  })

  test('a metadata document must be https, name itself, and hold no secret; a registered id cannot be made up', async () => {
    const host = await IssuerHost.start(trusted)
    const put = (path: string, body: object): string => {
      const id = `${host.origin}${path}`
      host.pages.set(path, { body: { client_id: id, redirect_uris: [callback], ...body } })
      return id
    }
    const wrong = [
      put('/other.json', { client_id: 'https://elsewhere.test/x' }),
      put('/secret.json', { token_endpoint_auth_method: 'client_secret_basic' }),
      put('/none.json', { redirect_uris: [] }),
      put('/big.json', { more: 'x'.repeat(20_000) }),
      `${host.origin}/missing.json`,
      put('/plain.json', {}).replace('https:', 'http:'),
      host.origin,
      'registered.e30.x',
      `${await registered()}x`,
      'https://10.0.0.1/client.json',
      'nonsense',
    ]
    for (const id of wrong) {
      const page = await browse('GET', `/oauth/authorize?${query(id)}`)
      expect([id, page.status, page.location]).toEqual([id, 400, undefined])
    }
    // a stranger makes the box ask nobody
    const asked = host.asked.length
    await fetch(`${box.url}/oauth/authorize?${query(`${host.origin}/stranger.json`)}`)
    expect(host.asked).toHaveLength(asked)
  })

  test('who has no token is told where to get one', async () => {
    const refused = await list('pbxo_wrong')
    expect(refused.status).toBe(401)
    const challenged = refused.headers.get('www-authenticate')!
    const url = /resource_metadata="([^"]+)"/.exec(challenged)![1]!
    expect(await (await fetch(url)).json()).toMatchObject({ resource, authorization_servers: [box.url] })
  })
})
