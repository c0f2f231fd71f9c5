import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Pair } from '../outbound/outgoing.ts'
import { deliver, message } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { looksWell, roomSize } from '../support/looks.ts'
import { screen, tabTo } from '../support/screen.ts'
import { openPageWorld } from './page-world.ts'

let world: Pair
let browser: Browser | undefined
let close: (() => Promise<void>) | undefined

beforeAll(async () => {
  const opened = await openPageWorld()
  if (!opened) return
  ;({ world, browser, close } = opened)
})

afterAll(() => close?.())

test('what all agents do is in one list, live, and can be filtered by agent and kind', async () => {
  if (!browser) return
  const { box, ada, bob } = world
  const fields = { To: ada.email, Subject: 'Before', 'Message-ID': '<before@sender.test>' }
  await deliver(box.smtp, { to: ada.email, raw: message(fields, 'Hello.\n') })
  const { page, troubles } = await screen(browser, box, '/', roomSize)
  const lines = page.locator('#main .rows li')
  const line = (text: RegExp) => lines.filter({ hasText: text })
  await line(/Mail received.*Ada.*Before/).waitFor()
  // the connection is made after the view: what is sent now comes by either
  const { body: key } = await box.call('POST', '/v1/api-keys', { label: 'agent' })
  const agent = { key: key['key'] as string }
  await box.call('PATCH', `/v1/identities/${bob.id}/policy`, { preset: 'all' })
  const sent = await box.call('POST', `/v1/identities/${bob.id}/emails`, { to: ada.email, subject: 'May I?' }, agent)
  expect(sent.body['status']).toBe('held')
  await line(/Mail held.*Bob.*May I\?.*held/).waitFor()
  await page.getByRole('link', { name: '1 held' }).waitFor()
  const { body: stored } = await box.call('POST', `/v1/identities/${ada.id}/cards`, card())
  await box.call('POST', `/v1/cards/${stored['id']}/reveal`, { amount_cents: 100, purpose: 'a ticket' })
  await line(/Card revealed.*Ada.*travel/).waitFor()
  const coded = { To: ada.email, Subject: 'Sign in', 'Message-ID': '<code@sender.test>' }
  await deliver(box.smtp, { to: ada.email, raw: message(coded, 'Your verification code is 493817.\n') })
  await line(/Mail received.*Sign in.*one-time code/).waitFor()
  await looksWell(page, 'activity')
  const ids = await lines.allTextContents()
  expect(new Set(ids).size).toBe(ids.length)
  // newest first
  expect(ids.findIndex((text) => text.includes('Sign in'))).toBeLessThan(ids.findIndex((text) => text.includes('Before')))
  await page.getByLabel('Identity').selectOption(bob.id)
  await page.getByLabel('What').selectOption('holds')
  await tabTo(page, /^Filter$/)
  await page.keyboard.press('Enter')
  await line(/Before/).waitFor({ state: 'detached' })
  await expect.poll(() => lines.count()).toBe(1)
  // what the filter leaves out stays out when it comes live
  await box.call('POST', `/v1/identities/${ada.id}/emails`, { to: bob.email, subject: 'Left out' })
  await box.call('POST', `/v1/identities/${bob.id}/emails`, { to: ada.email, subject: 'And I?' }, agent)
  await line(/And I\?/).waitFor()
  expect(await line(/Left out/).count()).toBe(0)
  await page.getByRole('link', { name: 'Mail held' }).first().click()
  await page.getByRole('heading', { name: 'Hold', exact: true }).waitFor()
  expect(troubles).toEqual([])
})
