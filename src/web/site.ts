import { readdir, readFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import type { Answer } from '../http/route.ts'
import type { Site } from '../http/types.ts'

/** The first path segments of the page: for any path below them the box serves index.html, whose router handles the rest. */
const places = [
  '',
  'setup',
  'invitation',
  'decide',
  'identities',
  'holds',
  'policy',
  'domains',
  'webhooks',
  'keys',
  'agents',
  'account',
  'health',
  'jobs',
] as const

/** All content comes from this origin, and nothing is inline; e-mail is shown in a frame whose response has a policy of its own. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const headersOfPages = {
  'Content-Security-Policy': policy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  // the page links to other sites, which would learn its URL
  'X-DNS-Prefetch-Control': 'off',
}

const types: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.html': 'text/html; charset=utf-8',
}

const year = 31_536_000

const encoders = { br: promisify(brotliCompress), gzip: promisify(gzip) }

type Encoding = keyof typeof encoders

/** One built file, with the encodings requested so far. */
interface Built {
  type: string
  bytes: Buffer
  encoded: Partial<Record<Encoding, Promise<Buffer>>>
}

/** The build in memory: `assets/` by their hashed names, and index.html at all paths of the page. */
export class BuiltSite implements Site {
  readonly #folder: string
  readonly #assets = new Map<string, Built>()
  #page: Built | undefined

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Loads the build; without one the page is a sentence on how to create it. */
  async read(): Promise<void> {
    const page = await readFile(join(this.#folder, 'index.html')).catch(absent)
    if (!page) return
    const names = await readdir(join(this.#folder, 'assets'))
    for (const name of names) {
      this.#assets.set(`/assets/${name}`, built(name, await readFile(join(this.#folder, 'assets', name))))
    }
    this.#page = built('index.html', page)
  }

  answer(path: string, headers: IncomingHttpHeaders): Promise<Answer> | undefined {
    const asset = this.#assets.get(path)
    if (asset) return answered(asset, headers, `public, max-age=${year}, immutable`)
    if (!isPlace(path, headers.accept ?? '')) return undefined
    return this.#page ? answered(this.#page, headers, 'no-store') : Promise.resolve(unbuilt)
  }
}

const unbuilt: Answer = {
  status: 503,
  type: 'text/plain; charset=utf-8',
  body: 'The page of this box was not built. Build it with `npm run prepare`, in its directory, and start the box again.\n',
  headers: {},
}

/** Any client gets the page at the root; below it, only a request that accepts HTML. */
function isPlace(path: string, accept: string): boolean {
  if (path === '/') return true
  const [, first, second] = path.split('/')
  return first !== '' && second !== '' && places.some((place) => place === first) && accept.includes('text/html')
}

async function answered(
  file: Built,
  { 'accept-encoding': accepted = '' }: IncomingHttpHeaders,
  caching: string,
): Promise<Answer> {
  const encoding = (['br', 'gzip'] as const).find((name) => accepts(accepted, name))
  const headers = { ...headersOfPages, 'Cache-Control': caching, Vary: 'Accept-Encoding' }
  if (!encoding) return { status: 200, type: file.type, body: file.bytes, headers }
  const body = await (file.encoded[encoding] ??= encoders[encoding](file.bytes))
  return { status: 200, type: file.type, body, headers: { ...headers, 'Content-Encoding': encoding } }
}

/** RFC 9110 12.5.3 as browsers use it: named, and not with a weight of 0. */
function accepts(header: string | string[], name: string): boolean {
  return String(header)
    .split(',')
    .some((one) => one.trim().split(';')[0] === name && !/;\s*q=0(?:\.0*)?\s*$/.test(one))
}

function built(name: string, bytes: Buffer): Built {
  return { type: types[extname(name)] ?? 'application/octet-stream', bytes, encoded: {} }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
