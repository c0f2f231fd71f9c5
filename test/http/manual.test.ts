import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Appliance, openAppliance } from '../support/appliance.ts'

const docs = fileURLToPath(new URL('../../docs/', import.meta.url))
const pages = readdirSync(docs, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))

let box: Appliance
let close: () => Promise<void>

beforeAll(async () => {
  ;({ box, close } = await openAppliance())
})

afterAll(() => close())

test('each page is served as it is in the package, as Markdown', async () => {
  expect(pages).toEqual(expect.arrayContaining(['README.md', 'quickstart.md', 'api.md', 'decisions/README.md']))
  for (const name of pages) {
    const response = await fetch(`${box.url}/docs/${name}`)
    expect([name, response.status, response.headers.get('content-type')]).toEqual([name, 200, 'text/markdown; charset=utf-8'])
    expect(await response.text()).toBe(readFileSync(docs + name, 'utf8'))
  }
})

test('each page is served as HTML without scripts, whose links lead somewhere on the box', async () => {
  const targets = new Set<string>()
  const html = new Map<string, string>()
  for (const name of pages) {
    const path = `/docs/${name.replace(/\.md$/, '')}`
    const response = await fetch(`${box.url}${path}`)
    expect([name, response.status, response.headers.get('content-type')]).toEqual([name, 200, 'text/html; charset=utf-8'])
    const policy = response.headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toMatch(/script-src|unsafe/)
    const text = await response.text()
    expect(text).not.toMatch(/<script|\son\w+=|style="/)
    html.set(path, text)
    for (const [, target] of text.matchAll(/<(?:a|img|link) [^>]*?(?:href|src)="([^"]+)"/g)) {
      if (/^(?:https?|mailto):|^\/llms/.test(target!)) continue
      const url = new URL(target!, `http://box${path}`)
      targets.add(url.pathname + url.hash)
    }
  }
  expect(targets.size).toBeGreaterThan(100)
  const dead: string[] = []
  for (const target of targets) {
    const [path, heading] = target.split('#') as [string, string | undefined]
    const page = html.get(path)
    if (page === undefined) {
      const response = await fetch(box.url + path, { method: 'HEAD' })
      if (response.status !== 200) dead.push(target)
    } else if (heading !== undefined && !page.includes(` id="${decodeURIComponent(heading)}"`)) dead.push(target)
  }
  expect(dead).toEqual([])
})

test('each relative link of a page as Markdown leads to what the box serves, and so on from there', async () => {
  const waiting = pages.map((name) => `/docs/${name}`)
  const seen = new Set(waiting)
  const dead: string[] = []
  for (let path; (path = waiting.shift()) !== undefined;) {
    const response = await fetch(box.url + path)
    if (response.status !== 200) dead.push(path)
    if (!path.endsWith('.md')) continue
    // what stands in code is no link
    const text = (await response.text()).replaceAll(/^(`{3,})[^]*?^\1/gm, '').replaceAll(/`[^`\n]*`/g, '')
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:|^#/.test(target!)) continue
      const { pathname } = new URL(target!, `http://box${path}`)
      if (!seen.has(pathname)) waiting.push(pathname)
      seen.add(pathname)
    }
  }
  expect(dead).toEqual([])
  expect([...seen]).toEqual(
    expect.arrayContaining(['/clients/typescript/README.md', '/config/nginx.conf.example', '/CHANGELOG.md']),
  )
})

test('what the pages name beside themselves is served as it is in the package, pages of Markdown also as HTML', async () => {
  for (const [path, type] of [
    ['/clients/python/README.md', 'text/markdown'],
    ['/clients/examples/vercel-ai.mjs', 'text/plain'],
    ['/config/Caddyfile.example', 'text/plain'],
    ['/config/pillarbox.schema.json', 'application/json'],
  ] as const) {
    const response = await fetch(box.url + path)
    expect([path, response.status, response.headers.get('content-type')]).toEqual([path, 200, `${type}; charset=utf-8`])
    expect(await response.text()).toBe(readFileSync(`${docs}..${path}`, 'utf8'))
  }
  const html = await (await fetch(`${box.url}/clients/typescript/README`)).text()
  expect(html).toContain('<a href="/docs/api">API reference</a>')
  expect((await fetch(`${box.url}/clients/typescript/package.json`)).status).toBe(404)
})

test('tables, code and headings are what they are', async () => {
  const text = await (await fetch(`${box.url}/docs/quickstart`)).text()
  expect(text).toContain('<title>Quickstart · Pillarbox</title>')
  expect(text).toContain('<h2 id="1-start-a-box">1. Start a box</h2>')
  expect(text).toContain('<pre><code class="language-sh">npm ci &amp;&amp; npm start')
  expect(await (await fetch(`${box.url}/docs/settings`)).text()).toContain('<table>')
})

test('a page that is not there names the index', async () => {
  for (const path of ['/docs/nothing', '/docs/decisions/', '/docs/README.html', '/docs/..%2fpackage.json']) {
    const response = await fetch(box.url + path)
    expect([path, response.status]).toEqual([path, 404])
    expect(await response.json()).toMatchObject({
      error: { code: 'unknown_path', message: expect.stringContaining('/docs/README.md') },
    })
  }
})
