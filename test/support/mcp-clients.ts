import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldStdioTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { expect, onTestFinished } from 'vitest'
import { ambient } from './ambient.ts'

/** What a client of the protocol was told. */
export interface Told {
  /** All text, as a model reads it. */
  text: string
  data: Record<string, unknown>
  links: { uri: string; name: string; mimeType?: string | undefined }[]
  isError: boolean
}

export interface Connected {
  list(): Promise<{ name: string; description?: string | undefined; inputSchema: object; annotations?: object | undefined }[]>
  call(name: string, given?: Record<string, unknown>, options?: { signal?: AbortSignal }): Promise<Told>
  instructions(): string | undefined
  close(): Promise<void>
}

export const kinds = ['2026-07-28', '2025', 'sdk 1'] as const
export type Kind = (typeof kinds)[number]

const about = { name: 'test', version: '1.0.0' }

/** A stock client: the present one by the present revision or by the one before, or the one that most programs still have. */
function clientOf(kind: Kind): AnyClient {
  if (kind === 'sdk 1') return new OldClient(about)
  const mode = kind === '2025' ? 'legacy' : { pin: kind }
  return new Client(about, { versionNegotiation: { mode } })
}

/** Connects by HTTP. */
export async function connect(kind: Kind, url: string, key: string): Promise<Connected> {
  const options = { requestInit: { headers: { Authorization: `Bearer ${key}` } } }
  return opened(
    kind,
    kind === 'sdk 1' ? new OldTransport(new URL(url), options) : new StreamableHTTPClientTransport(new URL(url), options),
  )
}

/** How `pillarbox mcp` is started. */
export const command = [process.execPath, fileURLToPath(new URL('../../src/main.ts', import.meta.url)), 'mcp'] as const

/** Connects by the standard input and output of `pillarbox mcp`. */
export async function connectByCommand(kind: Kind, words: string[], env: Record<string, string>): Promise<Connected> {
  const started = {
    command: command[0],
    args: [...command.slice(1), ...words],
    env: { ...ambient, ...env },
    stderr: 'ignore' as const,
  }
  return opened(kind, kind === 'sdk 1' ? new OldStdioTransport(started) : new StdioClientTransport(started))
}

interface AnyClient {
  connect(transport: never): Promise<void>
  listTools(): Promise<{ tools: unknown[] }>
  callTool(params: { name: string; arguments: Record<string, unknown> }, ...rest: never[]): Promise<unknown>
  getInstructions(): string | undefined
  close(): Promise<void>
}

async function opened(kind: Kind, transport: unknown): Promise<Connected> {
  const client = clientOf(kind)
  await client.connect(transport as never)
  const close = (): Promise<void> => client.close()
  onTestFinished(close)
  return {
    close,
    instructions: () => client.getInstructions(),
    list: async () => (await client.listTools()).tools as Awaited<ReturnType<Connected['list']>>,
    call: async (name, given = {}, options = {}) => {
      const rest = (kind === 'sdk 1' ? [undefined, options] : [options]) as never[]
      return toldBy((await client.callTool({ name, arguments: given }, ...rest)) as ToolResult)
    },
  }
}

/** The result of a tool, as the protocol has it. */
export interface ToolResult {
  content: { type: string; text?: string; uri?: string; name?: string; mimeType?: string }[]
  _meta?: Record<string, Record<string, unknown>>
  structuredContent?: unknown
  isError?: boolean
}

export function toldBy({ content, isError = false, structuredContent, _meta: meta = {} }: ToolResult): Told {
  // some clients show a model this alone
  expect(structuredContent ?? undefined).toBeUndefined()
  return {
    text: content.flatMap((one) => one.text ?? []).join('\n'),
    data: meta['pillarbox/data'] ?? {},
    links: content.flatMap((one) => (one.type === 'resource_link' ? [one as Told['links'][number]] : [])),
    isError,
  }
}
