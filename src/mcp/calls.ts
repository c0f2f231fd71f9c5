import { Fault, invalid } from '../core/fault.ts'
import type { Log } from '../core/log.ts'
import type { Page } from '../core/shapes.ts'
import { textLength } from '../core/json.ts'
import { displayLine, nearest } from '../core/text.ts'
import { textOf } from '../http/answer/answer.ts'
import { problemOf } from '../http/problem.ts'
import type { Exchange, GivenCall } from '../http/protocol.ts'
import { type Answer, type AnyRoute, maxBodyBytes } from '../http/route.ts'
import { validate } from '../http/validation.ts'
import type { ReducedIdentity } from '../identities/model.ts'
import { withoutMarks } from './fence.ts'
import type { Tool, ToolAnswer, ToolContext } from './tool.ts'

/** An answer, or a sentence about what went wrong. */
export type Called = ToolAnswer & { isError?: true }

interface Deps {
  tools: Tool[]
  /** All routes of the API. */
  routes: () => readonly AnyRoute[]
  log: Log
}

/** The request that a tool is called by, and the names to which its client has narrowed the tools. */
export interface ToolRequest {
  exchange: Exchange
  only: ReadonlySet<string> | undefined
}

/** Calls tools for the callers of the API, as what they may. */
export class ToolCalls {
  readonly #deps: Deps
  #routes: Map<string, AnyRoute> | undefined

  constructor(deps: Deps) {
    this.#deps = deps
  }

  get names(): string[] {
    return this.#deps.tools.map(({ name }) => name)
  }

  /** The tools that this caller may call. */
  listed(request: ToolRequest): Tool[] {
    return this.#deps.tools.filter((tool) => this.#missing(tool, request) === undefined)
  }

  /** Calls a tool. What goes wrong is answered, never thrown: a model reads answers, and its client shows it no other error. */
  async call(request: ToolRequest, name: string, given: unknown): Promise<Called> {
    const { exchange } = request
    const tool = this.#deps.tools.find((one) => one.name === name)
    const logged = { tool: tool?.name ?? 'unknown', identity_id: exchange.caller.identity_id, outcome: 'cut' }
    exchange.addToLog(logged)
    try {
      if (!tool) throw this.#unknown(request, name)
      const missing = this.#missing(tool, request)
      if (missing) throw missing
      this.#requireSize(tool, given)
      const { identity: named, ...input } = validated(tool, exchange, given)
      const identity = tool.account ? null : (exchange.caller.identity_id ?? (await this.#identity(exchange, named)))
      logged.identity_id = identity
      const answer = await tool.run(this.#context(exchange, identity ?? ''), input as never)
      if (!exchange.signal.aborted) logged.outcome = 'ok'
      return answer
    } catch (error) {
      const problem = problemOf(error)
      const code = problem.code ?? problem.type
      // what a call met because its client had gone is not its outcome
      const cut = exchange.signal.aborted && !(error instanceof Fault)
      if (!cut) logged.outcome = code
      if (!cut && !(error instanceof Fault)) {
        this.#deps.log.error(
          { request_id: exchange.requestId, tool: name.slice(0, 64), err: error },
          'a tool failed with an internal error',
        )
      }
      return { isError: true, text: sentence(error, tool, exchange), data: { code } }
    }
  }

  /** Why this caller does not see the tool; undefined when it does. */
  #missing(tool: Tool, { exchange, only }: ToolRequest): Fault | undefined {
    if (tool.account && exchange.caller.identity_id !== null) {
      return new Fault('forbidden', `${tool.name} is for keys of the whole account; this one is bound to one identity.`, {
        code: 'bound_key',
      })
    }
    if (only && !only.has(tool.name)) {
      return new Fault('forbidden', `${tool.name} was left out when this client was connected.`, { code: 'tool_left_out' })
    }
    let missing: Fault | undefined
    for (const name of tool.routes) {
      try {
        exchange.requireAllowed(this.#route(name))
        return undefined
      } catch (error) {
        missing ??= error as Fault
      }
    }
    return missing
  }

  /** Throws Fault `body_too_large` above the longest body of the calls that the tool makes, before anything is done with its texts. */
  #requireSize(tool: Tool, given: unknown): void {
    const longest = Math.max(...tool.routes.map((name) => maxBodyBytes(this.#route(name))))
    if (textLength(given) <= longest) return
    throw new Fault('invalid_request', `The texts are longer than ${longest} characters together, the limit of ${tool.name}.`, {
      code: 'body_too_large',
    })
  }

  #unknown(request: ToolRequest, name: string): Fault {
    const names = this.listed(request).map((one) => one.name as string)
    const close = nearest(name, names)
    const meant = close === undefined ? '' : ` Did you mean ${JSON.stringify(close)}?`
    return new Fault(
      'not_found',
      `There is no tool ${JSON.stringify(name.slice(0, 64))}.${meant} There are: ${names.join(', ')}.`,
      {
        code: 'unknown_tool',
      },
    )
  }

  #context(exchange: Exchange, identity: string): ToolContext {
    return {
      identity,
      call: async <Reply>(name: string, { params, ...given }: GivenCall = {}) =>
        jsonOf(
          await exchange.call(this.#route(name), {
            ...given,
            params: { ...(name.includes('/identities/:id') ? { id: identity } : {}), ...params },
          }),
        ) as Reply,
      allowed: (name) => {
        try {
          exchange.requireAllowed(this.#route(name))
          return true
        } catch {
          return false
        }
      },
    }
  }

  /** The identity that a key of the whole account names, by id or address; its only one when it names none. */
  async #identity(exchange: Exchange, named: string | undefined): Promise<string> {
    if (named?.startsWith('ident_')) return named
    const { call } = this.#context(exchange, '')
    const query: Record<string, string> =
      named === undefined ? { limit: '10' } : { [named.includes('@') ? 'email' : 'name']: named }
    const { data } = await call<Page<ReducedIdentity>>('GET /identities', { query })
    if (data.length === 1) return data[0]!.id
    if (named !== undefined)
      throw invalid('identity', `There is no identity ${JSON.stringify(named.slice(0, 100))}. list_identities shows all.`)
    if (data.length === 0) throw invalid('identity', 'This account has no identity yet: create_identity makes one.')
    throw invalid(
      'identity',
      `This key has several identities. Send identity, such as ${JSON.stringify(data[0]!.email)}; list_identities shows all.`,
      'missing',
    )
  }

  #route(name: string): AnyRoute {
    this.#routes ??= new Map(this.#deps.routes().map((route) => [`${route.method} ${route.path}`, route]))
    const route = this.#routes.get(name)
    if (!route) throw new Error(`No route is ${name}`)
    return route
  }
}

function validated(tool: Tool, { caller }: Exchange, given: unknown): Record<string, unknown> & { identity?: string } {
  return validate(caller.identity_id === null ? tool.input.account : tool.input.bound, given, 'field') as Record<string, unknown>
}

/** What a call replied; as text only where it was stored. */
function jsonOf(answer: Answer): unknown {
  return answer.reply ?? (JSON.parse(textOf(answer)) as unknown)
}

/** What went wrong, with a right call where the input was wrong. Parameters have the names that the tool gives them. */
function sentence(error: unknown, tool: Tool | undefined, { caller, requestId }: Exchange): string {
  const problem = problemOf(error)
  const message = problem.message.replaceAll(/\w+/g, (word) => tool?.names.get(word) ?? word)
  const lines = [`Error ${problem.code ?? problem.type}: ${withoutMarks(displayLine(message)).slice(0, 2000)}`]
  if (error instanceof Fault && error.retryAfter !== undefined) lines.push(`Try again in ${Math.ceil(error.retryAfter)} s.`)
  if (problem.status === 500) lines.push(`request_id: ${requestId}`)
  if (tool && (problem.type === 'invalid_request' || problem.code === 'bad_id')) {
    const named = caller.identity_id === null && !tool.account ? { identity: 'ada@example.com' } : {}
    lines.push(`A right call: ${tool.name} ${JSON.stringify({ ...tool.example, ...named })}`)
  }
  return lines.join('\n')
}
