import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import type { Appliance } from './appliance.ts'
import { peer } from './peer.ts'
import { signIn } from './people.ts'

/** A tab of a browser, and what went wrong in it. */
export interface Screen {
  page: Page
  context: BrowserContext
  /** Everything that was asked of anybody but the box, and what scripts complained of. */
  troubles: string[]
}

// else it asks nobody on this machine for what a page of a test's own making wants, and a test of that could not fail
const loopback = '--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests'

/** Debian's Chromium; undefined, outside of CI, where it is not installed. */
export async function chromiumBrowser(): Promise<Browser | undefined> {
  const executablePath = peer('chromium')
  return executablePath === undefined
    ? undefined
    : chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', loopback] })
}

interface Options {
  /** Left out: already signed in, by a cookie. */
  visitor?: boolean
  width?: number
  height?: number
  dark?: boolean
}

/** A screen of its own, at the box's page; closed when the test ends. */
export async function screen(browser: Browser, box: Appliance, path = '/', options: Options = {}): Promise<Screen> {
  const { visitor = false, width = 1280, height = 800, dark = false } = options
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: dark ? 'dark' : 'light',
    permissions: ['clipboard-read', 'clipboard-write'],
    reducedMotion: 'reduce',
  })
  onTestFinished(() => context.close())
  if (!visitor) {
    const { cookie } = await signIn(box)
    const [name = '', value = ''] = cookie.split('=')
    await context.addCookies([{ name, value, url: box.url, sameSite: 'Lax', httpOnly: true }])
  }
  const page = await context.newPage()
  page.setDefaultTimeout(100_000)
  const troubles: string[] = []
  const expected = /Failed to load resource: the server responded with a status of 4\d\d|net::ERR_/
  context.on('request', (request) => {
    if (!request.url().startsWith(`${box.url}/`) && !request.url().startsWith('data:')) troubles.push(request.url())
  })
  page.on('pageerror', (error) => troubles.push(String(error)))
  page.on('console', (line) => {
    if (line.type() === 'error' && !expected.test(line.text())) troubles.push(line.text())
  })
  await page.goto(`${box.url}${path}`)
  return { page, context, troubles }
}

/** Goes to a place of the box's page, and waits until it hears of events: whatever is shown is read again then. */
export async function goSubscribed(page: Page, url: string): Promise<void> {
  const { promise: subscribed, resolve } = Promise.withResolvers<void>()
  // the page before may open one as well, which ends with it
  page.on('websocket', (socket) => {
    socket.on('framereceived', ({ payload }) => String(payload).includes('"subscribed"') && resolve())
  })
  await page.goto(url)
  await subscribed
}

/** Presses Tab until the focus is where it is wanted. */
export async function tabTo(page: Page, wanted: RegExp): Promise<void> {
  const script = `(() => { const e = document.activeElement; return !e.matches('a, button, input, select, textarea, summary') ? '' : e.getAttribute('aria-label') ?? e.labels?.[0]?.textContent ?? e.textContent })()`
  const seen: string[] = []
  for (let presses = 0; presses < 60; presses += 1) {
    const name = String(await page.evaluate(script))
    if (wanted.test(name)) return
    seen.push(name.slice(0, 30))
    await page.keyboard.press('Tab')
  }
  throw new Error(`The keyboard does not reach ${wanted}: ${seen.join(' | ')}`)
}
