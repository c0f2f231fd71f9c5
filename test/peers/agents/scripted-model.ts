import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { listenOnLoopback } from '../../support/loopback.ts'

/** What the model says next: a tool that it calls, or its last words. */
export type Turn = { tool: string; input: Record<string, unknown> } | { text: string }

/** Says what comes after these results of tools. */
export type Script = (results: string[]) => Turn

type Json = ReturnType<typeof JSON.parse>

/**
 * A server that speaks the Chat Completions API of OpenAI and the Messages API of Anthropic, with a script for a model. It calls only tools that it was
 * offered, by the names under which it was.
 */
export class ScriptedModel {
  readonly #server = createServer((request, response) => {
    // what the script could not find is said where the program shows it
    this.#answer(request, response).catch((error: unknown) => response.writeHead(400).end(String(error)))
  })
  readonly #script: Script
  /** The names of the tools offered last. */
  offered: string[] = []

  constructor(script: Script) {
    this.#script = script
  }

  listen(): Promise<string> {
    return listenOnLoopback(this.#server)
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url!.split('?')[0]
    if (request.method !== 'POST') return void response.writeHead(404).end()
    const body = (await json(request)) as Json
    if (path === '/v1/chat/completions') return sendJson(response, this.#completion(body))
    if (path === '/v1/messages/count_tokens') return sendJson(response, { input_tokens: 100 })
    if (path === '/v1/messages') return this.#message(body, response)
    response.writeHead(404).end()
  }

  #turn(names: string[], results: string[]): Turn {
    // some ask without tools for a title or a summary
    if (names.length === 0) return { text: 'ok' }
    this.offered = names
    const turn = this.#script(results)
    if ('text' in turn) return turn
    const name = names.find((one) => one === turn.tool || one.endsWith(`__${turn.tool}`))
    return name === undefined ? { text: `There is no tool ${turn.tool} among ${names.join(', ')}.` } : { ...turn, tool: name }
  }

  #completion({ tools = [], messages, model }: Json): unknown {
    const names = tools.map((one: Json) => one.function.name)
    const results = messages.filter((one: Json) => one.role === 'tool').map((one: Json) => textIn(one.content))
    const turn = this.#turn(names, results)
    const said =
      'text' in turn
        ? { content: turn.text }
        : {
            content: null,
            tool_calls: [
              {
                id: `call_${results.length}`,
                type: 'function',
                function: { name: turn.tool, arguments: JSON.stringify(turn.input) },
              },
            ],
          }
    return {
      id: `chatcmpl-${results.length}`,
      object: 'chat.completion',
      created: 1_795_000_000,
      model,
      choices: [{ index: 0, message: { role: 'assistant', ...said }, finish_reason: 'text' in turn ? 'stop' : 'tool_calls' }],
      usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
    }
  }

  #message({ tools = [], messages, model, stream }: Json, response: ServerResponse): void {
    const names = tools.map((one: Json) => one.name)
    const blocks = messages.flatMap((one: Json) => (Array.isArray(one.content) ? one.content : []))
    const results = blocks.filter((one: Json) => one.type === 'tool_result').map((one: Json) => textIn(one.content))
    const turn = this.#turn(names, results)
    const id = `toolu_${results.length}`
    const content =
      'text' in turn ? { type: 'text', text: turn.text } : { type: 'tool_use', id, name: turn.tool, input: turn.input }
    const stop_reason = 'text' in turn ? 'end_turn' : 'tool_use'
    const usage = { input_tokens: 100, output_tokens: 10 }
    const message = { id: `msg_${results.length}`, type: 'message', role: 'assistant', model, stop_sequence: null, usage }
    if (stream !== true) return sendJson(response, { ...message, content: [content], stop_reason })
    const delta =
      'text' in turn
        ? { type: 'text_delta', text: turn.text }
        : { type: 'input_json_delta', partial_json: JSON.stringify(turn.input) }
    const empty = 'text' in turn ? { ...content, text: '' } : { ...content, input: {} }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    for (const event of [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
      { type: 'content_block_start', index: 0, content_block: empty },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
      { type: 'message_stop' },
    ])
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    response.end()
  }
}

/** The text of a result, which frameworks hand on as text, as blocks or as JSON of either. */
function textIn(content: unknown): string {
  return typeof content === 'string' ? content : JSON.stringify(content)
}

function sendJson(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}
