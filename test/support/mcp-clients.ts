import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { onTestFinished } from 'vitest'

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

/** Connects a stock client: the present one by the present revision or by the one before, or the one that most programs still have. */
export async function connect(kind: Kind, url: string, key: string): Promise<Connected> {
  const options = { requestInit: { headers: { Authorization: `Bearer ${key}` } } }
  const about = { name: 'test', version: '1.0.0' }
  const connected =
    kind === 'sdk 1'
      ? wrapped(await opened(new OldClient(about), new OldTransport(new URL(url), options)))
      : wrapped(
          await opened(
            new Client(about, { versionNegotiation: { mode: kind === '2025' ? 'legacy' : { pin: kind } } }),
            new StreamableHTTPClientTransport(new URL(url), options),
          ),
        )
  return connected
}

interface AnyClient {
  connect(transport: never): Promise<void>
  listTools(): Promise<{ tools: unknown[] }>
  callTool(params: { name: string; arguments: Record<string, unknown> }, ...rest: never[]): Promise<unknown>
  getInstructions(): string | undefined
  close(): Promise<void>
}

/** A client over any transport of its own. */
export async function opened(client: unknown, transport: unknown): Promise<AnyClient> {
  const any = client as AnyClient
  await any.connect(transport as never)
  return any
}

export function wrapped(client: AnyClient): Connected {
  const close = (): Promise<void> => client.close()
  onTestFinished(close)
  const isOld = client instanceof OldClient
  return {
    close,
    instructions: () => client.getInstructions(),
    list: async () => (await client.listTools()).tools as Awaited<ReturnType<Connected['list']>>,
    call: async (name, given = {}, options = {}) => {
      const rest = (isOld ? [undefined, options] : [options]) as never[]
      const result = (await client.callTool({ name, arguments: given }, ...rest)) as {
        content: { type: string; text?: string; uri?: string; name?: string; mimeType?: string }[]
        structuredContent?: Record<string, unknown>
        isError?: boolean
      }
      return {
        text: result.content.flatMap((one) => one.text ?? []).join('\n'),
        data: result.structuredContent ?? {},
        links: result.content.flatMap((one) => (one.type === 'resource_link' ? [one as Told['links'][number]] : [])),
        isError: result.isError ?? false,
      }
    },
  }
}
