import type { Basis } from '../basis.ts'
import { scopes } from '../core/scopes.ts'
import type { ProtocolEndpoint } from '../http/protocol.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Module } from '../module.ts'
import { ToolCalls } from './calls.ts'
import { ToolServer } from './server.ts'
import { accountTools } from './tools/account.ts'
import { attachmentTool } from './tools/attachment.ts'
import { identityTools } from './tools/identity.ts'
import { readingTools } from './tools/reading.ts'
import { sendingTools } from './tools/sending.ts'

interface Deps extends Pick<Basis, 'log' | 'version' | 'publicUrl'> {
  routes: () => readonly AnyRoute[]
}

const path = '/mcp'

/** The API as tools, by the Model Context Protocol at `POST /mcp`. */
export function mcpModule(deps: Deps): Module {
  const [whoami, ...secrets] = identityTools
  const tools = [whoami!, ...readingTools, attachmentTool, ...sendingTools, ...secrets, ...accountTools]
  const server = new ToolServer({ ...deps, calls: new ToolCalls({ ...deps, tools }) })
  const post: ProtocolEndpoint = {
    method: 'POST',
    path,
    // any key: it sees the tools that its scopes allow
    scope: [...scopes],
    limit: 40 * 1024 * 1024,
    ownPages: true,
    answer: (exchange) => server.answer(exchange),
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
  return { name: 'mcp', endpoints: [post, none('GET'), none('DELETE')], stop: () => server.close() }
}
