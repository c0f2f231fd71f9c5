import { expect, test } from 'vitest'
import { type Answer, appliance, type Appliance } from '../support/appliance.ts'

interface Published {
  box: Appliance
  ada: { id: string; email: string }
  agent: { id: string; did: string; updated_at: string }
  read: (name: string) => Promise<Answer<Any>>
}

type Any = ReturnType<typeof JSON.parse>

async function published(env: Record<string, string> = {}): Promise<Published> {
  const box = await appliance(env)
  const { body: ada } = await box.call<Any>('POST', '/v1/identities', { name: 'Ada' })
  const input = {
    identity_id: ada.id,
    description: 'Books tables.',
    avatar_url: 'https://ada.example/face.png',
    capabilities: ['Book tables', 'Réserver', '予約'],
    links: [{ name: 'web', url: 'https://ada.example' }],
    metadata: { secret_plan: 'not for strangers' },
  }
  const { body: agent } = await box.call<Any>('POST', '/v1/agents', input)
  const read = (name: string): Promise<Answer<Any>> => box.call('GET', `/v1/agents/${agent.id}/${name}`, undefined, { key: null })
  return { box, ada, agent, read }
}

const ofAgents = ['did.json', 'registration.json', 'agent-card.json']
const ofBox = ['did.json', 'jwks.json', 'agent-registration.json', 'agent-card.json']

test('the DID document lists every published key twice, and what reaches the agent', async () => {
  const { box, ada, agent, read } = await published()
  const { body: jwks } = await box.call<Any>('GET', '/.well-known/jwks.json', undefined, { key: null })
  const { body: document } = await read('did.json')
  const { did } = agent
  expect(jwks.keys.length).toBeGreaterThan(0)
  const methods = jwks.keys.flatMap(({ kty, crv, x, kid, alg }: Any) => [
    { id: `${did}#${kid}`, type: 'JsonWebKey2020', controller: did, publicKeyJwk: { kty, crv, x, kid, alg } },
    {
      id: expect.stringMatching(/#z6Mk/) as string,
      type: 'Multikey',
      controller: did,
      publicKeyMultibase: expect.stringMatching(/^z6Mk[1-9A-HJ-NP-Za-km-z]{44}$/) as string,
    },
  ])
  const url = new URL(box.url)
  expect(document).toEqual({
    '@context': [
      'https://www.w3.org/ns/did/v1',
      'https://w3id.org/security/suites/jws-2020/v1',
      'https://w3id.org/security/multikey/v1',
    ],
    id: did,
    alsoKnownAs: [`acct:ada@${url.hostname}`, `mailto:${ada.email}`],
    verificationMethod: methods,
    authentication: document.verificationMethod.map(({ id }: Any) => id),
    assertionMethod: document.verificationMethod.map(({ id }: Any) => id),
    service: [
      { id: `${did}#mail`, type: 'EmailService', serviceEndpoint: `mailto:${ada.email}` },
      { id: `${did}#api`, type: 'PillarboxApi', serviceEndpoint: `${box.url}/v1` },
      { id: `${did}#agent-card`, type: 'AgentCard', serviceEndpoint: `${box.url}/v1/agents/${agent.id}/agent-card.json` },
      {
        id: `${did}#registration`,
        type: 'Erc8004Registration',
        serviceEndpoint: `${box.url}/v1/agents/${agent.id}/registration.json`,
      },
    ],
  })
  expect(document.assertionMethod).toContain(`${did}#${jwks.keys[0].kid}`)
  // both spellings are of one key
  for (const { id, publicKeyMultibase } of document.verificationMethod) {
    if (publicKeyMultibase !== undefined) expect(id).toBe(`${did}#${publicKeyMultibase}`)
  }
  const { body: whole } = await box.call<Any>('GET', '/.well-known/did.json', undefined, { key: null })
  expect(whole.id).toBe(`did:web:127.0.0.1%3A${url.port}`)
  expect(whole.verificationMethod.map(({ publicKeyJwk }: Any) => publicKeyJwk)).toEqual(
    document.verificationMethod.map(({ publicKeyJwk }: Any) => publicKeyJwk),
  )
})

test('a suspended agent asserts nothing any more, and is active again with its identity', async () => {
  const { box, ada, read } = await published()
  const before = await read('did.json')
  await box.call('PATCH', `/v1/identities/${ada.id}`, { status: 'suspended' })
  const during = await read('did.json')
  expect(during.body).toEqual({ ...before.body, authentication: [], assertionMethod: [] })
  expect((await read('registration.json')).body.active).toBe(false)
  await box.call('PATCH', `/v1/identities/${ada.id}`, { status: 'active' })
  expect((await read('did.json')).body).toEqual(before.body)
})

test('the registration file has the shape of ERC-8004, and the domain vouches for active agents’ registrations', async () => {
  const { box, ada, agent, read } = await published()
  const file = {
    type: 'https://eips.ethereum.org/EIPS/eip-8004#registration-v1',
    name: 'Ada',
    description: 'Books tables.',
    image: 'https://ada.example/face.png',
    services: [
      { name: 'DID', endpoint: agent.did, version: 'v1' },
      { name: 'email', endpoint: ada.email },
      { name: 'web', endpoint: 'https://ada.example' },
    ],
    x402Support: false,
    active: true,
    registrations: [] as unknown[],
    supportedTrust: [] as string[],
  }
  const domain = (): Promise<Answer<Any>> => box.call('GET', '/.well-known/agent-registration.json', undefined, { key: null })
  expect((await read('registration.json')).body).toEqual(file)
  expect((await domain()).body).toEqual({ registrations: [] })
  const registry = '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432'
  const huge = (2n ** 256n - 1n).toString()
  for (const input of [
    { chain_id: 1, registry, token_id: '22' },
    { chain_id: 'eip155:8453', registry: registry.toLowerCase(), token_id: huge },
  ]) {
    expect((await box.call('POST', `/v1/agents/${agent.id}/erc8004`, input)).status).toBe(201)
  }
  const registrations = [
    { agentId: 22, agentRegistry: `eip155:1:${registry}` },
    { agentId: huge, agentRegistry: `eip155:8453:${registry}` },
  ]
  expect((await read('registration.json')).body).toEqual({ ...file, registrations, supportedTrust: ['reputation'] })
  expect((await domain()).body).toEqual({ registrations })
  await box.call('PATCH', `/v1/identities/${ada.id}`, { status: 'suspended' })
  expect((await domain()).body).toEqual({ registrations: [] })
})

test('cards say who is there and how they are reached, and claim no binding that is not served', async () => {
  const { box, ada, agent, read } = await published()
  const provider = { organization: new URL(box.url).host, url: box.url }
  expect((await read('agent-card.json')).body).toEqual({
    name: 'Ada',
    description: 'Books tables.',
    version: agent.updated_at,
    supportedInterfaces: [
      { url: `mailto:${ada.email}`, protocolBinding: 'https://www.rfc-editor.org/rfc/rfc5321', protocolVersion: '1.0' },
    ],
    provider,
    iconUrl: 'https://ada.example/face.png',
    capabilities: { streaming: false, pushNotifications: false, extendedAgentCard: false },
    defaultInputModes: ['text/plain', 'text/html'],
    defaultOutputModes: ['text/plain', 'text/html'],
    skills: [
      { id: 'Book tables', name: 'Book tables', description: 'Book tables', tags: ['Book tables'] },
      { id: 'Réserver', name: 'Réserver', description: 'Réserver', tags: ['Réserver'] },
      { id: '予約', name: '予約', description: '予約', tags: ['予約'] },
    ],
  })
  const { body: card } = await box.call<Any>('GET', '/.well-known/agent-card.json', undefined, { key: null })
  for (const field of ['name', 'description', 'version', 'supportedInterfaces', 'capabilities', 'defaultInputModes', 'skills']) {
    expect(card).toHaveProperty(field)
  }
  expect([card.provider, card.supportedInterfaces[0].url]).toEqual([provider, `${box.url}/v1`])
  expect((await fetch(card.documentationUrl as string)).status).toBe(200)
})

test('what is not public is in no document', async () => {
  const { box, ada, read } = await published()
  for (const name of ofAgents) {
    const text = JSON.stringify((await read(name)).body)
    for (const hidden of ['secret_plan', 'not for strangers', ada.id, 'account']) expect(text).not.toContain(hidden)
  }
  for (const name of ofBox) {
    const { body } = await box.call<Any>('GET', `/.well-known/${name}`, undefined, { key: null })
    expect(JSON.stringify(body)).not.toContain(ada.id)
  }
})

test('documents are read from any page, kept for five minutes, and asked after by their tag', async () => {
  const { box, agent } = await published({ PILLARBOX_HTTP__CORS_ORIGINS: 'https://app.example' })
  const paths = [...ofAgents.map((name) => `/v1/agents/${agent.id}/${name}`), ...ofBox.map((name) => `/.well-known/${name}`)]
  for (const path of paths) {
    for (const Origin of ['https://stranger.example', 'https://app.example']) {
      const { status, headers } = await box.call('GET', path, undefined, { key: null, headers: { Origin } })
      expect([path, status]).toEqual([path, 200])
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('access-control-allow-credentials')).toBeNull()
      expect(headers.get('vary')).toBeNull()
      expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin')
      expect(headers.get('cache-control')).toBe('public, max-age=300')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('content-type')).toMatch(/^application\/json/)
    }
    const first = await fetch(`${box.url}${path}`)
    const tag = first.headers.get('etag')!
    expect(tag).toMatch(/^"[\w-]+"$/)
    for (const known of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
      for (const method of ['GET', 'HEAD']) {
        const again = await fetch(`${box.url}${path}`, { method, headers: { 'If-None-Match': known } })
        expect([known, again.status, await again.text()]).toEqual([known, 304, ''])
        expect(again.headers.get('etag')).toBe(tag)
        expect(again.headers.get('cache-control')).toBe('public, max-age=300')
        expect(again.headers.get('access-control-allow-origin')).toBe('*')
      }
    }
    const other = await fetch(`${box.url}${path}`, { headers: { 'If-None-Match': '"other"' } })
    expect([other.status, other.headers.get('etag')]).toEqual([200, tag])
  }
  const tagOf = async (): Promise<string | null> => (await fetch(`${box.url}${paths[2]}`)).headers.get('etag')
  const before = await tagOf()
  await box.call('PATCH', `/v1/agents/${agent.id}`, { description: 'Books taxis.' })
  expect(await tagOf()).not.toBe(before)
})

test('what is not, or no more, is 404 in every document, for any page to read', async () => {
  const { box, agent, ada } = await published()
  await box.call('DELETE', `/v1/identities/${ada.id}`)
  for (const id of [agent.id, 'agent_01jd3v8m2ef1pbx9mz5k7q4w6a']) {
    for (const name of ofAgents) {
      const { status, headers, body } = await box.call('GET', `/v1/agents/${id}/${name}`, undefined, { key: null })
      expect([status, body.error]).toMatchObject([404, { type: 'not_found' }])
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('cache-control')).toContain('no-store')
    }
  }
})

test('documents have a rate of their own', async () => {
  const { box, agent } = await published({ PILLARBOX_HTTP__DOCUMENT_RATE_LIMIT: '3' })
  const statuses: number[] = []
  for (let turn = 0; turn < 4; turn += 1) statuses.push((await fetch(`${box.url}/v1/agents/${agent.id}/did.json`)).status)
  expect(statuses).toEqual([200, 200, 200, 429])
  expect((await box.call('GET', `/v1/agents/${agent.id}`)).status).toBe(200)
})

test('each Multikey is the same key as the JsonWebKey2020 beside it', async () => {
  const box = await appliance()
  const { body } = await box.call<Any>('GET', '/.well-known/did.json', undefined, { key: null })
  const multikeys = body.verificationMethod.filter(({ type }: Any) => type === 'Multikey')
  const webKeys = body.verificationMethod.filter(({ type }: Any) => type === 'JsonWebKey2020')
  expect(multikeys.length).toBeGreaterThan(0)
  expect(multikeys.map(({ publicKeyMultibase }: Any) => octetsOf(publicKeyMultibase as string))).toEqual(
    webKeys.map(({ publicKeyJwk }: Any) => `ed01${Buffer.from(publicKeyJwk.x as string, 'base64url').toString('hex')}`),
  )
})

/** Base58btc (multibase `z`), as hexadecimal. */
function octetsOf(multibase: string): string {
  const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
  const number = Array.from(multibase.slice(1)).reduce((sum, letter) => sum * 58n + BigInt(alphabet.indexOf(letter)), 0n)
  return number.toString(16)
}
