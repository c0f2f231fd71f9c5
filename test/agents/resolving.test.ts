import { createPublicKey, verify } from 'node:crypto'
import { globalAgent } from 'node:https'
import { Resolver } from 'did-resolver'
import { expect, onTestFinished, test } from 'vitest'
import { getResolver } from 'web-did-resolver'
import { appliance, type Appliance } from '../support/appliance.ts'
import { authority, overTls } from '../support/authority.ts'

/** A box over HTTPS, and a resolver that believes its certificate because it knows the authority. */
async function scene(): Promise<{ box: Appliance; secure: string; resolver: Resolver }> {
  const trusted = await authority()
  const box = await appliance(overTls(trusted))
  const secure = box.app.publicUrl
  box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
  const before = globalAgent.options.ca
  globalAgent.options.ca = trusted.ca
  onTestFinished(() => {
    globalAgent.options.ca = before
    globalAgent.destroy()
  })
  return { box, secure, resolver: new Resolver(getResolver()) }
}

test('an independent resolver finds an agent by its DID over HTTPS, until it is deleted', async () => {
  const { box, secure, resolver } = await scene()
  expect(secure).toMatch(/^https:/)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: ada.id })
  expect(agent.did).toBe(`did:web:127.0.0.1%3A${new URL(secure).port}:v1:agents:${agent.id}`)
  const found = await resolver.resolve(agent.did)
  expect(found.didResolutionMetadata).toEqual({ contentType: 'application/did+ld+json' })
  const { didDocument } = found
  expect(didDocument?.id).toBe(agent.did)
  expect(didDocument?.service).toContainEqual({
    id: `${agent.did}#mail`,
    type: 'EmailService',
    serviceEndpoint: `mailto:${ada.email}`,
  })
  // every method is of the agent, and what it asserts by is listed
  const ids = didDocument!.verificationMethod!.map(({ id, controller }) => {
    expect(controller).toBe(agent.did)
    return id
  })
  expect(ids.length).toBeGreaterThan(0)
  expect(didDocument!.assertionMethod).toEqual(ids)

  await box.call('DELETE', `/v1/agents/${agent.id}`)
  expect((await resolver.resolve(agent.did)).didResolutionMetadata.error).toBe('notFound')
})

test('and the box by its own', async () => {
  const { secure, resolver } = await scene()
  const did = `did:web:127.0.0.1%3A${new URL(secure).port}`
  const { didDocument, didResolutionMetadata } = await resolver.resolve(did)
  expect([didDocument?.id, didResolutionMetadata.error]).toEqual([did, undefined])
})

test('a token verifies by the key its kid names in what its subject resolves to, which vouches no more once suspended', async () => {
  const { box, resolver } = await scene()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: ada.id })
  const { body: issued } = await box.call('POST', `/v1/identities/${ada.id}/token`, { audience: 'https://shop.example' })
  const [header, payload, signature] = String(issued['token']).split('.') as [string, string, string]
  const { kid } = decoded(header) as { kid: string }
  const { sub } = decoded(payload) as { sub: string }
  expect(sub).toBe(agent.did)

  const { didDocument } = await resolver.resolve(sub)
  expect(didDocument!.assertionMethod).toContain(`${sub}#${kid}`)
  const method = didDocument!.verificationMethod!.find(({ id }) => id === `${sub}#${kid}`)!
  const key = createPublicKey({ key: method.publicKeyJwk as never, format: 'jwk' })
  expect(verify(null, Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'))).toBe(true)

  await box.call('PATCH', `/v1/identities/${ada.id}`, { status: 'suspended' })
  const later = await resolver.resolve(sub)
  expect(later.didDocument!.assertionMethod).toEqual([])
})

function decoded(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>
}
