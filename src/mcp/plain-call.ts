import type { IncomingHttpHeaders } from 'node:http'
import { isRecord } from '../core/json.ts'

/** A call of a tool as nearly all clients send it, and what its answer has beside the result of the tool. */
export interface PlainCall {
  id: string | number
  name: string
  given: unknown
  /** By revision 2026-07-28, else by one of those before. */
  modern: boolean
}

/** The names of the protocol, which the file that uses its library gives. */
export interface Wire {
  revision: string
  /** The revisions before that begin with `initialize`. */
  earlier: readonly string[]
  /** Fields of `_meta`. */
  version: string
  client: string
  capabilities: string
}

/** The tool that streams: its client sees that the connection is alive while it waits. */
const streaming = 'wait_for_message'

/**
 * Recognizes a `tools/call` in which everything is as the protocol wants it. Undefined for all else, right or wrong, which the library of the protocol
 * answers: the objects that it makes for each request cost more than the call of the API (docs/decisions/0026).
 */
export function plainCall(message: unknown, headers: IncomingHttpHeaders, wire: Wire): PlainCall | undefined {
  if (!has(message, ['jsonrpc', 'id', 'method', 'params']) || message['jsonrpc'] !== '2.0') return undefined
  const { id, method, params } = message
  if (method !== 'tools/call' || !(typeof id === 'string' || Number.isSafeInteger(id))) return undefined
  if (!has(params, ['name', 'arguments', '_meta'])) return undefined
  const { name, arguments: given = {}, _meta: meta = {} } = params
  if (typeof name !== 'string' || name === streaming || !isRecord(meta)) return undefined
  const modern = headers['mcp-protocol-version'] === wire.revision
  if (!(modern ? isModern(name, meta, headers, wire) : isEarlier(meta, headers, wire))) return undefined
  return { id: id as string | number, name, given, modern }
}

function isModern(name: string, meta: Record<string, unknown>, headers: IncomingHttpHeaders, wire: Wire): boolean {
  const { [wire.version]: version, [wire.client]: client, [wire.capabilities]: capabilities } = meta
  const named =
    client === undefined || (isRecord(client) && [client['name'], client['version']].every((one) => typeof one === 'string'))
  const declared = isRecord(capabilities) && Object.values(capabilities).every(isRecord)
  return version === wire.revision && named && declared && headers['mcp-method'] === 'tools/call' && headers['mcp-name'] === name
}

function isEarlier(meta: Record<string, unknown>, headers: IncomingHttpHeaders, wire: Wire): boolean {
  const { accept = '', 'mcp-protocol-version': version = wire.earlier[0] } = headers
  if ([wire.version, wire.client, wire.capabilities].some((name) => name in meta)) return false
  return wire.earlier.includes(version as string) && accept.includes('application/json') && accept.includes('text/event-stream')
}

/** True for an object without other fields. */
function has(value: unknown, fields: readonly string[]): value is Record<string, unknown> {
  return isRecord(value) && Object.keys(value).every((name) => fields.includes(name))
}
