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

test('after More the list has every event there is, newest first, also of those that came while it was open', async () => {
  if (!browser) return
  const { box } = world
  const { body: cleo } = await box.call('POST', '/v1/identities', { name: 'Cleo' })
  let count = 0
  const rename = async (times: number): Promise<void> => {
    for (const end = count + times; count < end;) {
      count += 1
      await box.call('PATCH', `/v1/identities/${cleo['id']}`, { name: `Cleo ${count}` })
    }
  }
  await rename(60)
  const { page } = await screen(browser, box, '/', roomSize)
  const lines = page.locator('#main .rows li .faint')
  const newest = async (): Promise<void> => {
    await expect.poll(() => lines.first().textContent()).toBe(`Cleo ${count}`)
  }
  await newest()
  // until the connection is made nothing comes live
  await expect.poll(async () => (await rename(1), lines.count())).toBeGreaterThan(50)
  await rename(110)
  await newest()
  const more = page.getByRole('button', { name: 'More' })
  await more.click()
  const shown = async (): Promise<string[]> => (await lines.allTextContents()).filter((text) => /^Cleo \d+$/.test(text))
  const withoutGaps = async (): Promise<void> => {
    const texts = await shown()
    expect(texts).toEqual(texts.map((_, index) => `Cleo ${count - index}`))
  }
  await expect.poll(async () => (await shown()).length).toBeGreaterThan(160)
  await withoutGaps()
  // more than are kept of those that come live
  await rename(510)
  await newest()
  await withoutGaps()
  await more.click()
  await expect.poll(async () => (await shown()).length).toBeGreaterThan(510)
  await withoutGaps()
})
