import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { BuiltSite } from '../../src/web/site.ts'
import { appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'

const dist = fileURLToPath(new URL('../../dist/page', import.meta.url))
const asked = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }

/** A build as Vite leaves it. */
async function site(): Promise<BuiltSite> {
  const place = folder()
  mkdirSync(join(place, 'assets'))
  writeFileSync(join(place, 'index.html'), '<!doctype html><title>Pillarbox</title>')
  writeFileSync(join(place, 'assets', 'index-abc.js'), 'export const one = 1\n'.repeat(100))
  const built = new BuiltSite(place)
  await built.read()
  return built
}

test('the page is answered at its own paths to browsers; anything else is not its', async () => {
  const built = await site()
  for (const path of ['/', '/identities', '/identities/ident_x/inbox', '/setup', '/domains/dom_x'])
    expect((await built.answer(path, asked))?.type).toBe('text/html; charset=utf-8')
  for (const path of [
    '/v1/identities',
    '/nothing',
    '/docs',
    '//evil.test',
    '/identitiesx',
    '/assets/',
    '/assets/../index.html',
    '/.well-known/x',
  ])
    expect(built.answer(path, asked)).toBeUndefined()
  // a program that mistook the path is told so
  expect(built.answer('/identities', { accept: 'application/json' })).toBeUndefined()
  expect(built.answer('/identities', {})).toBeUndefined()
  expect(built.answer('/', {})).toBeDefined()
})

test('the page is never kept, its files are kept for ever, both as small as the browser can read', async () => {
  const built = await site()
  const page = (await built.answer('/', asked))!
  expect(page.headers['Cache-Control']).toBe('no-store')
  const plain = (await built.answer('/assets/index-abc.js', {}))!
  expect(plain).toMatchObject({ type: 'text/javascript; charset=utf-8', status: 200 })
  expect(plain.headers['Cache-Control']).toBe('public, max-age=31536000, immutable')
  expect(plain.headers['Vary']).toBe('Accept-Encoding')
  const brotli = (await built.answer('/assets/index-abc.js', { 'accept-encoding': 'gzip, deflate, br, zstd' }))!
  expect(brotli.headers['Content-Encoding']).toBe('br')
  expect(brotliDecompressSync(brotli.body as Buffer)).toEqual(plain.body)
  const gzip = (await built.answer('/assets/index-abc.js', { 'accept-encoding': 'gzip, br;q=0' }))!
  expect(gzip.headers['Content-Encoding']).toBe('gzip')
  expect(gunzipSync(gzip.body as Buffer)).toEqual(plain.body)
})

test('its policy names no other host, and allows nothing inline', async () => {
  const { headers } = (await (await site()).answer('/', asked))!
  const policy = headers['Content-Security-Policy']!
  expect(policy).not.toMatch(/unsafe|https?:|\*|wss?:/)
  for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"])
    expect(policy).toContain(rule)
  // nor does a link that the page lists tell its host that somebody looks
  expect(headers['X-DNS-Prefetch-Control']).toBe('off')
})

test('without a build the box runs, and the page says how to build it', async () => {
  const built = new BuiltSite(join(folder(), 'nothing'))
  await built.read()
  const told = (await built.answer('/', asked))!
  expect([told.status, told.type]).toEqual([503, 'text/plain; charset=utf-8'])
  expect(told.body).toContain('npm run prepare')
})

test('the box answers the page with the headers of all answers, and errors as JSON where it has none', async () => {
  if (!existsSync(dist)) throw new Error('The page is not built: npm run prepare')
  const box = await appliance()
  const page = await fetch(`${box.url}/`, { headers: asked })
  expect(page.status).toBe(200)
  expect(page.headers.get('x-frame-options')).toBe('DENY')
  expect(page.headers.get('x-content-type-options')).toBe('nosniff')
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
  expect(page.headers.get('ratelimit-policy')).toContain('"document"')
  const html = await page.text()
  expect(html).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=|https?:\/\//)
  const [, script] = /src="(\/assets\/[^"]+)"/.exec(html)!
  expect((await fetch(`${box.url}${script}`)).headers.get('cache-control')).toContain('immutable')
  const head = await fetch(`${box.url}/`, { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
  for (const [method, path] of [
    ['POST', '/'],
    ['GET', '/assets/nothing.js'],
    ['GET', '/v1/nothing'],
  ] as const) {
    const told = await box.call(method, path, undefined, { headers: asked })
    expect([told.status, told.body.error['code']]).toEqual([404, 'unknown_path'])
  }
})

test('whatever is looked at first, it is under 30 kB compressed in at most ten files, and all views are under 64 kB', () => {
  const read = (name: string): string => readFileSync(join(dist, name), 'utf8')
  // as browsers get it over https and on the machine itself
  const size = (name: string): number => brotliCompressSync(read(name)).length
  const entry = [...read('index.html').matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map(([, name]) => name!)
  const octets = (names: readonly string[]): number => names.reduce((sum, name) => sum + size(name), 0)
  // a file and all that it imports at once, by the names of the files that it names
  const needed = (name: string, seen: Set<string>): Set<string> => {
    if (seen.has(name)) return seen
    seen.add(name)
    if (!name.endsWith('.js')) return seen
    for (const [, other] of read(name).matchAll(/(?:from|import)\s*["'`]\/(assets\/[^"'`]+)["'`]/g)) needed(other!, seen)
    return seen
  }
  const first = entry.reduce((seen, name) => needed(name, seen), new Set(['index.html']))
  expect(first.size).toBeGreaterThanOrEqual(4)
  const others = readdirSync(join(dist, 'assets')).map((name) => `assets/${name}`)
  const views = others.map((name) => [name, needed(name, new Set(first))] as const)
  expect(views.length).toBeGreaterThan(5)
  const large = views.filter(([, files]) => files.size > 10 || octets([...files]) >= 30_000)
  expect(large.map(([name]) => name)).toEqual([])
  // those of a mailbox are imported by its view: else this test would not see what a view needs
  const mailbox = others.find((name) => name.startsWith('assets/inbox-'))!
  expect(octets([...needed(mailbox, new Set(first))])).toBeGreaterThan(octets([...first, mailbox]))
  expect(octets(['index.html', ...others])).toBeLessThan(64_000)
})
