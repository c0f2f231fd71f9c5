import type { Keys } from '../accounts/keys.ts'
import type { Config } from '../config.ts'
import { type Caller, scopes } from '../core/scopes.ts'
import { trimEnd } from '../core/text.ts'
import type { ProtocolEndpoint } from '../http/protocol.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Identities } from '../identities/identities.ts'
import type { Module, ModuleBasis } from '../module.ts'
import { Outside, type OutsideDial, type OutsideSettings } from '../net/outside.ts'
import { resolver } from '../net/resolve.ts'
import { ToolCalls } from './calls.ts'
import { Authorization } from './oauth/authorization.ts'
import { Clients } from './oauth/clients.ts'
import { OwnCodes } from './oauth/codes.ts'
import { metadataPath, metadataRoutes, oauthEndpoints } from './oauth/endpoints.ts'
import { Grants } from './oauth/grants.ts'
import { usual } from './oauth/model.ts'
import { sealedCodes, SharedCodes } from './oauth/shared-codes.ts'
import type { ToolServer } from './server.ts'
import { accountTools } from './tools/account.ts'
import { attachmentTool } from './tools/attachment.ts'
import { identityTools } from './tools/identity.ts'
import { readingTools } from './tools/reading.ts'
import { sendingTools } from './tools/sending.ts'

interface Deps extends ModuleBasis {
  routes: () => readonly AnyRoute[]
  identities: Identities
  keys: Keys
  /** True if the credential that admitted a caller is still valid. */
  admitted: (caller: Caller) => Promise<boolean>
  outsideDial?: OutsideDial | undefined
}

const path = '/mcp'

/** The API as tools, by the Model Context Protocol at `POST /mcp`, for keys and for what people grant by OAuth. */
export function mcpModule(deps: Deps): Module {
  const [whoami, ...secrets] = identityTools
  const tools = [whoami!, ...readingTools, attachmentTool, ...sendingTools, ...secrets, ...accountTools]
  const calls = new ToolCalls({ ...deps, tools })
  // loaded with the first request
  let loading: Promise<ToolServer> | undefined
  const load = async (): Promise<ToolServer> => new (await import('./server.ts')).ToolServer({ ...deps, calls })
  const issuer = (): string => trimEnd(deps.publicUrl(), '/')
  const outside = new Outside(outsideSettings(deps.config), deps.outsideDial)
  const clients = new Clients({ ...deps, outside, key: deps.seal.key('oauth clients') })
  const grants = new Grants(deps)
  const codes = deps.database.several ? new SharedCodes(deps) : new OwnCodes()
  const authorization = new Authorization({ ...deps, clients, codes, grants, resource: () => `${issuer()}/mcp` })
  const parts = { ...deps, authorization, clients, grants, issuer }
  const post: ProtocolEndpoint = {
    method: 'POST',
    path,
    // any key: it sees the tools that its scopes allow
    scope: [...scopes],
    limit: 40 * 1024 * 1024,
    client: 'mcp',
    ownPages: true,
    tokens: (token) => grants.authenticate(token),
    challenge: () => `Bearer realm="pillarbox", resource_metadata="${issuer()}${metadataPath}", scope="${usual.join(' ')}"`,
    answer: async (exchange) => (await (loading ??= load())).answer(exchange),
  }
  const none = (method: 'GET' | 'DELETE'): ProtocolEndpoint => ({
    method,
    path,
    scope: 'public',
    rate: 'document',
    // there are no sessions: nothing to listen to, nothing to end
    answer: async () => ({
      status: 405,
      type: 'text/plain; charset=utf-8',
      body: 'Send requests with POST.\n',
      headers: { Allow: 'POST' },
    }),
  })
  return {
    name: 'mcp',
    sealed: [sealedCodes],
    routes: metadataRoutes(parts),
    endpoints: [post, none('GET'), none('DELETE'), ...oauthEndpoints(parts)],
    reload: (config) => outside.reload(outsideSettings(config)),
    stop: async () => {
      await (await loading)?.close()
      await outside.close()
    },
  }
}

function outsideSettings({ fetch, dns }: Config): OutsideSettings {
  return { ...fetch, allow_http: false, resolve: resolver(dns) }
}
