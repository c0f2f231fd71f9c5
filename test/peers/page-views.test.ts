import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { DoctorReport } from '../../src/ops/doctor/model.ts'
import type { Domain } from '../../src/domains/model.ts'
import { eventChoices } from '../../src/web/browser/webhooks/event-choices.ts'
import { type Appliance, appliance, deliver, message, openAppliance } from '../support/appliance.ts'
import { builtPage } from '../support/built-page.ts'
import { blob, card } from '../support/card.ts'
import { looksWell } from '../support/looks.ts'
import { withPassword } from '../support/people.ts'
import { chromiumBrowser, goSubscribed, screen } from '../support/screen.ts'
import { publish } from '../support/verified-domain.ts'
import { WebhookSink } from '../support/webhook-sink.ts'
import { viewOf } from './page-world.ts'

const settings = {
  PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
  PILLARBOX_WEBHOOKS__ALLOW_HTTP: 'true',
  PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0',
  PILLARBOX_BACKUP__DIRECTORY: './backups',
}

let box: Appliance
let close: () => Promise<void>
let browser: Browser | undefined
let ada: { id: string; name: string; email: string; phone_number: string }

beforeAll(async () => {
  browser = await chromiumBrowser()
  if (!browser) return
  await builtPage()
  const opened = await openAppliance(settings)
  box = opened.box
  mkdirSync(join(box.directory, 'backups'))
  close = opened.close
  await withPassword(box)
  ada = (await box.call<typeof ada>('POST', '/v1/identities', { name: 'Ada', provision_phone: true })).body
})

afterAll(async () => {
  await browser?.close()
  await close?.()
})

/** Somebody signed in, in one of the rooms; nothing may break there, nor anybody else be asked. Undefined without a browser. */
async function room(path: string, heading: string): Promise<Page | undefined> {
  return browser && viewOf(browser, box, path, heading)
}

test('the session is asked for once, by the HTML, while the scripts are loaded', async () => {
  const page = await room('/identities', 'Identities')
  if (!page) return
  const asked = await page.evaluate<string[]>(
    'performance.getEntriesByName(`${location.origin}/v1/session`).map(({ initiatorType }) => initiatorType)',
  )
  expect(asked).toEqual(['link'])
  await page.close()
})

test('a webhook is made, tried, read and rotated', async () => {
  const sink = await WebhookSink.start()
  const page = await room('/webhooks', 'Webhooks')
  if (!page) return
  await page.getByRole('button', { name: 'New webhook' }).click()
  await page.getByLabel('URL').fill('ftp://nowhere')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.locator('#main .refusal, dialog .refusal').first().waitFor()
  expect(await page.getByLabel('URL').getAttribute('aria-invalid')).toBe('true')
  await looksWell(page, 'webhook-new')
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
  await looksWell(page, 'webhook')
  await page.getByRole('button', { name: /^Redeliver/ }).click()
  await sink.until(2)
  await page.getByRole('button', { name: 'New secret' }).click()
  await page.getByRole('button', { name: 'Create a new secret' }).click()
  await page.getByRole('heading', { name: 'The new secret' }).waitFor()
  expect(await page.locator('.secret strong').textContent()).not.toBe(secret)
  await page.getByRole('button', { name: 'Done' }).click()
  await page.goto(`${box.url}/webhooks`)
  await page.getByText(`${sink.url}/hook`).waitFor()
  await looksWell(page, 'webhooks')
})

test('a webhook that is changed stays what it was in all else', async () => {
  const page = await room('/webhooks', 'Webhooks')
  if (!page) return
  const events = ['email.received', 'sms.received']
  const input = { url: 'https://receiver.test/hook', events, identity_id: ada.id, headers: { Authorization: 'Bearer hush' } }
  const { body: before } = await box.call('POST', '/v1/webhooks', input)
  await page.goto(`${box.url}/webhooks/${before['id']}`)
  await page.getByRole('button', { name: 'Change' }).click()
  await page.getByRole('option', { name: /^Ada/ }).waitFor({ state: 'attached' })
  await page.getByLabel('Description').fill('of Ada')
  await page.locator('dialog').getByRole('button', { name: 'Change' }).click()
  await page.getByText('The webhook was changed.').waitFor()
  const { body: after } = await box.call('GET', `/v1/webhooks/${before['id']}`)
  expect(after).toMatchObject({ ...input, description: 'of Ada', active: true })
  await box.call('DELETE', `/v1/webhooks/${before['id']}`)
})

/** A box with Ada, whose 100 newest identities are others. */
async function crowded() {
  const crowd = await appliance(settings)
  await withPassword(crowd)
  const { body: oldest } = await crowd.call<{ id: string; email: string }>('POST', '/v1/identities', { name: 'Ada' })
  for (let index = 0; index < 100; index += 1) await crowd.call('POST', '/v1/identities', { name: `Other ${index}` })
  return { crowd, oldest }
}

test('the identity of a webhook and of a catch-all stays what it was when it is not among the newest, or none are listed', async () => {
  if (!browser) return
  const { crowd, oldest } = await crowded()
  const input = { url: 'https://receiver.test/hook', events: ['email.received'], identity_id: oldest.id }
  const { body: webhook } = await crowd.call('POST', '/v1/webhooks', input)
  const { body: domain } = await crowd.call('POST', '/v1/domains', { name: 'agents.example' })
  await crowd.call('PATCH', `/v1/domains/${domain['id']}`, { catch_all: oldest.id })

  const page = await viewOf(browser, crowd, `/webhooks/${webhook['id']}`, input.url)
  const dialog = page.locator('dialog')
  await page.getByRole('button', { name: 'Change' }).click()
  await page.getByRole('option', { name: /^Other 99/ }).waitFor({ state: 'attached' })
  await expect
    .poll(() => dialog.getByLabel('Of', { exact: true }).locator('option:checked').textContent())
    .toBe(`Ada · ${oldest.email}`)
  await page.getByLabel('Description').fill('of Ada')
  await dialog.getByRole('button', { name: 'Change' }).click()
  await page.getByText('The webhook was changed.').waitFor()
  const { body: changed } = await crowd.call('GET', `/v1/webhooks/${webhook['id']}`)
  expect(changed).toMatchObject({ identity_id: oldest.id, description: 'of Ada' })

  await page.route('**/v1/identities?*', (route) => route.abort())
  await page.goto(`${crowd.url}/domains/${domain['id']}`)
  await page.getByRole('button', { name: 'Catch-all' }).click()
  await dialog.getByRole('alert').getByRole('button', { name: 'Try again' }).waitFor()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText('The catch-all was changed.').waitFor()
  expect((await crowd.call('GET', `/v1/domains/${domain['id']}`)).body['catch_all']).toBe(oldest.id)
})

test('an identity that was chosen stays chosen while others are searched for', async () => {
  if (!browser) return
  const { crowd, oldest } = await crowded()
  const page = await viewOf(browser, crowd, '/keys', 'API keys')
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('of Ada')
  await page.getByLabel('Search identities').fill('ada@')
  await page.getByRole('option', { name: /^Other 99/ }).waitFor({ state: 'detached' })
  await page.getByLabel('Of', { exact: true }).selectOption(oldest.id)
  await page.getByLabel('Search identities').fill('Other 42')
  await page.getByRole('option', { name: /^Other 42/ }).waitFor({ state: 'attached' })
  await page.getByRole('button', { name: 'Create' }).click()
  await page.locator('.secret strong').waitFor()
  const { body } = await crowd.call('GET', '/v1/api-keys')
  expect(body.data.find(({ label }: { label: string }) => label === 'of Ada').identity_id).toBe(oldest.id)
})

test('the events to choose from are those of the box', async () => {
  if (!browser) return
  const { body } = await box.call('POST', '/v1/webhooks', { url: 'https://receiver.test/', events: ['no.such'] })
  const names = /The events are (.*), and \*\./.exec(String(body.error['message']))![1]!.split(', ')
  expect(Object.keys(eventChoices).toSorted()).toEqual(names.toSorted())
})

test('a domain shows what its DNS is to say, looks it up, and is downloaded as a zone', async () => {
  const page = await room('/domains', 'Domains')
  if (!page) return
  await looksWell(page, 'domains')
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
  await looksWell(page, 'domain')
  publish(box.dns, { dns_records: rest })
  await page.getByRole('button', { name: 'Check now' }).click()
  await page.getByText('verified', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Add an alias' }).click()
  await page.getByLabel('Address, before @agents.example').fill('Sales')
  await page.getByRole('option', { name: /^Ada/ }).waitFor({ state: 'attached' })
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await page.locator('dialog .field .refusal').waitFor()
  await page.getByLabel('Address, before @agents.example').fill('sales')
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByText('sales@agents.example was added.').waitFor()
  await page.getByText('Mail for unknown addresses is rejected.').waitFor()
  await page.getByRole('button', { name: 'Catch-all' }).click()
  await page.getByRole('option', { name: /^Ada/ }).waitFor({ state: 'attached' })
  await page.getByLabel('Mail for unknown addresses').selectOption(ada.id)
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText(/^Mail for unknown addresses goes to/).waitFor()
  await looksWell(page, 'aliases')
  await page.getByRole('button', { name: 'Delete sales@agents.example' }).click()
  await page.getByRole('button', { name: 'Delete the alias' }).click()
  await page.getByText('sales@agents.example was deleted.').waitFor()
  expect((await box.call('GET', `/v1/domains/${domain.id}/aliases`)).body.data).toEqual([])
  const [zone] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Zone file' }).click()])
  expect(zone.suggestedFilename()).toBe('agents.example.zone')
  expect(readFileSync(await zone.path(), 'utf8')).toContain('agents.example.')
  await page.getByRole('button', { name: 'Rotate the DKIM keys' }).click()
  await page.getByRole('button', { name: 'Rotate', exact: true }).click()
  await page.getByText('The spare keys sign from now on.', { exact: true }).waitFor()
})

test('a key is made with its scopes, shown once, rotated and revoked', async () => {
  const page = await room('/keys', 'API keys')
  if (!page) return
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('mail reader')
  await page.getByLabel('identities:read').uncheck()
  await page.getByLabel('messages:read').uncheck()
  await page.getByRole('button', { name: 'Create' }).click()
  await page.locator('.choices .refusal').waitFor()
  await page.getByLabel('emails:read').check()
  await looksWell(page, 'key-new')
  await page.getByRole('button', { name: 'Create' }).click()
  const key = (await page.locator('.secret strong').textContent())!
  const said = page.locator('dialog').getByRole('status')
  await page.getByRole('button', { name: /^Copy the key/ }).click()
  await expect.poll(() => said.textContent()).toMatch(/Copied: the key/)
  await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(new Error())')
  await page.getByRole('button', { name: /^Copy the key/ }).click()
  await expect.poll(() => said.textContent()).toMatch(/does not allow the page to copy/)
  const read = await box.call('GET', `/v1/identities/${ada.id}/emails`, undefined, { key })
  expect(read.status).toBe(200)
  expect((await box.call('GET', '/v1/api-keys', undefined, { key })).status).toBe(403)
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText('emails:read').waitFor()
  await looksWell(page, 'keys')
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

/** An hour, and a day, that the box might have had: an hour is longer than a test. */
function plantMetrics(): void {
  const database = new DatabaseSync(join(box.directory, 'data', 'pillarbox.db'), { timeout: 60_000 })
  const now = Math.floor(Date.now() / 60_000) * 60_000
  const row = database.prepare('INSERT OR REPLACE INTO figures VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
  database.exec('BEGIN')
  for (let ago = 1; ago <= 1440; ago++) {
    const wave = Math.round(20 + 15 * Math.sin(ago / 9))
    const at = new Date(now - ago * 60_000).toISOString()
    row.run(
      at,
      wave,
      ago % 13 === 0 ? 4 : 0,
      wave >> 1,
      ago % 29 === 0 ? 1 : 0,
      wave * 3,
      wave,
      0,
      wave * 7,
      wave >> 2,
      0,
      8e10 - ago * 1e6,
      4e8,
    )
  }
  database.exec('COMMIT')
  database.close()
}

test('the health of the box: its state, what went on, the doctor, and what waits', async () => {
  const page = await room('/health', 'Health')
  if (!page) return
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Counted' }, 'x\n') })
  plantMetrics()
  const late = { url: 'http://127.0.0.1:9/closed', events: ['webhook.test'] }
  const { body: webhook } = await box.call('POST', '/v1/webhooks', late)
  const { body: delivery } = await box.call('POST', `/v1/webhooks/${webhook['id']}/test`)
  await expect.poll(async () => (await box.call('GET', `/v1/queue/${delivery['id']}`)).body['attempts']).toBeGreaterThan(0)
  await page.reload()
  await page.getByText('healthy', { exact: true }).waitFor()
  const chart = await page.getByRole('img', { name: /^Mail in/ }).getAttribute('aria-label')
  expect(Number(/^Mail in: ([\d,]+) taken/.exec(chart!)![1]!.replace(',', ''))).toBeGreaterThan(500)
  await page.getByRole('button', { name: 'Run checks' }).click()
  await page.getByText(/^Checks done/).waitFor({ timeout: 100_000 })
  const { body: report } = await box.call<DoctorReport>('GET', '/v1/doctor')
  await page
    .locator('[aria-labelledby=doctor] li')
    .nth(report.lines.length - 1)
    .waitFor()
  await looksWell(page, 'health')
  await page.getByRole('button', { name: 'Show as a table' }).click()
  expect(await page.locator('tbody tr').count()).toBeGreaterThanOrEqual(60)
  await page.getByRole('button', { name: 'Last day' }).click()
  await expect.poll(() => page.locator('tbody tr').count()).toSatisfy((count: number) => count >= 24 && count <= 25)
  await page.getByRole('button', { name: `Drop ${delivery['id']}` }).click()
  await page.getByRole('button', { name: 'Drop', exact: true }).click()
  await page.getByText('The delivery was dropped.', { exact: true }).waitFor()
  expect((await box.call('GET', `/v1/queue/${delivery['id']}`)).body['state']).toBe('failed')
})

test('text messages, by number: what comes is there at once, an answer goes out and shows how far it came', async () => {
  const page = await room(`/identities/${ada?.id}/sms`, 'Ada')
  if (!page) return
  await page.getByText('No text message yet.').waitFor()
  const { body: grace } = await box.call('POST', '/v1/identities', { name: 'Grace', provision_phone: true })
  const text = { to: ada.phone_number, body: 'Your verification code is 493817.' }
  await box.call('POST', `/v1/identities/${grace['id']}/sms`, text)
  await page.getByRole('link', { name: /^\+\d+ 1 unread message/ }).click()
  await page.getByRole('button', { name: 'Copy the code 493817' }).click()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe('493817')
  await page.getByLabel('Text message', { exact: true }).fill('Thank you.')
  await page.getByRole('button', { name: 'Send' }).click()
  await page.locator('.text.ours').getByText('delivered', { exact: true }).waitFor()
  expect(await page.getByLabel('Text message', { exact: true }).inputValue()).toBe('')
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/sms?unread=true`)
  expect(body.data).toEqual([])
  await looksWell(page, 'sms')
  await page.getByRole('button', { name: 'Write' }).click()
  await page.getByLabel('To', { exact: true }).fill('somebody')
  await page.locator('dialog').getByRole('textbox', { name: 'Text message' }).fill('Hello')
  await page.locator('dialog').getByRole('button', { name: 'Send' }).click()
  await page.locator('dialog .field .refusal').waitFor()
  // the loopback carries nothing to the world, and says so
  await page.getByLabel('To', { exact: true }).fill('+15550100199')
  await page.locator('dialog').getByRole('button', { name: 'Send' }).click()
  await page.locator('.text.ours').getByText('failed', { exact: true }).waitFor()
})

test('a text message is deleted, and restored from the trash', async () => {
  if (!browser) return
  const { body: iris } = await box.call('POST', '/v1/identities', { name: 'Iris', provision_phone: true })
  const { body: otto } = await box.call('POST', '/v1/identities', { name: 'Otto', provision_phone: true })
  const at = `/v1/identities/${iris['id']}/sms`
  for (const text of ['To be kept', 'To be lost']) {
    await box.call('POST', `/v1/identities/${otto['id']}/sms`, { to: iris['phone_number'], body: text })
  }
  await box.settled()
  const page = await room(`/identities/${iris['id']}/sms/${encodeURIComponent(otto['phone_number'])}`, 'Iris')
  if (!page) return
  const conversation = page.getByRole('list', { name: /^With / })
  await conversation.getByText('To be lost').waitFor()
  for (let left = 2; left > 0; left -= 1) {
    await conversation
      .getByRole('button', { name: /^Delete the text message/ })
      .first()
      .click()
    await page.locator('dialog').getByRole('button', { name: 'Delete', exact: true }).click()
    await expect.poll(() => conversation.getByRole('listitem').count()).toBe(left - 1)
  }
  await page.getByText('No text message yet.').waitFor()
  await page.getByLabel('Show').selectOption('Trash')
  const thrown = (text: string) =>
    page.getByRole('region', { name: 'Text messages' }).getByRole('listitem').filter({ hasText: text })
  await thrown('To be kept').waitFor()
  await looksWell(page, 'sms-trash')
  await thrown('To be lost').getByRole('button', { name: 'Delete permanently' }).click()
  await thrown('To be lost').waitFor({ state: 'detached' })
  await thrown('To be kept').getByRole('button', { name: 'Restore' }).click()
  await page.getByText('No text message.').waitFor()
  await conversation.getByText('To be kept').waitFor()
  expect((await box.call('GET', at)).body.data).toMatchObject([{ body: 'To be kept' }])
  expect((await box.call('GET', `${at}?trash=true`)).body.data).toEqual([])
})

test('cards: the budget as a bar, frozen, unfrozen, another budget, transactions, cancelled; never what is encrypted', async () => {
  const page = await room(`/identities/${ada?.id}/cards`, 'Ada')
  if (!page) return
  const secret = blob()
  const input = card({ label: 'Travel', encrypted_data: secret, budget_cents: 50_000, period: 'monthly' })
  const { body: travel } = await box.call('POST', `/v1/identities/${ada.id}/cards`, input)
  const answers: string[] = []
  page.on(
    'response',
    (response) =>
      void response.text().then(
        (said) => answers.push(said),
        () => undefined,
      ),
  )
  await page.reload()
  await box.call('POST', `/v1/cards/${travel['id']}/reveal`, { amount_cents: 1250, purpose: 'train to Lyon' })
  await page.getByRole('meter', { name: 'a month' }).and(page.locator('[aria-valuetext="$12.50 of $500.00"]')).waitFor()
  await page.getByRole('button', { name: 'Freeze' }).click()
  await page.locator('dialog').getByRole('button', { name: 'Freeze' }).click()
  await page.getByText('frozen', { exact: true }).waitFor()
  await box.call('POST', `/v1/cards/${travel['id']}/reveal`, { amount_cents: 100, purpose: 'a coffee' })
  await page.getByRole('button', { name: 'Unfreeze' }).click()
  await page.getByText('active', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Budget' }).click()
  await page.getByRole('textbox', { name: 'Budget' }).fill('-1')
  await page.getByRole('button', { name: 'Change' }).click()
  await page.locator('dialog .field .refusal').waitFor()
  await page.getByRole('textbox', { name: 'Budget' }).fill('20.50')
  await page.getByRole('button', { name: 'Change' }).click()
  await page.getByRole('meter', { name: 'a month' }).and(page.locator('[aria-valuetext="$12.50 of $20.50"]')).waitFor()
  await page.getByRole('button', { name: 'Transactions' }).click()
  await page.getByText('train to Lyon').waitFor()
  await page
    .getByRole('row', { name: /a coffee/ })
    .getByText('refused')
    .waitFor()
  await looksWell(page, 'cards')
  await page.getByRole('button', { name: 'Cancel the card' }).click()
  await page.getByRole('button', { name: 'Cancel •••• 4242' }).click()
  await page.getByText('cancelled', { exact: true }).waitFor()
  expect(answers.join('\n')).toContain(travel['id'])
  expect(answers.join('\n')).not.toContain(secret)
})

test('the budget of a card is shown and typed in the digits that ISO 4217 gives its currency', async () => {
  const page = await room(`/identities/${ada?.id}/cards`, 'Ada')
  if (!page) return
  const input = card({ label: 'Budapest', budget_cents: 1_000_000, currency: 'huf' })
  const { body: made } = await box.call('POST', `/v1/identities/${ada.id}/cards`, input)
  await page.reload()
  await page.locator('[aria-valuetext$="0.00 of HUF\u00a010,000.00"]').waitFor({ timeout: 10_000 })
  await page.getByRole('button', { name: 'Budget' }).click()
  const budget = page.getByRole('textbox', { name: 'Budget' })
  expect(await budget.inputValue()).toBe('10000.00')
  await budget.fill('20000')
  await page.getByRole('button', { name: 'Change' }).click()
  await page.getByText('The budget of Budapest was changed.').waitFor()
  expect((await box.call('GET', `/v1/cards/${made['id']}`)).body['budget_cents']).toBe(2_000_000)
  await box.call('DELETE', `/v1/cards/${made['id']}`)
})

test('one-time passwords: set up, a code on demand that holds as long as its ring says, deleted', async () => {
  const page = await room(`/identities/${ada?.id}/totp`, 'Ada')
  if (!page) return
  await page.getByRole('button', { name: 'New one-time password' }).click()
  await page.getByLabel('Secret', { exact: true }).fill('no base32!')
  await page.getByLabel('Service', { exact: true }).fill('Example')
  await page.getByRole('button', { name: 'Set up' }).click()
  await page.locator('dialog .field .refusal').waitFor()
  await page.getByLabel('Secret', { exact: true }).fill('JBSW Y3DP EHPK 3PXP')
  await page.getByRole('button', { name: 'Set up' }).click()
  const reads = async (): Promise<number> =>
    (await box.call('GET', `/v1/identities/${ada.id}/events?type=totp.read`)).body.data.length
  await page.getByRole('button', { name: 'Show the code of Example' }).waitFor()
  expect(await reads()).toBe(0)
  await page.getByRole('button', { name: 'Show the code of Example' }).click()
  expect(await page.locator('.code strong').textContent()).toMatch(/^\d{6}$/)
  expect(await page.getByRole('img', { name: /^Expires in: \d+ s$/ }).count()).toBe(1)
  expect(await reads()).toBe(1)
  await looksWell(page, 'totp')
  await page.getByRole('button', { name: 'Delete Example' }).click()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByText('No one-time password yet.').waitFor()
})

test('logins: stored, shown on demand with a record, changed, deleted', async () => {
  const page = await room(`/identities/${ada?.id}/logins`, 'Ada')
  if (!page) return
  await page.getByRole('button', { name: 'New login' }).click()
  await page.getByLabel('Place', { exact: true }).fill('GitHub')
  await page.getByLabel('Address', { exact: true }).fill('ftp://github.com')
  await page.getByRole('button', { name: 'Store' }).click()
  await page.locator('dialog .field .refusal').waitFor()
  await page.getByLabel('Address', { exact: true }).fill('https://github.com/login')
  await page.getByLabel('User name', { exact: true }).fill('ada')
  await page.getByLabel('Password', { exact: true }).fill('correct horse')
  await looksWell(page, 'login-new')
  await page.getByRole('button', { name: 'Store' }).click()
  await page.getByText('github.com · ada · password').waitFor()
  const reveals = async (): Promise<number> =>
    (await box.call('GET', `/v1/identities/${ada.id}/events?type=login.revealed`)).body.data.length
  expect([await page.content(), await reveals()]).toEqual([expect.not.stringContaining('correct horse'), 0])
  await page.getByRole('button', { name: 'Show the login at GitHub' }).click()
  await page.getByText('correct horse').waitFor()
  expect(await reveals()).toBe(1)
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('button', { name: 'Change GitHub' }).click()
  await page.getByLabel('User name', { exact: true }).fill('')
  await page.getByLabel('API key', { exact: true }).fill('ghp_key')
  await page.getByRole('button', { name: 'Change', exact: true }).last().click()
  await page.getByText('github.com · password · API key').waitFor()
  const { body: listed } = await box.call('GET', `/v1/identities/${ada.id}/logins`)
  const { body: revealed } = await box.call('POST', `/v1/logins/${listed.data[0].id}/reveal`, {})
  expect(revealed).toMatchObject({ username: null, password: 'correct horse', api_key: 'ghp_key' })
  await looksWell(page, 'logins')
  await page.getByRole('button', { name: 'Delete GitHub' }).click()
  await page.getByRole('button', { name: 'Delete', exact: true }).last().click()
  await page.getByText('No login yet.').waitFor()
})

test('a login keeps its one-time password when its label is changed before those can be listed', async () => {
  if (!browser) return
  const secret = { secret: 'JBSWY3DPEHPK3PXP', service_name: 'Forge' }
  const { body: totp } = await box.call('POST', `/v1/identities/${ada.id}/totp`, secret)
  const { body: login } = await box.call('POST', `/v1/identities/${ada.id}/logins`, {
    label: 'Forge',
    password: 'p',
    totp_id: totp['id'],
  })
  const page = await room(`/identities/${ada.id}/logins`, 'Ada')
  if (!page) return
  await page.route('**/totp*', (route) => route.abort())
  await page.getByRole('button', { name: 'Change Forge' }).click()
  await page.getByLabel('Place', { exact: true }).fill('Smithy')
  await page.locator('dialog').getByRole('button', { name: 'Change', exact: true }).click()
  await page.getByText('The login at Forge was changed.').waitFor()
  expect((await box.call('GET', `/v1/logins/${login['id']}`)).body).toMatchObject({ label: 'Smithy', totp_id: totp['id'] })
  await box.call('DELETE', `/v1/logins/${login['id']}`)
  await box.call('DELETE', `/v1/identities/${ada.id}/totp/${totp['id']}`)
})

test('an identity is given a time at which it is deleted, and it is taken back', async () => {
  if (!browser) return
  const { body: brief } = await box.call('POST', '/v1/identities', { name: 'Brief' })
  const page = await room(`/identities/${brief['id']}/settings`, 'Brief')
  if (!page) return
  const expiry = async (): Promise<unknown> => (await box.call('GET', `/v1/identities/${brief['id']}`)).body['expires_at']
  await page.getByLabel('Delete at').fill('2001-01-01T00:00')
  await page.getByRole('button', { name: 'Change', exact: true }).click()
  await page.locator('.field .refusal').waitFor()
  await page.getByLabel('Delete at').fill('2099-01-01T12:00')
  await page.getByRole('button', { name: 'Change', exact: true }).click()
  await page.getByText('The time of deletion was changed.').waitFor()
  expect(await expiry()).toMatch(/^2099-01-0[12]T/)
  await page.getByLabel('Delete at').fill('')
  await page.getByRole('button', { name: 'Change', exact: true }).click()
  await expect.poll(expiry).toBeNull()
})

test('an agent is made of an identity, with its DID, links and reputation; changed and deleted', async () => {
  const page = await room('/agents', 'Agents')
  if (!page) return
  await page.getByRole('button', { name: 'New agent' }).click()
  await page.getByLabel('Identity').selectOption({ label: `Ada · ${ada.email}` })
  await page.getByLabel('Handle').fill('ada-the-first')
  await page.getByLabel('Purpose').fill('Books tables.')
  await page.getByLabel('Capabilities').fill('reservations\ntaxis')
  await page.getByLabel('Links').fill('My own page http://ada.example')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.locator('dialog .field .refusal').waitFor()
  expect(await page.getByLabel('Links').getAttribute('aria-invalid')).toBe('true')
  await page.getByLabel('Links').fill('My own page https://ada.example')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('heading', { name: 'Reputation' }).waitFor()
  const { body } = await box.call('GET', '/v1/agents?handle=ada-the-first')
  const [agent] = body.data
  expect(agent).toMatchObject({
    capabilities: ['reservations', 'taxis'],
    links: [{ name: 'My own page', url: 'https://ada.example' }],
  })
  await page.getByText(agent.did).waitFor()
  await page.getByText('bronze').waitFor()
  const { body: reputation } = await box.call('GET', `/v1/agents/${agent.id}/reputation`)
  expect(await page.locator('.components li').count()).toBe((reputation['components'] as unknown[]).length)
  await looksWell(page, 'agent')
  await page.getByRole('button', { name: 'Change' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Ada the First')
  await page.locator('dialog').getByRole('button', { name: 'Change' }).click()
  await page.getByRole('heading', { name: 'Ada the First', exact: true }).waitFor()
  await page.getByRole('link', { name: 'All agents' }).click()
  await page.getByRole('link', { name: 'Ada the First' }).waitFor()
  await looksWell(page, 'agents')
  await page.getByRole('link', { name: 'Ada the First' }).click()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.locator('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No agent yet.').waitFor()
})

test('an identity is taken out as a file, and into another, each with its progress', async () => {
  const page = await room(`/identities/${ada?.id}/archive`, 'Ada')
  if (!page) return
  const { body: hedy } = await box.call('POST', '/v1/identities', { name: 'Hedy' })
  const fields = { To: ada.email, Subject: 'To be kept', 'Message-ID': '<kept@sender.test>' }
  await deliver(box.smtp, { to: ada.email, raw: message(fields, 'Hello.\n') })
  await page.getByRole('button', { name: 'Export' }).click()
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download' }).click()])
  const buffer = readFileSync(await download.path())
  expect(buffer.subarray(0, 2).toString()).toBe('PK')
  await looksWell(page, 'archive')
  await page.goto(`${box.url}/identities/${hedy['id']}/archive`)
  await page.getByText('Nothing yet.').waitFor()
  await page.getByLabel('File', { exact: true }).setInputFiles({ name: 'ada.zip', mimeType: 'application/zip', buffer })
  await page.getByRole('button', { name: 'Import' }).click()
  await page.getByText(/^\d e-mails? and \d text messages? were imported/).waitFor()
  await page.getByRole('link', { name: 'Inbox' }).click()
  await page.getByRole('link', { name: /To be kept/ }).waitFor()
})

test('a backup is made with its progress, and is among those there are', async () => {
  const page = await room('/health', 'Health')
  if (!page) return
  await page.getByText('None yet.').waitFor()
  await page.getByRole('button', { name: 'Create a backup' }).click()
  await page.getByRole('progressbar', { name: 'Backup' }).waitFor()
  await page.getByText('The backup was created.').waitFor({ timeout: 100_000 })
  await page.locator('[aria-labelledby=backups] li').waitFor()
  const { body } = await box.call('GET', '/v1/backups')
  expect(await page.getByText(body.data[0].name).count()).toBe(1)
})

test('who is not the operator is told so once, in the room of the box’s health', async () => {
  if (!browser) return
  const grace = { email: 'grace@example.com', password: 'another long and quiet evening' }
  await box.app.accounts.add({ name: 'Grace', ...grace })
  const { page, troubles } = await screen(browser, box, '/health', { visitor: true })
  await page.getByLabel('E-mail address').fill(grace.email)
  await page.getByLabel('Password').fill(grace.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Only the operator of the box can see its health.').waitFor()
  expect(await page.getByRole('alert').filter({ hasText: /./ }).count()).toBe(0)
  expect(await page.getByRole('heading', { level: 2 }).count()).toBe(0)
  expect(troubles).toEqual([])
})

test('the audit log is read and filtered', async () => {
  const page = await room('/account', 'Account')
  if (!page) return
  const { body: made } = await box.call('POST', '/v1/api-keys', { label: 'audited', scopes: ['messages:read'] })
  const { body: eve } = await box.call('POST', '/v1/identities', { name: 'Audited' })
  await page.getByRole('link', { name: 'Audit log' }).click()
  await page.getByRole('heading', { name: 'Audit log' }).waitFor()
  await page.getByRole('cell', { name: made['id'] as string }).waitFor()
  const actions = async (): Promise<string[]> => page.locator('tbody td:nth-child(4)').allTextContents()
  expect(await actions()).toContain('identity.created')
  await looksWell(page, 'audit')
  await page.getByLabel('What').selectOption('API keys')
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.getByText('identity.created').waitFor({ state: 'detached' })
  await expect.poll(async () => new Set((await actions()).map((action) => action.split('.')[0]))).toEqual(new Set(['key']))
  expect((await box.call('PATCH', '/v1/senders', { block: ['@audited.example'] })).status).toBe(200)
  await page.getByLabel('What').selectOption('policies and lists')
  await page.getByRole('button', { name: 'Filter' }).click()
  await expect.poll(actions).toEqual(['rules.changed'])
  await page.getByLabel('What').selectOption('identities')
  await page.getByLabel('Identity').selectOption(eve['id'] as string)
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.getByText('key.created').first().waitFor({ state: 'detached' })
  await expect.poll(actions).toEqual(['identity.created'])
  await page.getByLabel('By').fill('nobody')
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.getByText('No results.').waitFor()
})

test('a card is frozen again although the answer to the first time was lost', async () => {
  if (!browser) return
  const { body: cora } = await box.call('POST', '/v1/identities', { name: 'Cora' })
  const { body: taxi } = await box.call('POST', `/v1/identities/${cora['id']}/cards`, card({ label: 'Taxi' }))
  const page = (await room(`/identities/${cora['id']}/cards`, 'Cora'))!
  let lost = 0
  await page.route('**/freeze', async (route) => {
    if (lost > 0) return route.continue()
    lost += 1
    await route.fetch()
    return route.abort('connectionreset')
  })
  const freeze = async (): Promise<void> => {
    await page.getByRole('button', { name: 'Freeze' }).click()
    await page.locator('dialog').getByRole('button', { name: 'Freeze' }).click()
  }
  const status = async (): Promise<unknown> => (await box.call('GET', `/v1/cards/${taxi['id']}`)).body['status']
  await freeze()
  await page.getByText('frozen', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Unfreeze' }).click()
  await page.getByText('active', { exact: true }).waitFor()
  await freeze()
  await page.getByText(/is frozen\.$/).waitFor()
  expect([lost, await status()]).toEqual([1, 'frozen'])
})

test('the same call some minutes after one whose answer was lost is another one', async () => {
  if (!browser) return
  const input = { url: 'https://receiver.test/later', events: ['email.received'], description: 'Later' }
  const { body: hook } = await box.call('POST', '/v1/webhooks', input)
  const { page } = await screen(browser, box, '/')
  await page.clock.install()
  await page.goto(`${box.url}/webhooks/${hook['id']}`)
  let tries = 0
  await page.route('**/test', async (route) => {
    tries += 1
    if (tries > 1) return route.continue()
    await route.fetch()
    return route.abort('connectionreset')
  })
  const deliveries = async (): Promise<number> =>
    (await box.call('GET', `/v1/webhooks/${hook['id']}/deliveries`)).body.data.length
  const send = async (): Promise<void> => {
    const before = tries
    await page.getByRole('button', { name: 'Send a test' }).click()
    await expect.poll(() => tries).toBe(before + 1)
  }
  await send()
  await page.getByText('The box cannot be reached.').waitFor()
  expect(await deliveries()).toBe(1)
  await page.clock.fastForward(150_000)
  await send()
  await page.getByText('A test event was queued.').waitFor()
  expect(await deliveries()).toBe(2)
})

test('a number that an identity gets or gives back elsewhere is shown at once', async () => {
  if (!browser) return
  const { body: nell } = await box.call('POST', '/v1/identities', { name: 'Nell' })
  const { page } = await screen(browser, box, '/')
  await goSubscribed(page, `${box.url}/identities/${nell['id']}/sms`)
  await page.getByRole('heading', { name: 'Nell has no phone number' }).waitFor()
  await page.waitForTimeout(500)
  const { body: phone } = await box.call('POST', `/v1/identities/${nell['id']}/phone`, {})
  await page.getByText(phone['phone_number'] as string).waitFor({ timeout: 30_000 })
  await box.call('DELETE', `/v1/identities/${nell['id']}/phone`)
  await page.getByRole('heading', { name: 'Nell has no phone number' }).waitFor({ timeout: 30_000 })
  expect(await page.getByText(phone['phone_number'] as string).count()).toBe(0)
})
