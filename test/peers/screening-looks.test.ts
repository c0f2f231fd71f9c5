import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { leftOut, place, shown, unseen, unseenByNesting, unseenBySeldom, unseenBySheets } from '../message/screening/looks.ts'
import { chromiumBrowser } from '../support/screen.ts'

let browser: Browser | undefined

beforeAll(async () => {
  browser = await chromiumBrowser()
})

afterAll(() => browser?.close())

/** Two texts of the same letters, so that they take the same place; what differs in a picture are the letters that are seen. */
const texts = ['Marked wording', 'gnidrow dekraM'] as const

/** Parts of a colour that differ by more can be told apart; so many dots are a text that can be read. */
const visibleDifference = 24
const leastDots = 200

/** The dots of a page that differ between the two texts. */
async function dotsOf(page: Page, pictures: Page, html: string): Promise<number> {
  const shots: string[] = []
  for (const text of texts) {
    await page.setContent(`<!DOCTYPE html><html><body>${html.replaceAll(place, text)}</body></html>`)
    shots.push((await page.screenshot({ fullPage: true })).toString('base64'))
  }
  return pictures.evaluate<number>(`(async ([one, other], least) => {
    const dots = async (base64) => {
      const image = await createImageBitmap(await (await fetch('data:image/png;base64,' + base64)).blob())
      const context = new OffscreenCanvas(image.width, image.height).getContext('2d')
      context.drawImage(image, 0, 0)
      return context.getImageData(0, 0, image.width, image.height).data
    }
    const [first, second] = [await dots(one), await dots(other)]
    let found = 0
    for (let at = 0; at < first.length; at += 4)
      if ([0, 1, 2].some((part) => Math.abs(first[at + part] - second[at + part]) > least)) found += 1
    return found
  })(${JSON.stringify(shots)}, ${visibleDifference})`)
}

test('Chromium shows what the table says is seen, and nothing of what it says is not', async () => {
  if (browser === undefined) return
  const context = await browser.newContext({ viewport: { width: 1000, height: 800 }, javaScriptEnabled: false })
  const others = await browser.newContext()
  const [page, pictures] = [await context.newPage(), await others.newPage()]
  const wrong: string[] = []
  for (const [snippets, isShown] of [
    [shown, true],
    [leftOut, true],
    [unseen, false],
    [unseenBySheets, false],
    [unseenByNesting, false],
    [unseenBySeldom, false],
  ] as const)
    for (const html of snippets) {
      let dots = await dotsOf(page, pictures, html)
      // a second look at what a busy machine may have drawn late
      if (dots >= leastDots !== isShown) dots = await dotsOf(page, pictures, html)
      if (dots >= leastDots !== isShown) wrong.push(`${isShown ? 'not seen' : 'seen'} (${dots} dots): ${html}`)
    }
  await Promise.all([context.close(), others.close()])
  expect(wrong).toEqual([])
})
