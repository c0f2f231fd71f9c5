import type { IncomingMessage } from 'node:http'
import { Fault } from '../core/fault.ts'

/** Header fields that must not be repeated: parsers that pick different ones would see different requests (RFC 9110 5.3, RFC 9112 3.2). */
const singular = new Map(
  ['host', 'authorization', 'content-type', 'content-encoding', 'content-length', 'transfer-encoding', 'idempotency-key'].map(
    (name, bit) => [name, 1 << bit],
  ),
)

/** Refuses ambiguous requests and compressed bodies. */
export function checkRequest(request: IncomingMessage): void {
  let seen = 0
  const raw = request.rawHeaders
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index]!.toLowerCase()
    const bit = singular.get(name) ?? 0
    if (seen & bit)
      throw new Fault('invalid_request', `The header ${name} appears twice.`, { code: 'malformed_request', param: name })
    seen |= bit
  }
  const host = request.headers.host ?? (request.httpVersion === '1.0' ? '' : undefined)
  if (host === undefined || !/^[\w.~-]*(:\d{0,5})?$|^\[[\d.:a-f]+\](:\d{0,5})?$/i.test(host)) {
    throw new Fault('invalid_request', 'The header Host must be a host, optionally with a port.', {
      code: 'malformed_request',
      param: 'Host',
    })
  }
  const coding = request.headers['transfer-encoding']
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    throw new Fault('invalid_request', 'Transfer-Encoding must be chunked, and nothing else.', {
      code: 'malformed_request',
      param: 'Transfer-Encoding',
    })
  }
  // RFC 9112 6.1: in a request of HTTP/1.0 it is faulty, and a proxy of that version would see other requests
  if (coding !== undefined && request.httpVersion === '1.0') {
    throw new Fault('invalid_request', 'A request of HTTP/1.0 must have Content-Length, and no Transfer-Encoding.', {
      code: 'malformed_request',
      param: 'Transfer-Encoding',
    })
  }
  if (request.httpVersionMajor !== 1) {
    throw new Fault('invalid_request', 'The version of the request must be HTTP/1.1 or HTTP/1.0.', { code: 'malformed_request' })
  }
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    throw new Fault('invalid_request', 'Bodies must be sent without Content-Encoding.', {
      code: 'unsupported_encoding',
      param: 'Content-Encoding',
    })
  }
}
