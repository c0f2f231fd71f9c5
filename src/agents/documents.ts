import { trimEnd } from '../core/text.ts'
import type { EventLog } from '../events/log.ts'
import { identityDeleted, identityUpdated } from '../identities/model.ts'
import type { TokenSigner } from '../tokens/model.ts'
import { agentCard, boxCard } from './agent-card.ts'
import type { Agents } from './agents.ts'
import { didDocument } from './did-document.ts'
import type { AgentCard, DidDocument, DomainRegistrations, RegistrationFile } from './document-shapes.ts'
import type { Erc8004Links } from './erc8004.ts'
import { agentCreated, agentDeleted, agentDid, agentUpdated, boxDid } from './model.ts'
import { registrationFile, registrationsOf } from './registration.ts'
import { toAgent } from './row.ts'

/** The most registrations in the document of the whole domain. */
const maxRegistrations = 10_000

/** Events that can change which agents are registered where, and active. */
const changing: ReadonlySet<string> = new Set(
  [agentCreated, agentUpdated, agentDeleted, identityUpdated, identityDeleted].map(({ name }) => name),
)

interface Deps {
  events: EventLog
  agents: Agents
  links: Erc8004Links
  signer: Pick<TokenSigner, 'published'>
  publicUrl: () => string
  version: string
}

/** Public documents of the box and its agents; throws Fault not_found for an unknown or deleted agent. */
export class Documents {
  readonly #deps: Deps
  #registrations: Promise<DomainRegistrations> | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    deps.events.subscribe(({ type }) => changing.has(type) && (this.#registrations = undefined))
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
    // a change also drops a read under way, which could be older
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
