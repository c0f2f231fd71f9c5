import { join } from 'node:path'
import { type Bench, finding, type Finding } from '../finding.ts'
import { startIngestBox } from '../ingest.ts'
import { call, type Calls } from '../load/calls.ts'
import { inTurn, type Sample, shown, type Side, spreadOf } from '../measure.ts'
import { usageOf } from '../process-tree.ts'
import { ask, mailbox } from './calls.ts'

/** By how many connections; the clients of agents have few. */
const connections = 16

/** The revisions of the protocol that clients speak: the present one, and the last that begins with `initialize`. */
const revisions = ['2026-07-28', '2025-11-25'] as const

/** The tools of `/mcp` beside the calls that they make: P26 and P27. */
export const tools: Bench = {
  name: 'tools',
  goals: ['P26', 'P27'],
  async run({ directory, rounds, scale }) {
    const box = await startIngestBox(join(directory, 'box'), { message: { size: 0 }, sessions: 1, messages: 1 }, 0)
    try {
      const identity = await mailbox(box, 5)
      const emails = `${box.url}/v1/identities/${identity}/emails`
      const [{ id }] = (JSON.parse(await ask(`${emails}?limit=1`)) as { data: [{ id: string }] }).data
      const wish = { identity_id: identity, scopes: ['identities:read', 'messages:read', 'messages:write'] }
      const { key } = JSON.parse(await ask(`${box.url}/v1/api-keys`, JSON.stringify(wish))) as { key: string }
      const common = { connections, seconds: Math.max(1, Math.round(5 * scale)), key }
      const read = { name: 'read_message', arguments: { id } }
      const sides = [
        side('REST', box.pid, { ...common, url: `${emails}/${id}` }),
        ...revisions.map((revision) =>
          side(revision, box.pid, { ...common, url: `${box.url}/mcp`, ...request(revision, 'tools/call', read) }),
        ),
      ]
      const samples = await inTurn(sides, rounds)
      const { body, headers } = request(revisions[0], 'tools/list', {})
      const listed = await ask(`${box.url}/mcp`, body, { ...headers, Authorization: `Bearer ${key}` })
      return [...revisions.map((revision) => cost(revision, samples)), size(listed)]
    } finally {
      await box.stop()
    }
  },
}

/** A request as a client of this revision sends it. */
export function request(revision: string, method: string, params: { name?: string }): Required<Pick<Calls, 'body' | 'headers'>> {
  const modern = revision === revisions[0]
  const meta = {
    'io.modelcontextprotocol/protocolVersion': revision,
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const body = { jsonrpc: '2.0', id: 1, method, params: { ...params, ...(modern ? { _meta: meta } : {}) } }
  const headers = {
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': revision,
    ...(modern ? { 'Mcp-Method': method } : {}),
    ...(modern && params.name !== undefined ? { 'Mcp-Name': params.name } : {}),
  }
  return { body: JSON.stringify(body), headers }
}

function side(name: string, pid: number, calls: Calls): Side {
  return {
    name,
    async round() {
      const before = usageOf(pid)
      const { perSecond, total } = await call(calls)
      return { 'calls/s': perSecond, 'µs CPU/call': (usageOf(pid).cpu - before.cpu) / total }
    },
  }
}

function cost(revision: string, samples: Map<string, Sample[]>): Finding {
  const of = (name: string, figure: string) => spreadOf(samples.get(name), figure)
  const [tool, rest] = [of(revision, 'µs CPU/call'), of('REST', 'µs CPU/call')]
  return finding({
    goal: 'P26',
    what: `CPU of read_message by /mcp, revision ${revision}`,
    against: 'GET of the same e-mail',
    value: tool.median / rest.median,
    most: 1.3,
    figures: [
      `by the tool ${shown(tool)} µs, ${shown(of(revision, 'calls/s'))} calls/s`,
      `by GET ${shown(rest)} µs, ${shown(of('REST', 'calls/s'))} calls/s`,
    ],
  })
}

function size(listed: string): Finding {
  const { result } = JSON.parse(listed) as { result: { tools: { inputSchema: object }[] } }
  const schemas = result.tools.map(({ inputSchema }) => JSON.stringify(inputSchema)).join('')
  return finding({
    goal: 'P27',
    what: 'Input schemas of the tools of a key of one identity',
    against: '–',
    value: Buffer.byteLength(schemas) / 1000,
    most: 6,
    unit: 'kB',
    figures: [`${result.tools.length} tools, with names and descriptions ${Buffer.byteLength(listed) / 1000} kB`],
  })
}
