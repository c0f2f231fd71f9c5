import { readFileSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { withPassword } from '../support/people.ts'
import { chromiumBrowser, screen } from '../support/screen.ts'

vi.setConfig({ testTimeout: 60_000 })

let browser: Browser | undefined

beforeAll(async () => {
  browser = await chromiumBrowser()
})

afterAll(() => browser?.close())

test('an identity is taken out as a file, and into another, each with its progress', async () => {
  if (!browser) return
  const box = await appliance()
  await withPassword(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: grace } = await box.call('POST', '/v1/identities', { name: 'Grace' })
  for (const number of [1, 2, 3]) {
    const fields = { To: ada['email'], Subject: `Letter ${number}`, 'Message-ID': `<${number}@sender.test>` }
    await deliver(box.smtp, { to: ada['email'], raw: message(fields, 'Hello.\n') })
  }
  const { page, troubles } = await screen(browser, box, `/identities/${ada['id']}/settings`)
  await page.getByRole('button', { name: 'Export' }).click()
  const link = page.getByRole('link', { name: /^Download / })
  await page.getByText('3 e-mails, 0 text messages.').waitFor()
  const [download] = await Promise.all([page.waitForEvent('download'), link.click()])
  const file = await download.path()
  expect(readFileSync(file).subarray(0, 2).toString()).toBe('PK')
  await page.goto(`${box.url}/identities/${grace['id']}/settings`)
  await page
    .getByLabel('File', { exact: true })
    .setInputFiles({ name: 'ada.zip', mimeType: 'application/zip', buffer: readFileSync(file) })
  await page.getByRole('button', { name: 'Import' }).click()
  await page.getByText('3 e-mails and 0 text messages were taken in').waitFor()
  await page.getByRole('link', { name: 'Inbox' }).click()
  await page.getByRole('link', { name: /Letter 3/ }).waitFor()
  expect(troubles).toEqual([])
})

test('what may have been done already is not done twice', async () => {
  if (!browser) return
  const box = await appliance()
  await withPassword(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { page, context } = await screen(browser, box, `/identities/${ada['id']}/inbox`)
  let lost = 0
  await context.route('**/v1/identities/*/emails', async (route) => {
    if (route.request().method() !== 'POST' || lost > 0) return route.continue()
    lost += 1
    // the box hears it, and its answer gets lost
    await route.fetch()
    return route.abort('connectionreset')
  })
  await page.getByRole('button', { name: 'Write' }).click()
  await page.getByLabel('To', { exact: true }).fill('postmaster@pillarbox.test')
  await page.getByLabel('Message', { exact: true }).fill('Only once.')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByText('The box cannot be reached now.').waitFor()
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByText('It is on its way.').waitFor()
  const { body } = await box.call('GET', `/v1/identities/${ada['id']}/emails?direction=outbound`)
  expect([lost, body.data.length]).toEqual([1, 1])
})
