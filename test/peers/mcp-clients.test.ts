import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { ambient } from '../support/ambient.ts'
import { openToolWorld, toolsOfAnIdentity, useEveryTool } from '../support/every-tool.ts'
import { command, type Connected, toldBy, type ToolResult } from '../support/mcp-clients.ts'
import { examples } from './agents/examples.ts'
import { pythonProgram } from './python-client.ts'

// nothing else runs meanwhile
const library = join(examples(), 'node_modules/@ai-sdk/mcp/dist')
const pythonPath = pythonProgram('python')

const { world, close } = await openToolWorld()
afterAll(close)
const { url } = world.box

/** Where the tools are: at a URL, or behind a command. */
type Way = { url: string; key: string } | { command: string[]; env: Record<string, string> }

const ways: [string, Way][] = [
  ['HTTP', { url: `${url}/mcp`, key: world.key }],
  ['a command', { command: [...command, '--url', url], env: { ...ambient, PILLARBOX_API_KEY: world.key } }],
]

/** What of the client of the Vercel AI SDK is used; it is installed with the examples. */
interface AiSdk {
  createMCPClient: (config: { transport: unknown }) => Promise<{
    listTools(): Promise<{ tools: Awaited<ReturnType<Connected['list']>> }>
    callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<ToolResult>
    instructions?: string
    close(): Promise<void>
  }>
}

async function aiSdk(way: Way): Promise<Connected> {
  const { createMCPClient } = (await import(join(library, 'index.js'))) as AiSdk
  const { Experimental_StdioMCPTransport: Stdio } = (await import(join(library, 'mcp-stdio/index.js'))) as {
    Experimental_StdioMCPTransport: new (config: object) => object
  }
  const transport =
    'url' in way
      ? { type: 'http', url: way.url, headers: { Authorization: `Bearer ${way.key}` } }
      : new Stdio({ command: way.command[0], args: way.command.slice(1), env: way.env, stderr: 'ignore' })
  const client = await createMCPClient({ transport })
  onTestFinished(() => client.close())
  return {
    list: async () => (await client.listTools()).tools,
    call: async (name, given = {}) => toldBy(await client.callTool({ name, arguments: given })),
    instructions: () => client.instructions,
    close: () => client.close(),
  }
}

async function python(way: Way): Promise<Connected> {
  const script = fileURLToPath(new URL('mcp-clients.py', import.meta.url))
  const program = spawn(pythonPath, [script, JSON.stringify(way)], { stdio: ['pipe', 'pipe', 'pipe'] })
  onTestFinished(() => void program.kill())
  let trouble = ''
  program.stderr.on('data', (bytes) => (trouble += String(bytes)))
  const lines = createInterface(program.stdout)[Symbol.asyncIterator]()
  const ask = async <Result>(name: string, given: Record<string, unknown>): Promise<Result> => {
    program.stdin.write(`${JSON.stringify({ name, arguments: given })}\n`)
    const { value, done } = await lines.next()
    if (done === true) throw new Error(trouble)
    return JSON.parse(value) as Result
  }
  return {
    list: async () => (await ask<{ tools: Awaited<ReturnType<Connected['list']>> }>('tools/list', {})).tools,
    call: async (name, given = {}) => toldBy(await ask<ToolResult>(name, given)),
    instructions: () => undefined,
    close: async () => void program.kill(),
  }
}

const clients = [
  ['of the Vercel AI SDK', aiSdk],
  ['of the official Python library', python],
] as const

describe.each(clients)('the client %s', (client, connect) => {
  test.each(ways)('uses every tool by %s', async (way, place) => {
    const connected = await connect(place)
    expect((await connected.list()).map(({ name }) => name)).toEqual(toolsOfAnIdentity)
    await useEveryTool(connected, world, `${client}, ${way}`)
  })
})
