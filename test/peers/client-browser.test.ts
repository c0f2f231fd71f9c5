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

test('the TypeScript client works in a browser, with a key and with the session of a person', async () => {
  const browser = await chromiumBrowser()
  if (!browser) return
  onTestFinished(() => browser.close())
  const scripts = new Map<string, string>()
  const site = createServer(({ url = '' }, response) => {
    const script = scripts.get(url)
    response.setHeader('Content-Type', script === undefined ? 'text/html' : 'text/javascript')
    response.end(script ?? `<!doctype html><title>begun</title><script type="module" src="${url}.js"></script>`)
  })
  site.listen(0, '127.0.0.1')
  await once(site, 'listening')
  onTestFinished(() => void site.close())
  const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
  const box = await appliance({ PILLARBOX_HTTP__CORS_ORIGINS: origin })
  await withPassword(box, person)
  const context = await browser.newContext()
  for (const [name, key] of [
    ['/key', JSON.stringify(box.key)],
    ['/session', 'undefined'],
  ] as const) {
    const { outputFiles } = await build({
      stdin: { contents: program, resolveDir: new URL('../..', import.meta.url).pathname, loader: 'ts' },
      define: { BOX: JSON.stringify(box.url), KEY: key },
      bundle: true,
      format: 'esm',
      target: 'es2022',
      write: false,
    })
    scripts.set(`${name}.js`, outputFiles[0]!.text)
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
