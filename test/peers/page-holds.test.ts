import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Email } from '../../src/mail/model.ts'
import type { Pair } from '../outbound/outgoing.ts'
import { looksWell } from '../support/looks.ts'
import { tabTo } from '../support/screen.ts'
import { openPageWorld, viewOf } from './page-world.ts'

let world: Pair
let agent: string
let browser: Browser | undefined
let close: (() => Promise<void>) | undefined

beforeAll(async () => {
  const opened = await openPageWorld()
  if (!opened) return
  ;({ world, browser, close } = opened)
  agent = (await world.box.call('POST', '/v1/api-keys', { label: 'agent' })).body['key'] as string
  const rules = [{ when: { found: ['secret', 'card'] }, action: 'hold' }]
  await world.box.call('PATCH', '/v1/policy', { preset: 'all', rules })
})

afterAll(() => close?.())

async function view(path: string, heading: string): Promise<Page | undefined> {
  return browser && viewOf(browser, world.box, path, heading)
}

async function sendHeld(input: object): Promise<Email> {
  const { box, ada, bob } = world
  const { status, body } = await box.call<Email>(
    'POST',
    `/v1/identities/${ada.id}/emails`,
    { to: bob.email, ...input },
    { key: agent },
  )
  expect([status, body.status]).toEqual([201, 'held'])
  return body
}

test('a held e-mail appears without a reload, is read whole, approved by the keyboard, and leaves; the other screen shows it', async () => {
  const page = await view('/holds', 'Holds')
  const other = await view('/holds', 'Holds')
  if (!page || !other) return
  const { box, ada, bob } = world
  await page.getByText('Nothing is held.').waitFor()
  const file = { filename: 'note.txt', content: Buffer.from('Attached.').toString('base64'), content_type: 'text/plain' }
  const { id } = await sendHeld({
    subject: 'The card',
    body_text: 'Pay by 4111 1111 1111 1111.',
    body_html: '<p>Pay by <b>4111 1111 1111 1111</b>, as <i>HTML</i>.</p>',
    bcc: ada.email,
    attachments: [file],
  })
  await page.getByRole('link', { name: 'E-mail' }).waitFor()
  await other.getByRole('link', { name: 'E-mail' }).click()
  await other.getByRole('button', { name: 'Approve' }).waitFor()
  await looksWell(page, 'holds')
  await tabTo(page, /^E-mail$/)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Approve' }).waitFor()
  await page.getByText(`hold: rule 1 of the account, for ${bob.email}`).waitFor()
  await page.getByText('in body_text').waitFor()
  await page.locator('dd', { hasText: ada.email }).last().waitFor()
  await page.getByRole('button', { name: /note\.txt/ }).waitFor()
  await page.frameLocator('.mail-frame').getByText('as HTML').waitFor()
  await page.getByRole('button', { name: 'Show as text' }).click()
  await page.locator('.mail-text').getByText('Pay by 4111 1111 1111 1111.', { exact: true }).waitFor()
  await page.getByText('Pay by 4111 1111 1111 1111, as HTML.').waitFor()
  await looksWell(page, 'hold')
  await tabTo(page, /^Approve$/)
  await page.keyboard.press('Enter')
  await page.getByText('approved', { exact: true }).waitFor()
  await other.getByText('approved', { exact: true }).waitFor()
  expect(await other.getByRole('button', { name: 'Approve' }).count()).toBe(0)
  await box.settled()
  const { body } = await box.call('GET', `/v1/identities/${bob.id}/emails`)
  expect(body.data).toMatchObject([{ subject: 'The card' }])
  expect((await box.call('GET', `/v1/identities/${ada.id}/emails/${id}`)).body['hold']).toMatchObject({ status: 'approved' })
})

test('a held e-mail is rejected with a reason, which its sender reads', async () => {
  const page = await view('/holds', 'Holds')
  if (!page) return
  const { box, ada } = world
  const { id, hold } = await sendHeld({ subject: 'Rude', body_text: 'Pay now.' })
  await page.getByRole('link', { name: 'E-mail' }).click()
  await page.getByText('hold: the preset of the account').waitFor()
  await page.getByRole('button', { name: 'Reject' }).click()
  await looksWell(page, 'hold-reject')
  await page.getByLabel('Reason').fill('Ask them first.')
  await page.getByRole('button', { name: 'Reject it' }).click()
  await page.getByText('Ask them first.').waitFor()
  await page.getByText('rejected', { exact: true }).waitFor()
  expect((await box.call('GET', `/v1/identities/${ada.id}/emails/${id}`, undefined, { key: agent })).body).toMatchObject({
    status: 'cancelled',
    hold: { id: hold!.id, status: 'rejected', reason: 'Ask them first.' },
  })
  await page.getByRole('link', { name: 'All holds' }).click()
  await page.getByText('Nothing is held.').waitFor()
  await page.getByLabel('Show').selectOption('all')
  await page.getByText('rejected', { exact: true }).waitFor()
})

test('a held reveal of a login shows its label, its host and the purpose, and takes place once it is approved', async () => {
  const page = await view('/holds', 'Holds')
  if (!page) return
  const { box, ada } = world
  const login = { label: 'Forge', url: 'https://forge.example/login', password: 'correct horse' }
  const { body } = await box.call('POST', `/v1/identities/${ada.id}/logins`, login)
  const path = `/v1/logins/${body['id']}/reveal`
  const reveal = { purpose: 'to open an issue' }
  expect((await box.call('POST', path, reveal, { key: agent })).status).toBe(409)
  await page.getByRole('link', { name: 'Reveal of a login' }).click()
  for (const text of ['Forge', 'forge.example', 'to open an issue']) await page.getByText(text, { exact: true }).waitFor()
  await looksWell(page, 'hold-login')
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByText('approved', { exact: true }).waitFor()
  expect(await page.content()).not.toContain('correct horse')
  expect((await box.call('POST', path, reveal, { key: agent })).body).toMatchObject({ password: 'correct horse' })
})

test('an approval of another message than the one displayed is refused, and says so', async () => {
  const page = await view('/holds', 'Holds')
  if (!page) return
  const { hold } = await sendHeld({ subject: 'Displayed', body_text: 'One.' })
  await page.route(`**/v1/holds/${hold!.id}`, async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: { ...((await response.json()) as object), sha256: '0'.repeat(64) } })
  })
  await page.getByRole('link', { name: 'E-mail' }).click()
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('alert').filter({ hasText: /\w/ }).waitFor()
  const { body } = await world.box.call('GET', `/v1/holds/${hold!.id}`)
  expect(body['status']).toBe('open')
})
