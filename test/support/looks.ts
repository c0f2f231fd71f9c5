import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Pictures for the documentation are taken when somebody asks for them: `PAGE_PICTURES=docs/page`. */
const pictures = process.env['PAGE_PICTURES']

/** The screen of somebody at a desk. */
export const roomSize = { width: 1080, height: 680 }

const phone = { width: 360, height: 740 }

/** What reaches beyond the screen without being in something that scrolls by itself. */
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > innerWidth && !one.closest('pre, .scrolls'))
    .map((one) => one.outerHTML.slice(0, 200))`

/** Colours are all that is another in the dark. */
const schemes = [
  ['light', ''],
  ['dark', "runOnly: ['color-contrast', 'link-in-text-block']"],
] as const

interface Found {
  violations: { id: string; nodes: { html: string }[] }[]
}

/** What is shown now, light and dark and on a phone: nothing for axe to say, nothing wider than the screen. */
export async function looksWell(page: Page, name: string): Promise<void> {
  await page.evaluate(axe)
  const wrong: string[] = []
  for (const [colorScheme, rules] of schemes) {
    await page.emulateMedia({ colorScheme })
    await picture(page, `${name}-${colorScheme}`)
    const { violations } = (await page.evaluate(`axe.run(document, { resultTypes: ['violations'], ${rules} })`)) as Found
    wrong.push(...violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${name}, ${colorScheme}: ${id}: ${html}`)))
  }
  expect(wrong).toEqual([])
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(phone)
  expect(await page.evaluate(tooWide), `what of ${name} is wider than a phone`).toEqual([])
  await page.setViewportSize(roomSize)
}

async function picture(page: Page, name: string): Promise<void> {
  if (pictures === undefined) return
  mkdirSync(pictures, { recursive: true })
  // what is said for a few seconds is not what the picture is about
  await page.evaluate("scrollTo(0, 0); document.querySelector('.announcer').hidden = true")
  await page.screenshot({ path: join(pictures, `${name}.png`) })
  await page.evaluate("document.querySelector('.announcer').hidden = false")
}
