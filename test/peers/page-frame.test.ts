import type { Browser, FrameLocator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { withPassword } from '../support/people.ts'
import { chromiumBrowser, screen } from '../support/screen.ts'

let browser: Browser | undefined

beforeAll(async () => {
  browser = await chromiumBrowser()
})

afterAll(() => browser?.close())

/** Pixels of one rem of the page. */
const rem = 15

const paragraphs = (count: number): string =>
  Array.from({ length: count }, (_, index) => `<p>Paragraph ${index + 1}: ${'many words in a row '.repeat(12)}</p>`).join('\n')

/** The frame of an e-mail on the page. */
async function opened(html: string): Promise<{ page: Page; frame: FrameLocator; height: () => Promise<number> }> {
  const box = await appliance()
  await withPassword(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const fields = { To: ada['email'], Subject: 'A letter', 'Content-Type': 'text/html; charset=utf-8' }
  expect(await deliver(box.smtp, { to: ada['email'], raw: message(fields, html) })).toMatch(/^250 /)
  const { page } = await screen(browser!, box, `/identities/${ada['id']}/inbox`)
  await page.getByRole('link', { name: /A letter/ }).click()
  const frame = page.frameLocator('.mail-frame')
  await frame.locator('p').first().waitFor()
  return { page, frame, height: async () => (await page.locator('.mail-frame').boundingBox())!.height }
}

/** Pixels of the message that are outside of its frame, below it. */
function hidden(frame: FrameLocator): Promise<number> {
  return frame.locator('html').evaluate(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)
}

test('the frame of a long message shows its last line without a scroll bar of its own, at every width', async () => {
  if (!browser) return
  const { page, frame, height } = await opened(paragraphs(60))
  expect(await hidden(frame)).toBe(0)
  const wide = await height()
  expect(wide).toBeGreaterThan(1500)
  await page.setViewportSize({ width: 360, height: 740 })
  await expect.poll(height).toBeGreaterThan(wide)
  await expect.poll(() => hidden(frame)).toBe(0)
  await page.setViewportSize({ width: 1280, height: 800 })
  await expect.poll(height).toBe(wide)
})

test('the frame of a short message is short, and that of an endless one has an end', async () => {
  if (!browser) return
  expect(await (await opened('<p>Hello.</p>')).height()).toBe(8 * rem)
  const { frame, height } = await opened(paragraphs(800))
  expect(await height()).toBe(800 * rem)
  expect(await hidden(frame)).toBeGreaterThan(0)
})

test('a message with images from elsewhere keeps its height when they are loaded', async () => {
  if (!browser) return
  const { page, frame, height } = await opened(`${paragraphs(40)}<img src="https://x.test/i.png" alt="A picture">`)
  const before = await height()
  await page.getByRole('button', { name: 'Show images' }).click()
  await frame.locator('img[src]').waitFor({ state: 'attached' })
  expect(await height()).toBeGreaterThanOrEqual(before)
})
