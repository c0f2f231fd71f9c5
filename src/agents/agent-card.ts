import type { AgentCard } from './document-shapes.ts'
import type { Agent } from './model.ts'
import { describe } from './registration.ts'

/** The box in cards. */
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
export function agentCard(agent: Agent, email: string, box: Box): AgentCard {
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
export function boxCard(box: Box): AgentCard {
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
