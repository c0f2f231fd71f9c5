/** An answer as it came over a connection. */
export interface RawAnswer {
  status: number
  headers: Headers
  body: Buffer
}

/** Reads the answers of a connection, to requests with these methods, strictly (RFC 9112). Throws an Error for what is none, or ends too early. */
export function readAnswers(octets: Buffer, methods: readonly string[]): RawAnswer[] {
  return [...answersOf(octets, methods)]
}

/** The same, one after the other. */
export function* answersOf(octets: Buffer, methods: readonly string[]): Generator<RawAnswer, void> {
  let count = 0
  for (let at = 0; at < octets.length;) {
    const end = octets.indexOf('\r\n\r\n', at)
    if (end === -1) throw new Error(`an answer whose header does not end: ${start(octets, at)}`)
    const { status, headers } = headOf(octets.toString('latin1', at, end))
    at = end + 4
    if (status < 200) continue
    const { body, next } = bodyAt(octets, at, { status, headers, method: methods[count++] ?? '' })
    yield { status, headers, body }
    at = next
  }
}

function headOf(text: string): { status: number; headers: Headers } {
  const [line, ...fields] = text.split('\r\n')
  const status = /^HTTP\/1\.1 ([1-5]\d\d) [\x20-\x7e]*$/.exec(line!)?.[1]
  if (status === undefined) throw new Error(`no status line: ${JSON.stringify(line!.slice(0, 100))}`)
  const headers = new Headers()
  for (const field of fields) {
    const colon = field.indexOf(':')
    if (colon < 1) throw new Error(`no header field: ${JSON.stringify(field.slice(0, 100))}`)
    headers.append(field.slice(0, colon), field.slice(colon + 1).trim())
  }
  return { status: Number(status), headers }
}

function bodyAt(
  octets: Buffer,
  at: number,
  { status, headers, method }: { status: number; headers: Headers; method: string },
): { body: Buffer; next: number } {
  if (method === 'HEAD' || status === 204 || status === 304) return { body: Buffer.alloc(0), next: at }
  if (headers.get('transfer-encoding') === 'chunked') return chunksAt(octets, at)
  const length = Number(headers.get('content-length') ?? NaN)
  if (!Number.isSafeInteger(length)) throw new Error('an answer without a length')
  if (at + length > octets.length) throw new Error(`an answer that is cut: ${octets.length - at} of ${length} octets`)
  return { body: octets.subarray(at, at + length), next: at + length }
}

function chunksAt(octets: Buffer, from: number): { body: Buffer; next: number } {
  const chunks: Buffer[] = []
  for (let at = from; ;) {
    const end = octets.indexOf('\r\n', at)
    const size = end === -1 ? NaN : parseInt(octets.toString('latin1', at, end), 16)
    if (!(end + 2 + size + 2 <= octets.length)) throw new Error('an answer whose chunks are cut')
    chunks.push(octets.subarray(end + 2, end + 2 + size))
    at = end + 2 + size + 2
    if (size === 0) return { body: Buffer.concat(chunks), next: at }
  }
}

function start(octets: Buffer, at: number): string {
  return JSON.stringify(octets.toString('latin1', at, at + 100))
}
