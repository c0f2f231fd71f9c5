import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { livedIn } from '../support/lived-in.ts'
import { person } from '../support/people.ts'
import { chromiumBrowser, screen, tabTo } from '../support/screen.ts'

let browser: Browser | undefined

beforeAll(async () => {
  browser = await chromiumBrowser()
})

afterAll(() => browser?.close())

test('on 360 pixels nothing sticks out, and everything can be reached', async () => {
  if (!browser) return
  const { box, ada, thread } = await livedIn()
  await box.call('POST', `/v1/identities/${ada}/logins`, {
    label: 'Forge',
    url: 'https://forge.example/',
    password: 'correct horse',
  })
  const { page } = await screen(browser, box, '/', { width: 360, height: 740 })
  for (const [path, sign] of [
    ['/identities', 'New identity'],
    [`/identities/${ada}/inbox`, 'Write'],
    [`/identities/${ada}/inbox/${thread}`, 'Reply'],
    [`/identities/${ada}/settings`, 'Rename'],
    [`/identities/${ada}/logins`, 'Change Forge'],
    [`/identities/${ada}/sms`, 'Get a number'],
    [`/identities/${ada}/policy`, 'Save the policy'],
    ['/policy', 'Save the lists'],
    ['/', 'Filter'],
    ['/account/people', 'Invite'],
    ['/account', 'Sign out everywhere else'],
    ['/account/audit', 'Filter'],
  ] as const) {
    await page.goto(`${box.url}${path}`)
    await page.getByRole('button', { name: sign }).waitFor()
    expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, 360])
  }
  await page.goto(`${box.url}/identities/${ada}/inbox`)
  await page.getByRole('link', { name: /A letter with everything/ }).click()
  await page.getByRole('button', { name: 'Copy the code 493817' }).waitFor()
  await page.getByRole('button', { name: 'Reply' }).click()
  await page.getByLabel('Message', { exact: true }).fill('From a telephone.')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByText('From a telephone.').last().waitFor()
  await page.getByRole('link', { name: 'All conversations' }).click()
  await page.getByRole('button', { name: 'Write' }).waitFor()
})

test('everything can be done by the keyboard alone', async () => {
  if (!browser) return
  const { box } = await livedIn()
  const { page } = await screen(browser, box, '/', { visitor: true })
  const { keyboard } = page
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  await tabTo(page, /^E-mail address$/)
  await keyboard.type(person.email)
  await tabTo(page, /^Password$/)
  await keyboard.type(person.password)
  await keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Activity' }).waitFor()
  await tabTo(page, /^Identities$/)
  await keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Identities' }).waitFor()
  await tabTo(page, /^New identity$/)
  await keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await tabTo(page, /^Name$/)
  await keyboard.type('Hedy')
  await keyboard.press('Escape')
  // what the question was asked from has the focus again
  await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('New identity')
  await keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await tabTo(page, /^Name$/)
  await keyboard.type('Hedy')
  await keyboard.press('Enter')
  await page.getByText('No mail yet').waitFor()
  await tabTo(page, /^Identities$/)
  await keyboard.press('Enter')
  await page.getByRole('link', { name: 'Ada', exact: true }).waitFor()
  await tabTo(page, /^Ada$/)
  await keyboard.press('Enter')
  await page.getByRole('link', { name: /A letter with everything/ }).waitFor()
  await tabTo(page, /A letter with everything/)
  await keyboard.press('Enter')
  await page.getByRole('button', { name: 'Reply' }).waitFor()
  // whoever opens a conversation is taken to it
  await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('A letter with everything')
  await tabTo(page, /^Copy the code 493817$/)
  await keyboard.press('Enter')
  await page.getByText('Copied: the code 493817.').waitFor()
  await tabTo(page, /^Reply$/)
  // a key that is pressed as the focus leaves the message's frame may still reach the frame, which is another process
  const dialog = page.getByRole('dialog')
  const pressed = async (): Promise<boolean> => {
    if (!(await dialog.isVisible())) await keyboard.press('Enter')
    return dialog.isVisible()
  }
  await expect.poll(pressed, { interval: 1000, timeout: 30_000 }).toBe(true)
  await tabTo(page, /^Message$/)
  await keyboard.type('Typed, not clicked.')
  await tabTo(page, /^Send$/)
  await keyboard.press('Enter')
  await page.getByText('Typed, not clicked.').last().waitFor()
})

test('a login is stored, read, changed and deleted by the keyboard alone', async () => {
  if (!browser) return
  const { box, ada } = await livedIn()
  const { page } = await screen(browser, box, `/identities/${ada}/logins`)
  const { keyboard } = page
  const activate = async (name: RegExp): Promise<void> => {
    await tabTo(page, name)
    await keyboard.press('Enter')
  }
  const type = async (field: RegExp, text: string): Promise<void> => {
    await tabTo(page, field)
    await keyboard.type(text)
  }
  await page.getByText('No login yet.').waitFor()
  await activate(/^New login$/)
  await page.getByRole('dialog').waitFor()
  await type(/^Place$/, 'Forge')
  await type(/^Address$/, 'https://forge.example/')
  await type(/^Password$/, 'correct horse')
  await activate(/^Store$/)
  await page.getByText('forge.example · password').waitFor()
  await activate(/^Show the login at Forge$/)
  await page.getByText('correct horse').waitFor()
  await activate(/^Copy the password$/)
  await page.getByText('Copied: the password.').waitFor()
  await keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('Show the login at Forge')
  await activate(/^Change Forge$/)
  await page.getByRole('dialog').waitFor()
  await type(/^User name$/, 'ada')
  await activate(/^Change$/)
  await page.getByText('forge.example · ada · password').waitFor()
  await activate(/^Delete Forge$/)
  await page.getByRole('dialog').waitFor()
  await activate(/^Delete$/)
  await page.getByText('No login yet.').waitFor()
})
