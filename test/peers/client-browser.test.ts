import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { build } from 'esbuild'
import { expect, onTestFinished, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { person, withPassword } from '../support/people.ts'
import { chromiumBrowser } from '../support/screen.ts'

/** What the page does; it ends with its findings in the title. */
const program = `
import { decryptCard, newCardKey, Pillarbox } from './clients/typescript/src/index.ts'

const [baseUrl, apiKey] = [BOX, KEY]
const cardKey = newCardKey()
const client = new Pillarbox({ baseUrl, apiKey, cardKey })
const ada = await client.identities.create()
const bob = await client.identities.create()
const events = client.events({ identity: ada, types: ['email.received'] })
await events.ready
await client.emails.send(bob.id, { to: ada.email, subject: 'Live', body: 'Your code is 493817.' })
const found = []
for await (const event of events) {
  found.push(event.data.subject)
  break
}
found.push((await client.waitForCode(ada)).code)
const card = await client.cards.create(ada.id, { number: '4242424242424242', exp_month: 8, exp_year: 2039, label: 'x', budget_cents: 1 })
found.push((await decryptCard(cardKey, (await client.cards.reveal(card.id)).encrypted_data)).number)
for await (const { from } of client.emails.iterate(ada.id, { limit: 1 })) found.push(from === bob.email)
await client.emails.get(ada.id, 'email_01jd3v8m2ef1pbx9mz5k7q4w6a').catch((error) => found.push(error.code))
document.title = found.join(' ')
`

/** Another site, whose pages run these scripts: `/name` runs `/name.js`. */
async function site(): Promise<{ origin: string; scripts: Map<string, string> }> {
  const scripts = new Map<string, string>()
  const server = createServer(({ url = '' }, response) => {
    const script = scripts.get(url)
    response.setHeader('Content-Type', script === undefined ? 'text/html' : 'text/javascript')
    response.end(script ?? `<!doctype html><title>begun</title><script type="module" src="${url}.js"></script>`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, scripts }
}

async function built(contents: string, define: Record<string, string>): Promise<string> {
  const stdin = { contents, resolveDir: new URL('../..', import.meta.url).pathname, loader: 'ts' } as const
  const { outputFiles } = await build({ stdin, define, bundle: true, format: 'esm', target: 'es2022', write: false })
  return outputFiles[0]!.text
}

test('the TypeScript client works in a browser, with a key and with the session of a person', async () => {
  const browser = await chromiumBrowser()
  if (!browser) return
  onTestFinished(() => browser.close())
  const { origin, scripts } = await site()
  const box = await appliance({ PILLARBOX_HTTP__CORS_ORIGINS: origin })
  await withPassword(box, person)
  const context = await browser.newContext()
  for (const [name, key] of [
    ['/key', JSON.stringify(box.key)],
    ['/session', 'undefined'],
  ] as const) {
    scripts.set(`${name}.js`, await built(program, { BOX: JSON.stringify(box.url), KEY: key }))
    const page = await context.newPage()
    const troubles: string[] = []
    page.on('pageerror', (error) => troubles.push(String(error)))
    if (name === '/session') {
      await page.goto(`${origin}/empty`)
      await page.evaluate(
        ([url, body]) =>
          fetch(`${url}/v1/session`, {
            method: 'POST',
            credentials: 'include',
            headers: { 'Content-Type': 'application/json' },
            body: body!,
          }),
        [box.url, JSON.stringify(person)],
      )
    }
    await page.goto(`${origin}${name}`)
    await page.waitForFunction('document.title !== "begun"').catch(() => undefined)
    expect([name, troubles, await page.title()]).toEqual([name, [], 'Live 493817 4242424242424242 true not_found'])
  }
})

/** A page that has the tools of the box by each revision, and finds out where tokens are given. */
const tools = `
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

const found = []
for (const mode of [{ pin: '2026-07-28' }, 'legacy']) {
  try {
    const client = new Client({ name: 'page', version: '1.0.0' }, { versionNegotiation: { mode } })
    await client.connect(new StreamableHTTPClientTransport(new URL(BOX + '/mcp'), { requestInit: { headers: { Authorization: 'Bearer ' + KEY } } }))
    const { content } = await client.callTool({ name: 'whoami', arguments: {} })
    found.push(/ada@[a-z.]+/.exec(content[0].text)[0])
  } catch (error) {
    found.push(String(error))
  }
}
const { status, headers } = await fetch(BOX + '/mcp', { method: 'POST', headers: { Authorization: 'Bearer wrong' }, body: '{}' })
found.push(status, /resource_metadata="([^"]+)"/.exec(headers.get('WWW-Authenticate'))?.[1])
document.title = found.join(' ')
`

test('a page of an allowed origin is a client of the tools', async () => {
  const browser = await chromiumBrowser()
  if (!browser) return
  onTestFinished(() => browser.close())
  const { origin, scripts } = await site()
  const box = await appliance({ PILLARBOX_HTTP__CORS_ORIGINS: origin })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bound } = await box.call('POST', '/v1/api-keys', { scopes: ['identities:read'], identity_id: ada.id })
  scripts.set('/tools.js', await built(tools, { BOX: JSON.stringify(box.url), KEY: JSON.stringify(bound['key']) }))
  const page = await browser.newPage()
  await page.goto(`${origin}/tools`)
  await page.waitForFunction('document.title !== "begun"')
  const metadata = `${box.url}/.well-known/oauth-protected-resource/mcp`
  expect(await page.title()).toBe(`${ada.email} ${ada.email} 401 ${metadata}`)
})
