import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Pair } from '../outbound/outgoing.ts'
import { openPageWorld, viewOf } from './page-world.ts'

let world: Pair
let browser: Browser | undefined
let close: (() => Promise<void>) | undefined

beforeAll(async () => {
  const opened = await openPageWorld()
  if (!opened) return
  ;({ world, browser, close } = opened)
})

afterAll(() => close?.())

test('an owner stops the account and resumes it, each after a question', async () => {
  if (!browser) return
  const page = await viewOf(browser, world.box, '/account', 'Account')
  const status = async () => (await world.box.call('GET', '/v1/identities')).status
  await page.getByRole('button', { name: 'Stop everything' }).click()
  expect(await status()).toBe(200)
  await page.getByRole('dialog').getByRole('button', { name: 'Stop everything' }).click()
  await page.getByText('Stopped since').waitFor()
  expect(await status()).toBe(403)
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('button', { name: 'Stop everything' }).waitFor()
  expect(await status()).toBe(200)
})
