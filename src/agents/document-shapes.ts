import * as z from 'zod'

const Did = z.string().meta({ example: 'did:web:box.example:v1:agents:agent_01jd3v8m2ef1pbx9mz5k7q4w6a' })

const VerificationMethod = z.union([
  z.object({
    id: z.string(),
    type: z.literal('JsonWebKey2020'),
    controller: z.string(),
    publicKeyJwk: z.object({ kty: z.string(), crv: z.string(), x: z.string(), kid: z.string(), alg: z.string() }),
  }),
  z.object({ id: z.string(), type: z.literal('Multikey'), controller: z.string(), publicKeyMultibase: z.string() }),
])

/** A DID document (DID Core 1.0) in the form that is both JSON and JSON-LD. */
export const DidDocument = z
  .object({
    '@context': z.array(z.string()),
    id: Did,
    alsoKnownAs: z.array(z.string()),
    verificationMethod: z.array(VerificationMethod),
    authentication: z.array(z.string()),
    assertionMethod: z.array(z.string()).meta({ description: 'empty while the agent is suspended' }),
    service: z.array(z.object({ id: z.string(), type: z.string(), serviceEndpoint: z.string() })),
  })
  .meta({ id: 'DidDocument' })
export type DidDocument = z.output<typeof DidDocument>

const Registration = z.object({
  agentId: z.union([z.int(), z.string()]).meta({ description: 'a string if it exceeds 2^53' }),
  agentRegistry: z.string().meta({ description: 'eip155:<chain>:<address>' }),
})

/** The registration file of ERC-8004. */
export const RegistrationFile = z
  .object({
    type: z.literal('https://eips.ethereum.org/EIPS/eip-8004#registration-v1'),
    name: z.string(),
    description: z.string(),
    image: z.string(),
    services: z.array(z.object({ name: z.string(), endpoint: z.string(), version: z.string().optional() })),
    x402Support: z.boolean(),
    active: z.boolean(),
    registrations: z.array(Registration),
    supportedTrust: z.array(z.string()),
  })
  .meta({ id: 'RegistrationFile' })
export type RegistrationFile = z.output<typeof RegistrationFile>

/** The proof at a domain that registrations are about it (ERC-8004, endpoint domain verification). */
export const DomainRegistrations = z.object({ registrations: z.array(Registration) }).meta({ id: 'DomainRegistrations' })
export type DomainRegistrations = z.output<typeof DomainRegistrations>

/** An agent card (A2A 1.0). */
export const AgentCard = z
  .object({
    name: z.string(),
    description: z.string(),
    version: z.string(),
    supportedInterfaces: z.array(z.object({ url: z.string(), protocolBinding: z.string(), protocolVersion: z.string() })),
    provider: z.object({ organization: z.string(), url: z.string() }),
    documentationUrl: z.string().optional(),
    iconUrl: z.string().optional(),
    capabilities: z.object({ streaming: z.boolean(), pushNotifications: z.boolean(), extendedAgentCard: z.boolean() }),
    securitySchemes: z
      .record(z.string(), z.object({ httpAuthSecurityScheme: z.object({ scheme: z.string(), description: z.string() }) }))
      .optional(),
    securityRequirements: z
      .array(z.object({ schemes: z.record(z.string(), z.object({ list: z.array(z.string()) })) }))
      .optional(),
    defaultInputModes: z.array(z.string()),
    defaultOutputModes: z.array(z.string()),
    skills: z.array(z.object({ id: z.string(), name: z.string(), description: z.string(), tags: z.array(z.string()) })),
  })
  .meta({ id: 'AgentCard' })
export type AgentCard = z.output<typeof AgentCard>
