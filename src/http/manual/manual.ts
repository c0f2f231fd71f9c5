import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { Answer } from '../route.ts'
import { htmlOf, stylesheet } from './markdown.ts'

const root = join(import.meta.dirname, '..', '..', '..')

/** What the pages of `docs/` name beside themselves; served where their links lead. */
export const beside = [
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'clients/examples/README.md',
  'clients/examples/claude-agent.mjs',
  'clients/examples/langchain.mjs',
  'clients/examples/openai-agents.mjs',
  'clients/examples/site.mjs',
  'clients/examples/vercel-ai.mjs',
  'clients/python/README.md',
  'clients/typescript/README.md',
  'config/Caddyfile.example',
  'config/haproxy.cfg.example',
  'config/nginx.conf.example',
  'config/patroni.yml.example',
  'config/pillarbox.example.yaml',
  'config/pillarbox.schema.json',
  'docker/compose-several.yaml',
  'src/README.md',
  'src/web/README.md',
]

const types: Record<string, string> = {
  '.md': 'text/markdown; charset=utf-8',
  '.png': 'image/png',
  '.yaml': 'text/plain; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.mjs': 'text/plain; charset=utf-8',
  '.example': 'text/plain; charset=utf-8',
}

/** Nothing but text, its stylesheet and pictures, from this box. */
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** What an unknown page is answered. */
export const noSuchPage =
  'The documentation has no such page. All pages are listed at /docs/README.md; the shortest way in is /llms.txt.'

/** The documentation of this version: each file of `docs/`, and what it names beside, by its name, and each page of Markdown also as HTML, without `.md`. */
export class Manual {
  readonly paths: readonly string[]
  readonly #files: ReadonlySet<string>
  /** Each page is converted once. */
  readonly #html = new Map<string, Promise<Buffer>>()

  constructor() {
    const names = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter((name) => extname(name) in types)
    this.#files = new Set([...names.map((name) => `/docs/${name}`), ...beside.map((name) => `/${name}`)])
    this.paths = [
      '/docs/manual.css',
      ...[...this.#files].flatMap((path) => (path.endsWith('.md') ? [path, path.slice(0, -3)] : [path])),
    ]
  }

  /** The response for one of `paths`. */
  async answer(path: string): Promise<Answer> {
    const headers = { 'Content-Security-Policy': policy, 'Cache-Control': 'no-cache' }
    if (path === '/docs/manual.css') return { status: 200, type: 'text/css; charset=utf-8', body: stylesheet, headers }
    if (this.#files.has(path)) return { status: 200, type: types[extname(path)]!, body: await read(path), headers }
    return { status: 200, type: 'text/html; charset=utf-8', body: await this.#htmlOf(`${path}.md`), headers }
  }

  #htmlOf(path: string): Promise<Buffer> {
    const known = this.#html.get(path)
    if (known) return known
    const made = read(path).then((markdown) => Buffer.from(htmlOf(path, markdown.toString(), this.#files)))
    this.#html.set(path, made)
    made.catch(() => this.#html.delete(path))
    return made
  }
}

function read(path: string): Promise<Buffer> {
  return readFile(join(root, path))
}
