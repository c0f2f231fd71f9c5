import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { livedIn } from '../support/lived-in.ts'
import { chromiumBrowser, screen } from '../support/screen.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

let browser: Browser | undefined

beforeAll(async () => {
  browser = await chromiumBrowser()
})

afterAll(() => browser?.close())

/** What axe-core finds against the page as it stands: the rule, and where. */
async function violations(page: Page, rules: string): Promise<string[]> {
  const found = (await page.evaluate(`axe.run(document, { iframes: false, resultTypes: ['violations'], ${rules} })`)) as {
    violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[]
  }
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary}`),
  )
}

/** Colours are all that is another in the dark. */
async function inBoth(page: Page, where: string, wrong: string[]): Promise<void> {
  await page.evaluate(axe)
  for (const [colorScheme, rules] of [
    ['light', ''],
    ['dark', "runOnly: ['color-contrast', 'link-in-text-block']"],
  ] as const) {
    await page.emulateMedia({ colorScheme })
    wrong.push(...(await violations(page, rules)).map((one) => `${where}, ${colorScheme}: ${one}`))
  }
}

test('axe-core finds nothing wrong with any view or dialog, light or dark', async () => {
  if (!browser) return
  const { box, ada, thread } = await livedIn()
  await box.call('POST', `/v1/identities/${ada}/logins`, {
    label: 'Forge',
    url: 'https://forge.example/',
    password: 'correct horse',
  })
  const wrong: string[] = []
  const visitor = await screen(browser, box, '/', { visitor: true })
  await visitor.page.getByRole('button', { name: 'Sign in' }).waitFor()
  await inBoth(visitor.page, 'signing in', wrong)
  await visitor.page.goto(`${box.url}/setup#token=x`)
  await visitor.page.getByRole('button', { name: 'Set the password' }).waitFor()
  await inBoth(visitor.page, 'setting up', wrong)
  const { page } = await screen(browser, box, '/identities')
  await page.getByRole('link', { name: 'Settings of Ada' }).waitFor()
  await inBoth(page, 'identities', wrong)
  await page.getByRole('button', { name: 'New identity' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Ada')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.locator('[aria-invalid]').waitFor()
  await inBoth(page, 'a new identity', wrong)
  for (const [path, sign] of [
    [`/identities/${ada}/settings`, 'Rename'],
    [`/identities/${ada}/logins`, 'Show the login at Forge'],
    ['/', 'Filter'],
    ['/account/people', 'Invite'],
    ['/account', 'Sign out everywhere else'],
    ['/account/audit', 'Filter'],
    [`/identities/${ada}/inbox/${thread}`, 'Reply'],
  ] as const) {
    await page.goto(`${box.url}${path}`)
    await page.getByRole('button', { name: sign }).waitFor()
    for (const summary of await page.locator('summary').all()) await summary.click()
    await inBoth(page, path, wrong)
  }
  await page.goto(`${box.url}/identities/${ada}/logins`)
  await page.getByRole('button', { name: 'Show the login at Forge' }).click()
  await page.getByText('correct horse').waitFor()
  await inBoth(page, 'a login', wrong)
  await page.goto(`${box.url}/identities/${ada}/inbox/${thread}`)
  await page.getByRole('button', { name: 'Reply' }).click()
  await inBoth(page, 'a reply', wrong)
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('button', { name: 'Source' }).click()
  await page.locator('pre').waitFor()
  await inBoth(page, 'a source', wrong)
  expect(wrong).toEqual([])
})
