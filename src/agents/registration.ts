import type { DomainRegistrations, RegistrationFile } from './document-shapes.ts'
import type { Registered } from './erc8004.ts'
import type { Agent } from './model.ts'

/** The registration file of an agent (ERC-8004, “Agent Registration File”). */
export function registrationFile(agent: Agent, email: string, registered: readonly Registered[]): RegistrationFile {
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

export function registrationsOf(registered: readonly Registered[]): DomainRegistrations['registrations'] {
  return registered.map(({ chain_id, registry, token_id }) => ({
    agentId: Number.isSafeInteger(Number(token_id)) ? Number(token_id) : token_id,
    agentRegistry: `eip155:${chain_id}:${registry}`,
  }))
}

/** The default description of an agent. */
export function describe({ description, display_name }: Agent, email: string): string {
  return description ?? `${display_name} reads mail at ${email}.`
}
