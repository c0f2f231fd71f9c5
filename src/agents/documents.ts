import type { Basis } from '../basis.ts'
import { trimEnd } from '../core/text.ts'
import { identityDeleted, identityUpdated } from '../identities/model.ts'
import type { PublishedKey, TokenSigner } from '../tokens/model.ts'
import type { Agents } from './agents.ts'
import type { AgentCard, DidDocument, DomainRegistrations, RegistrationFile } from './document-shapes.ts'
import type { Erc8004Links, Registered } from './erc8004.ts'
import { type Agent, agentCreated, agentDeleted, agentDid, agentUpdated, boxDid } from './model.ts'
import { toAgent } from './row.ts'

const maxRegistrations = 10_000

/** Events that can change which agents are registered where, and active. */
const changing: ReadonlySet<string> = new Set(
  [agentCreated, agentUpdated, agentDeleted, identityUpdated, identityDeleted].map(({ name }) => name),
)

interface Deps extends Pick<Basis, 'events' | 'publicUrl' | 'version'> {
  agents: Agents
  links: Erc8004Links
  signer: Pick<TokenSigner, 'published'>
}

/** Public documents of the box and its agents; throws Fault not_found for an unknown or deleted agent. */
export class Documents {
  readonly #deps: Deps
  #registrations: Promise<DomainRegistrations> | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    deps.events.invalidatedBy(({ type }) => changing.has(type) && (this.#registrations = undefined))
  }

  async did(agentId: string): Promise<DidDocument> {
    const { agents, signer } = this.#deps
    const { handle, email, identity_status } = await agents.published(agentId)
    const at = `${this.#url}/v1/agents/${agentId}`
    const subject = {
      did: agentDid(this.#url, agentId),
      alsoKnownAs: [`acct:${handle}@${new URL(this.#url).hostname}`, `mailto:${email}`],
      services: [
        { name: 'mail', type: 'EmailService', endpoint: `mailto:${email}` },
        { name: 'api', type: 'PillarboxApi', endpoint: `${this.#url}/v1` },
        { name: 'agent-card', type: 'AgentCard', endpoint: `${at}/agent-card.json` },
        { name: 'registration', type: 'Erc8004Registration', endpoint: `${at}/registration.json` },
      ],
      trusted: identity_status === 'active',
    }
    return didDocument(subject, await signer.published())
  }

  async boxDid(): Promise<DidDocument> {
    const subject = {
      did: boxDid(this.#url),
      alsoKnownAs: [new URL(this.#url).origin],
      services: [
        { name: 'api', type: 'PillarboxApi', endpoint: `${this.#url}/v1` },
        { name: 'agent-card', type: 'AgentCard', endpoint: `${this.#url}/.well-known/agent-card.json` },
      ],
      trusted: true,
    }
    return didDocument(subject, await this.#deps.signer.published())
  }

  async registration(agentId: string): Promise<RegistrationFile> {
    const { agents, links } = this.#deps
    const row = await agents.published(agentId)
    return registrationFile(toAgent(row, this.#url), row.email, await links.of(agentId))
  }

  /** Cached until something changes: it may be long, and is public. */
  async registrations(): Promise<DomainRegistrations> {
    // a change also drops a read in progress, which could be older
    const reading = (this.#registrations ??= this.#allRegistrations())
    reading.catch(() => this.#registrations === reading && (this.#registrations = undefined))
    return reading
  }

  async card(agentId: string): Promise<AgentCard> {
    const row = await this.#deps.agents.published(agentId)
    return agentCard(toAgent(row, this.#url), row.email, this.#box)
  }

  boxCard(): AgentCard {
    return boxCard(this.#box)
  }

  async #allRegistrations(): Promise<DomainRegistrations> {
    return { registrations: registrationsOf(await this.#deps.links.all(maxRegistrations)) }
  }

  get #box(): { publicUrl: string; version: string } {
    return { publicUrl: this.#url, version: this.#deps.version }
  }

  get #url(): string {
    return trimEnd(this.#deps.publicUrl(), '/')
  }
}

/** The subject of a DID document, without its keys. */
interface Subject {
  did: string
  alsoKnownAs: string[]
  services: { name: string; type: string; endpoint: string }[]
  /** True if signatures in this name are to be trusted. */
  trusted: boolean
}

const context = [
  'https://www.w3.org/ns/did/v1',
  'https://w3id.org/security/suites/jws-2020/v1',
  'https://w3id.org/security/multikey/v1',
]

/**
 * The DID document of the box or of one of its agents. It lists each key of the box twice, as JsonWebKey2020 named by its `kid` and as
 * Multikey. An untrusted subject gets no assertion method, so that its tokens fail elsewhere too.
 */
function didDocument({ did, alsoKnownAs, services, trusted }: Subject, keys: readonly PublishedKey[]): DidDocument {
  const verificationMethod = keys.flatMap((key) => methods(did, key))
  const believed = trusted ? verificationMethod.map(({ id }) => id) : []
  return {
    '@context': context,
    id: did,
    alsoKnownAs,
    verificationMethod,
    authentication: believed,
    assertionMethod: believed,
    service: services.map(({ name, type, endpoint }) => ({ id: `${did}#${name}`, type, serviceEndpoint: endpoint })),
  }
}

function methods(did: string, { kid, jwk, multibase }: PublishedKey): DidDocument['verificationMethod'] {
  const { kty, crv, x, alg } = jwk
  return [
    { id: `${did}#${kid}`, type: 'JsonWebKey2020', controller: did, publicKeyJwk: { kty, crv, x, kid, alg } },
    { id: `${did}#${multibase}`, type: 'Multikey', controller: did, publicKeyMultibase: multibase },
  ]
}

interface Box {
  publicUrl: string
  version: string
}

const text = ['text/plain', 'text/html']
const unable = { streaming: false, pushNotifications: false, extendedAgentCard: false }

/**
 * The card of an agent (A2A 1.0, 4.4.1). The box implements none of the bindings of A2A and claims none: the one interface is mail, under a
 * binding named by its own standard.
 */
function agentCard(agent: Agent, email: string, box: Box): AgentCard {
  return {
    name: agent.display_name,
    description: describe(agent, email),
    version: agent.updated_at,
    supportedInterfaces: [
      { url: `mailto:${email}`, protocolBinding: 'https://www.rfc-editor.org/rfc/rfc5321', protocolVersion: '1.0' },
    ],
    provider: provider(box),
    ...(agent.avatar_url === null ? {} : { iconUrl: agent.avatar_url }),
    capabilities: unable,
    defaultInputModes: text,
    defaultOutputModes: text,
    skills: agent.capabilities.map((name) => ({ id: name, name, description: name, tags: [name] })),
  }
}

/** The card of the box itself: its API, for holders of a key. */
function boxCard(box: Box): AgentCard {
  const { publicUrl, version } = box
  return {
    name: `Pillarbox at ${new URL(publicUrl).host}`,
    description:
      'Gives software agents their own identities: mail, text messages, one-time passwords, cards and public profiles.',
    version,
    supportedInterfaces: [{ url: `${publicUrl}/v1`, protocolBinding: `${publicUrl}/v1/openapi.json`, protocolVersion: '1.0' }],
    provider: provider(box),
    documentationUrl: `${publicUrl}/docs`,
    capabilities: unable,
    securitySchemes: {
      key: { httpAuthSecurityScheme: { scheme: 'Bearer', description: 'An API key of this box.' } },
    },
    securityRequirements: [{ schemes: { key: { list: [] } } }],
    defaultInputModes: ['application/json'],
    defaultOutputModes: ['application/json'],
    skills: [
      {
        id: 'identities',
        name: 'Identities',
        description: 'Creates identities with addresses that receive and send mail, and agents with public profiles.',
        tags: ['identity', 'email', 'sms', 'did'],
      },
    ],
  }
}

function provider({ publicUrl }: Box): AgentCard['provider'] {
  return { organization: new URL(publicUrl).host, url: publicUrl }
}

function registrationFile(agent: Agent, email: string, registered: readonly Registered[]): RegistrationFile {
  const registrations = registrationsOf(registered)
  return {
    type: 'https://eips.ethereum.org/EIPS/eip-8004#registration-v1',
    name: agent.display_name,
    description: describe(agent, email),
    image: agent.avatar_url ?? '',
    services: [
      { name: 'DID', endpoint: agent.did, version: 'v1' },
      { name: 'email', endpoint: email },
      ...agent.links.map(({ name, url }) => ({ name, endpoint: url })),
    ],
    x402Support: false,
    active: agent.status === 'active',
    registrations,
    // trust is claimed only where a registry could hold it
    supportedTrust: registrations.length === 0 ? [] : ['reputation'],
  }
}

function registrationsOf(registered: readonly Registered[]): DomainRegistrations['registrations'] {
  return registered.map(({ chain_id, registry, token_id }) => ({
    agentId: Number.isSafeInteger(Number(token_id)) ? Number(token_id) : token_id,
    agentRegistry: `eip155:${chain_id}:${registry}`,
  }))
}

function describe({ description, display_name }: Agent, email: string): string {
  return description ?? `${display_name} reads mail at ${email}.`
}
