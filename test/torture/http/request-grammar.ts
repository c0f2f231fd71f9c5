import { oddTexts, oddValue } from '../../support/odd-values.ts'
import { pick, type Random } from '../../support/random.ts'
import { bodies, brokenQueries, lastHeaders, literals, oddHeaders, segments, types } from './odd-parts.ts'

/** A request that is being changed. */
export interface Draft {
  method: string
  path: string
  /** As it is sent, without the question mark. */
  query: string
  headers: [name: string, value: string][]
  body: Buffer | undefined
  framing: Framing
  version: string
  /** Names of what was changed. */
  changes: string[]
  /** The path still is that of the call. */
  known: boolean
  /** What comes behind it on its connection may not be read. */
  last: boolean
  /** How many answers it may have: what is broken may be taken for another request, or for a part of one. */
  answers: { least: number; most: number }
}

/** How a body is marked off (RFC 9112 6). */
type Framing =
  | 'length'
  | 'chunked'
  | 'extension'
  | 'bad chunk'
  | 'no last chunk'
  | 'short length'
  | 'long length'
  | 'odd length'
  | 'both'
  | 'coding'

/** What changes can put into a request. */
export interface Vocabulary {
  /** Fields of the body and of the query. */
  fields: readonly string[]
  parameters: readonly string[]
  /** Ids of all kinds, of all accounts. */
  ids: readonly string[]
  /** Values of Authorization and Cookie. */
  credentials: readonly (readonly [name: string, value: string])[]
}

type Change = (draft: Draft, random: Random, vocabulary: Vocabulary) => void

const bodyChanges: Record<string, Change> = {
  'odd field': (draft, random, { fields }) =>
    changeJson(draft, (value) => void (value[nameOf(value, fields, random)] = oddValue(random))),
  'odd value within': (draft, random) => changeJson(draft, (value) => replaceWithin(value, random)),
  'missing field': (draft, random) =>
    changeJson(draft, (value) => {
      const names = Object.keys(value)
      if (names.length > 0) delete value[pick(names, random)]
    }),
  'unknown field': (draft, random) => changeJson(draft, (value) => void (value[pick(oddTexts, random)] = oddValue(random))),
  'id in a field': (draft, random, { fields, ids }) =>
    changeJson(draft, (value) => void (value[nameOf(value, fields, random)] = pick(ids, random))),
  'long text': (draft, random, { fields }) =>
    changeJson(
      draft,
      (value) =>
        void (value[nameOf(value, fields, random)] = pick(['x', 'ﷺ', '\u{1F600}', '\u202e', 'a\n'], random).repeat(
          pick([300, 3000, 30_000], random),
        )),
    ),
  literal: (draft, random, { fields }) =>
    changeJson(
      draft,
      (value) => void (value[nameOf(value, fields, random)] = mark),
      (text) => text.replace(`"${mark}"`, () => pick(literals, random)),
    ),
  'field twice': (draft, random, { fields }) =>
    changeText(draft, (text) => text.replace('{', () => `{${JSON.stringify(pick([...fields, 'x'], random))}:1,`)),
  'cut body': (draft, random) => changeText(draft, (text) => text.slice(0, random(text.length + 1))),
  'more after': (draft, random) =>
    changeText(draft, (text) => `${text}${pick(['}', ',', '{}', '\0', ' ', '\ufeff', '//'], random)}`),
  'another body': (draft, random) => changeText(draft, () => pick(bodies, random)),
  'broken octets': (draft, random) => {
    const body = Buffer.from(draft.body ?? '{}')
    for (let count = 0; count < 1 + random(3); count += 1) body[random(body.length)] = random(256)
    draft.body = body
  },
  'UTF-16': (draft) => void (draft.body = Buffer.from((draft.body ?? '{}').toString(), 'utf16le')),
  'byte order mark': (draft) => changeText(draft, (text) => `\ufeff${text}`),
  'large body': (draft, random) => {
    changeJson(draft, (value) => void (value['padding'] = 'x'.repeat(pick([65_600, 70_000], random))))
    // what is not read to its end is cut
    lastOf(draft)
  },
  'content type': (draft, random) => setHeader(draft, 'Content-Type', pick(types, random)),
}

const queryChanges: Record<string, Change> = {
  'odd parameter': (draft, random, { parameters }) =>
    addQuery(draft, pick([...parameters, 'limit'], random), pick(oddTexts, random)),
  'repeated parameter': (draft, random, { parameters }) => {
    const name = pick([...parameters, 'limit'], random)
    addQuery(draft, name, '1')
    addQuery(draft, name, pick(oddTexts, random))
  },
  'unknown parameter': (draft, random) => addQuery(draft, pick(oddTexts, random), pick(oddTexts, random)),
  'id in a parameter': (draft, random, { parameters, ids }) =>
    addQuery(draft, pick([...parameters, 'cursor'], random), pick(ids, random)),
  'broken query': (draft, random) => {
    draft.query += pick(brokenQueries, random)
    if (draft.query.includes('\x80')) lastOf(draft)
  },
}

const pathChanges: Record<string, Change> = {
  'another id': (draft, random, { ids }) => {
    const at = draft.path.split('/')
    const places = at.flatMap((segment, index) => (/^[a-z]+_[0-9a-z]{26}$/.test(segment) ? [index] : []))
    if (places.length === 0) return
    at[pick(places, random)] = pick(ids, random)
    draft.path = at.join('/')
  },
  'odd segment': (draft, random) => {
    const at = draft.path.split('/')
    at[1 + random(at.length - 1)] = pick(segments, random)
    unknown(draft, at.join('/'))
  },
  'further segment': (draft, random) => unknown(draft, `${draft.path}/${pick(segments, random)}`),
  'letters of the path': (draft) => unknown(draft, draft.path.toUpperCase()),
  'doubled slash': (draft, random) => unknown(draft, draft.path.replace('/', pick(['//', '/./', '/%2f'], random))),
  'absolute form': (draft, random) => {
    unknown(draft, `${pick(['http://127.0.0.1', 'http://elsewhere.test:1', 'https:', 'x'], random)}${draft.path}`)
    lastOf(draft)
  },
  method: (draft, random) => {
    draft.method = pick(['HEAD', 'OPTIONS', 'PUT', 'PROPFIND', 'TRACE', 'GET', 'POST', 'PATCH', 'DELETE'], random)
    draft.known = false
  },
  'no method': (draft, random) => {
    draft.method = pick(['get', 'FOO', '', 'G ET', 'PRI', 'CONNECT'], random)
    draft.known = false
    lastOf(draft)
  },
}

const headerChanges: Record<string, Change> = {
  'odd header': (draft, random) => void draft.headers.push([...pick(oddHeaders, random)]),
  'repeated header': (draft, random) => {
    const found = pick(draft.headers, random)
    draft.headers.push([found[0], pick([found[1], 'x'], random)])
    lastOf(draft)
  },
  'header of the connection': (draft, random) => {
    const [name, value] = pick(lastHeaders, random)
    if (name === 'Host') draft.headers = draft.headers.filter(([one]) => one !== 'Host')
    draft.headers.push([name, value])
    if (name === 'Upgrade' && random(2) === 0) draft.headers.push(['Connection', 'Upgrade'])
    lastOf(draft)
  },
  'no host': (draft) => {
    draft.headers = draft.headers.filter(([name]) => name !== 'Host')
    lastOf(draft)
  },
  credentials: (draft, random, { credentials }) => {
    draft.headers = draft.headers.filter(([name]) => name !== 'Authorization' && name !== 'Cookie')
    if (random(6) > 0) draft.headers.push([...pick(credentials, random)])
  },
}

const broken = ['bad chunk', 'no last chunk', 'short length', 'long length', 'odd length', 'both', 'coding'] as const

const framingChanges: Record<string, Change> = {
  chunked: (draft, random) => frame(draft, pick(['chunked', 'extension'], random)),
  framing: (draft, random) => {
    const framing = pick(broken, random)
    frame(draft, framing)
    // of what does not end there is no answer, or one to its end; of what ends too early its rest is another
    if (framing === 'no last chunk' || framing === 'long length') draft.answers = { least: 0, most: 1 }
    if (framing === 'short length') draft.answers = { least: 1, most: 2 }
    lastOf(draft)
  },
  version: (draft, random) => {
    draft.version = pick(['HTTP/1.0', 'HTTP/1.2', 'HTTP/2.0', 'HTTP/0.9', 'HTTP/1.1 ', 'http/1.1', 'HTTP/11', ''], random)
    lastOf(draft)
  },
}

const kinds = [
  bodyChanges,
  bodyChanges,
  bodyChanges,
  queryChanges,
  queryChanges,
  pathChanges,
  headerChanges,
  headerChanges,
  framingChanges,
]

/** Changes a request in one to three ways; one in ten is left as it is. */
export function change(draft: Draft, random: Random, vocabulary: Vocabulary): void {
  const count = random(10) === 0 ? 0 : 1 + random(3)
  for (let turn = 0; turn < count; turn += 1) {
    const changes = pick(kinds, random)
    if (changes === bodyChanges && draft.method === 'GET' && random(10) > 0) continue
    const name = pick(Object.keys(changes), random)
    changes[name]!(draft, random, vocabulary)
    draft.changes.push(name)
  }
  // of what cannot be read the box does not know that it is HEAD, and answers with a body
  if (draft.last && draft.method === 'HEAD') draft.method = 'GET'
}

const harmless: Record<string, (draft: Draft, random: Random) => void> = {
  'letters of header names': (draft, random) => {
    const isUpper = random(2) === 0
    draft.headers = draft.headers.map(([name, value]) => [isUpper ? name.toUpperCase() : name.toLowerCase(), value])
  },
  'order of headers': (draft) => void (draft.headers = draft.headers.toReversed()),
  'a header of no meaning': (draft) => void draft.headers.push(['X-Nothing', 'nothing']),
  'order of fields': (draft) => {
    if (draft.body !== undefined) changeJson(draft, reorder)
  },
  'blanks in a body': (draft) => {
    if (draft.body !== undefined) changeJson(draft, reorder, (text) => ` ${text.replace('{', '{\r\n\t')}\n`)
  },
  'chunks of a body': (draft, random) => {
    if (draft.body !== undefined) frame(draft, pick(['chunked', 'extension'], random))
  },
}

/** Leaves a request as it is, or changes it in one way that means the same. */
export function changeHarmlessly(draft: Draft, random: Random): void {
  if (random(3) === 0) return
  const name = pick(Object.keys(harmless), random)
  harmless[name]!(draft, random)
  draft.changes.push(name)
}

function reorder(value: Record<string, unknown>): void {
  for (const [name, field] of Object.entries(value).toReversed()) {
    delete value[name]
    value[name] = field
  }
}

function chunk(octets: Buffer, more = ''): Buffer {
  return Buffer.concat([Buffer.from(`${octets.length.toString(16)}${more}\r\n`), octets, Buffer.from('\r\n')])
}

/** The octets of a request. */
export function octetsOf({ method, path, query, headers, body, framing, version }: Draft): Buffer {
  const content = body ?? Buffer.alloc(0)
  const marked = body === undefined && framing === 'length' ? [] : framingOf(framing, content.length)
  const lines = [`${method} ${path}${query === '' ? '' : `?${query}`}${version === '' ? '' : ` ${version}`}`]
  for (const [name, value] of [...headers, ...marked]) lines.push(`${name}: ${value}`)
  const head = Buffer.from(`${lines.map((line) => line.replaceAll(/[\u0100-\uffff]/g, '?')).join('\r\n')}\r\n\r\n`, 'latin1')
  return Buffer.concat([head, sent(framing, content)])
}

function framingOf(framing: Framing, length: number): [string, string][] {
  const coded: [string, string] = ['Transfer-Encoding', 'chunked']
  if (framing === 'length') return [['Content-Length', String(length)]]
  if (framing === 'short length') return [['Content-Length', String(Math.max(0, length - 3))]]
  if (framing === 'long length') return [['Content-Length', String(length + 10)]]
  if (framing === 'odd length') return [['Content-Length', `+${length}`]]
  if (framing === 'both') return [['Content-Length', String(length)], coded]
  if (framing === 'coding') return [['Transfer-Encoding', 'gzip, chunked']]
  return [coded]
}

function sent(framing: Framing, content: Buffer): Buffer {
  if (framing.endsWith('length')) return content
  const half = Math.floor(content.length / 2)
  const pieces = [content.subarray(0, half), content.subarray(half)].filter((piece) => piece.length > 0)
  const chunks = pieces.map((piece) => chunk(piece, framing === 'extension' ? ';a="b"' : ''))
  if (framing === 'bad chunk') return Buffer.concat([...chunks, Buffer.from('xyz\r\n\r\n')])
  if (framing === 'no last chunk') return Buffer.concat(chunks)
  return Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')])
}

const mark = 'the place of a literal'

function changeJson(draft: Draft, alter: (value: Record<string, unknown>) => void, after = (text: string) => text): void {
  let value: unknown
  try {
    value = JSON.parse(String(draft.body ?? '{}'))
  } catch {
    return
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return
  alter(value as Record<string, unknown>)
  changeText(draft, () => after(JSON.stringify(value)))
}

function changeText(draft: Draft, alter: (text: string) => string): void {
  draft.body = Buffer.from(alter(String(draft.body ?? '{}')))
  if (!draft.headers.some(([name]) => name === 'Content-Type')) draft.headers.push(['Content-Type', 'application/json'])
}

function nameOf(value: object, fields: readonly string[], random: Random): string {
  return pick([...Object.keys(value), ...fields, 'id'], random)
}

function replaceWithin(value: unknown, random: Random): void {
  if (typeof value !== 'object' || value === null) return
  const names = Object.keys(value)
  if (names.length === 0) return
  const name = pick(names, random)
  const inner = (value as Record<string, unknown>)[name]
  if (typeof inner === 'object' && inner !== null && random(3) > 0) replaceWithin(inner, random)
  else (value as Record<string, unknown>)[name] = oddValue(random)
}

function addQuery(draft: Draft, name: string, value: string): void {
  draft.query += `${draft.query === '' ? '' : '&'}${encoded(name)}=${encoded(value)}`
}

/** Escaped as a query is; texts that have no UTF-8 cannot be. */
function encoded(text: string): string {
  return new URLSearchParams([[text, '']]).toString().slice(0, -1)
}

function setHeader(draft: Draft, name: string, value: string): void {
  draft.headers = [...draft.headers.filter(([one]) => one !== name), [name, value]]
}

function unknown(draft: Draft, path: string): void {
  draft.path = path
  draft.known = false
  // a path can have what no request line can
  if (/[^\x21-\x7e]/.test(path)) lastOf(draft)
}

function frame(draft: Draft, framing: Framing): void {
  draft.body ??= Buffer.from('{}')
  draft.framing = framing
}

function lastOf(draft: Draft): void {
  draft.last = true
}
