import type { Browser, Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { openPair, type Pair } from '../outbound/outgoing.ts'
import type { Appliance } from '../support/appliance.ts'
import { builtPage } from '../support/built-page.ts'
import { roomSize } from '../support/looks.ts'
import { withPassword } from '../support/people.ts'
import { chromiumBrowser, screen } from '../support/screen.ts'

interface PageWorld {
  browser: Browser
  world: Pair
  close: () => Promise<void>
}

/** A browser, and a box with Ada and Bob whose page a person signs in to; undefined, outside of CI, where no browser is installed. */
export async function openPageWorld(): Promise<PageWorld | undefined> {
  const browser = await chromiumBrowser()
  if (!browser) return undefined
  await builtPage()
  const { world, close } = await openPair({ PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0' })
  await withPassword(world.box)
  return { browser, world, close: async () => void (await Promise.all([browser.close(), close()])) }
}

/** A view of the page, once its heading is there. What goes wrong in it fails the test. */
export async function viewOf(browser: Browser, box: Appliance, path: string, heading: string): Promise<Page> {
  const { page, troubles } = await screen(browser, box, path, roomSize)
  onTestFinished(() => expect(troubles).toEqual([]))
  await page.getByRole('heading', { name: heading, exact: true }).first().waitFor()
  return page
}
