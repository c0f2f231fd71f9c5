import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { DoctorReport } from '../../src/doctor/model.ts'
import type { Domain } from '../../src/domains/model.ts'
import { eventChoices } from '../../src/page/browser/webhooks/event-choices.ts'
import { deliver, message, openAppliance } from '../support/appliance.ts'
import type { Appliance } from '../support/appliance.ts'
import { builtPage } from '../support/built-page.ts'
import { peer } from '../support/peer.ts'
import { person, withPassword } from '../support/people.ts'
import { publish } from '../support/verified-domain.ts'
import { WebhookSink } from '../support/webhook-sink.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const executablePath = peer('chromium')
/** Pictures for the documentation are taken only when somebody asks for them: `PAGE_PICTURES=docs/page`. */
const pictures = process.env['PAGE_PICTURES']
const narrow = { width: 360, height: 740 }
const wide = { width: 1100, height: 760 }

interface Axe {
  axe: { run: () => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> }
}

let box: Appliance
let close: () => Promise<void>
let browser: Browser
let page: Page
let ada: { id: string; name: string; email: string; phone_number: string }
const refused: string[] = []

beforeAll(async () => {
  if (executablePath === undefined) return
  await builtPage()
  const opened = await openAppliance({
    PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
    PILLARBOX_WEBHOOKS__ALLOW_HTTP: 'true',
  })
  box = opened.box
  close = opened.close
  await withPassword(box)
  ada = (await box.call<typeof ada>('POST', '/v1/identities', { name: 'Ada', provision_phone: true })).body
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  const context = await browser.newContext({ viewport: wide, reducedMotion: 'reduce' })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  page = await context.newPage()
  page.setDefaultTimeout(10_000)
  page.on('console', (said) => {
    if (said.type() === 'error' && said.text().includes('Content Security Policy')) refused.push(said.text())
  })
  page.on('pageerror', (error) => refused.push(error.message))
  await page.goto(`${box.url}/webhooks`)
  await page.getByLabel('E-mail address').fill(person.email)
  await page.getByLabel('Password').fill(person.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
}, 60_000)

afterAll(async () => {
  await browser?.close()
  await close?.()
})

/** What reaches beyond the screen without being in something that scrolls by itself. */
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest('pre, .scrolls'))
    .map((one) => one.outerHTML.slice(0, 200))`

/** What is shown now, in both colour schemes and on a phone: nothing for axe to say, nothing wider than the screen. */
async function looksWell(name: string): Promise<void> {
  await page.evaluate(axe)
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    if (pictures !== undefined) {
      mkdirSync(pictures, { recursive: true })
      await page.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`) })
    }
    const found = await page.evaluate(async () => {
      const { violations } = await (globalThis as unknown as Axe).axe.run()
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
    })
    expect(found, `${name}, ${colorScheme}`).toEqual([])
  }
  await page.setViewportSize(narrow)
  expect(await page.evaluate(tooWide), `what is too wide of ${name}`).toEqual([])
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}-phone.png`) })
  await page.setViewportSize(wide)
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
}

async function visit(path: string, heading: string): Promise<void> {
  await page.goto(`${box.url}${path}`)
  await page.getByRole('heading', { name: heading, exact: true }).first().waitFor()
}

test.skipIf(executablePath === undefined)('a webhook is made, tried, read and rotated', async () => {
  const sink = await WebhookSink.start()
  await visit('/webhooks', 'Webhooks')
  await page.getByRole('button', { name: 'New webhook' }).click()
  await page.getByLabel('URL').fill('ftp://nowhere')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.locator('#main .refusal, dialog .refusal').first().waitFor()
  expect(await page.getByLabel('URL').getAttribute('aria-invalid')).toBe('true')
  await looksWell('webhook-new')
  await page.getByLabel('URL').fill(`${sink.url}/hook`)
  await page.getByRole('button', { name: 'Create' }).click()
  const secret = await page.locator('.secret strong').textContent()
  expect(secret).toMatch(/^whsec_/)
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('button', { name: 'Send a test' }).click()
  await page.getByText('delivered', { exact: true }).waitFor()
  expect(sink.received.map(({ body }) => body.type)).toEqual(['webhook.test'])
  await page.getByRole('button', { name: 'webhook.test', exact: true }).click()
  await page.getByText('Response: 200').waitFor()
  expect(await page.getByRole('region', { name: 'Body' }).textContent()).toContain(sink.received[0]!.body.id)
  await looksWell('webhook')
  await page.getByRole('button', { name: /^Redeliver/ }).click()
  await sink.until(2)
  await page.getByRole('button', { name: 'New secret' }).click()
  await page.getByRole('button', { name: 'Make a new secret' }).click()
  await page.getByRole('heading', { name: 'The new secret' }).waitFor()
  expect(await page.locator('.secret strong').textContent()).not.toBe(secret)
  await page.getByRole('button', { name: 'Done' }).click()
  await visit('/webhooks', 'Webhooks')
  await page.getByText(`${sink.url}/hook`).waitFor()
  await looksWell('webhooks')
})

test.skipIf(executablePath === undefined)('the events to choose from are those of the box', async () => {
  const { body } = await box.call('POST', '/v1/webhooks', { url: 'https://receiver.test/', events: ['no.such'] })
  const names = /The events are (.*), and \*\./.exec(String(body.error['message']))![1]!.split(', ')
  expect(Object.keys(eventChoices).toSorted()).toEqual(names.toSorted())
})

test.skipIf(executablePath === undefined)(
  'a domain shows what its DNS is to say, looks it up, and is downloaded as a zone',
  async () => {
    await visit('/domains', 'Domains')
    await looksWell('domains')
    await page.getByRole('button', { name: 'Add a domain' }).click()
    await page.getByLabel('Name').fill('no domain')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.locator('dialog .field .refusal').waitFor()
    await page.getByLabel('Name').fill('agents.example')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByRole('heading', { name: 'agents.example' }).waitFor()
    const { body } = await box.call<{ data: Domain[] }>('GET', '/v1/domains')
    const domain = body.data.find(({ name }) => name === 'agents.example')!
    const [first, ...rest] = domain.dns_records
    publish(box.dns, { dns_records: [first!] })
    await page.getByRole('button', { name: 'Check now' }).click()
    await page.getByText(/agents.example is pending; \d+ of \d+ records are not/).waitFor()
    expect(await page.locator('.record').first().getByText('valid', { exact: true }).count()).toBe(1)
    await page.locator('.record').nth(1).getByText('missing').waitFor()
    await page
      .locator('.record')
      .first()
      .getByRole('button', { name: /^Copy the value/ })
      .click()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(first!.value)
    await looksWell('domain')
    publish(box.dns, { dns_records: rest })
    await page.getByRole('button', { name: 'Check now' }).click()
    await page.getByText('verified', { exact: true }).waitFor()
    const [zone] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Zone file' }).click()])
    expect(zone.suggestedFilename()).toBe('agents.example.zone')
    expect(readFileSync(await zone.path(), 'utf8')).toContain('agents.example.')
    await page.getByRole('button', { name: 'Rotate the DKIM keys' }).click()
    await page.getByRole('button', { name: 'Rotate', exact: true }).click()
    await page.getByText('The spare keys sign from now on.', { exact: true }).waitFor()
  },
)

test.skipIf(executablePath === undefined)('a key is made with its scopes, shown once, rotated and revoked', async () => {
  await visit('/keys', 'API keys')
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('mail reader')
  await page.getByLabel('identities:read').uncheck()
  await page.getByLabel('messages:read').uncheck()
  await page.getByRole('button', { name: 'Create' }).click()
  await page.locator('.choices .refusal').waitFor()
  await page.getByLabel('emails:read').check()
  await looksWell('key-new')
  await page.getByRole('button', { name: 'Create' }).click()
  const key = (await page.locator('.secret strong').textContent())!
  const read = await box.call('GET', `/v1/identities/${ada.id}/emails`, undefined, { key })
  expect(read.status).toBe(200)
  expect((await box.call('GET', '/v1/api-keys', undefined, { key })).status).toBe(403)
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText('emails:read').waitFor()
  await looksWell('keys')
  await page.getByRole('button', { name: 'Rotate mail reader' }).click()
  await page.getByRole('button', { name: 'Rotate', exact: true }).click()
  const next = (await page.locator('.secret strong').textContent())!
  await page.getByRole('button', { name: 'Done' }).click()
  expect((await box.call('GET', `/v1/identities/${ada.id}/emails`, undefined, { key })).status).toBe(401)
  expect((await box.call('GET', `/v1/identities/${ada.id}/emails`, undefined, { key: next })).status).toBe(200)
  await page.getByRole('button', { name: 'Revoke mail reader' }).click()
  await page.locator('dialog').getByRole('button', { name: 'Revoke mail reader' }).click()
  await page.getByText('mail reader was revoked.').waitFor()
  expect((await box.call('GET', `/v1/identities/${ada.id}/emails`, undefined, { key: next })).status).toBe(401)
})

test.skipIf(executablePath === undefined)(
  'the health of the box: its state, what went on, the doctor, and what waits',
  async () => {
    await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Counted' }, 'x\n') })
    const late = { url: 'http://127.0.0.1:9/closed', events: ['webhook.test'] }
    const { body: webhook } = await box.call('POST', '/v1/webhooks', late)
    const { body: delivery } = await box.call('POST', `/v1/webhooks/${webhook['id']}/test`)
    await expect.poll(async () => (await box.call('GET', `/v1/queue/${delivery['id']}`)).body['attempts']).toBeGreaterThan(0)
    await visit('/health', 'Health')
    await page.getByText('everything works').waitFor()
    await page.getByRole('img', { name: /^Mail in: \d+ taken, 0 refused/ }).waitFor()
    await page.getByRole('button', { name: 'Look now' }).click()
    await page.getByText(/^The doctor looked/).waitFor({ timeout: 40_000 })
    const { body: report } = await box.call<DoctorReport>('GET', '/v1/doctor')
    await page
      .locator('[aria-labelledby=doctor] li')
      .nth(report.lines.length - 1)
      .waitFor()
    await page.getByRole('button', { name: 'The same as a table' }).click()
    await looksWell('health')
    await page.getByRole('button', { name: 'Last day' }).click()
    await expect.poll(() => page.locator('tbody tr').count()).toBeLessThan(30)
    await page.getByRole('button', { name: `Drop ${delivery['id']}` }).click()
    await page.getByRole('button', { name: 'Drop', exact: true }).click()
    await page.getByText('It is not tried any more.', { exact: true }).waitFor()
    expect((await box.call('GET', `/v1/queue/${delivery['id']}`)).body['state']).toBe('failed')
  },
)

test.skipIf(executablePath === undefined)('nothing broke, and nothing was refused by the policy of the page', () => {
  expect(refused).toEqual([])
})
