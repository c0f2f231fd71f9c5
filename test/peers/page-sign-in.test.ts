import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateSync } from 'otplib'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { reporting } from '../reporting/box.ts'
import { card } from '../support/card.ts'
import { appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { person, signIn, withPassword } from '../support/people.ts'
import { chromiumBrowser, goSubscribed, screen } from '../support/screen.ts'

const grace = { email: 'grace@example.com', password: 'another long and quiet evening' }

let browser: Browser | undefined

beforeAll(async () => {
  browser = await chromiumBrowser()
})

afterAll(() => browser?.close())

test('the one-time link leads to a password, and in; a second time it says why not', async () => {
  if (!browser) return
  const box = await appliance()
  const link = new URL((await box.app.setupLink())!)
  const { page, context } = await screen(browser, box, link.pathname + link.hash, { visitor: true })
  await page.getByLabel('E-mail address').fill(person.email)
  expect(page.url()).toBe(`${box.url}/setup`)
  await page.getByLabel('Password', { exact: true }).fill('short')
  await page.getByRole('button', { name: 'Set the password' }).click()
  await page.locator('.field', { hasText: 'Password' }).getByText('password must have 8 to 256 characters').waitFor()
  await page.getByLabel('Password', { exact: true }).fill(person.password)
  await page.getByRole('button', { name: 'Set the password' }).click()
  await page.getByRole('heading', { name: 'Activity' }).waitFor()
  expect(page.url()).toBe(`${box.url}/`)
  // the first view says what a new box cannot send, why, and what to do
  const { cannot_send_outside_reason: reason } = (await box.call('GET', '/v1/whoami')).body
  await page.getByText(String(reason), { exact: true }).waitFor()
  await page.getByRole('link', { name: 'Create the first' }).click()
  await page.getByRole('button', { name: 'New identity' }).waitFor()
  await context.clearCookies()
  await page.goto(`${box.url}/setup`)
  await page.getByText('This address works only with the token').waitFor()
  await page.goto(link.href)
  await page.getByLabel('E-mail address').fill('eve@example.com')
  await page.getByLabel('Password', { exact: true }).fill('a third quiet evening')
  await page.getByRole('button', { name: 'Set the password' }).click()
  await page.getByText('This link is no longer valid').waitFor()
})

test('an owner invites someone, who accepts on the page and sees what the role shows; removed, they are signed out', async () => {
  if (!browser) return
  const box = await appliance()
  await withPassword(box)
  const { page } = await screen(browser, box, '/account/people')
  await page.getByRole('button', { name: 'Invite' }).click()
  await page.getByLabel('E-mail address').fill(grace.email)
  await page.getByLabel('Role', { exact: true }).selectOption('reader')
  await page.getByLabel('Your password').fill(person.password)
  await page.getByRole('button', { name: 'Make a link' }).click()
  const link = new URL((await page.locator('.secret strong').textContent())!)
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('button', { name: `Withdraw the invitation of ${grace.email}` }).waitFor()
  const hers = await screen(browser, box, link.pathname + link.hash, { visitor: true })
  expect(await hers.page.getByLabel('E-mail address').inputValue()).toBe(grace.email)
  await hers.page.getByLabel('Password', { exact: true }).fill(grace.password)
  expect(hers.page.url()).toBe(`${box.url}/invitation`)
  await hers.page.getByRole('button', { name: 'Accept' }).click()
  await hers.page.getByRole('heading', { name: 'Activity' }).waitFor()
  await hers.page.goto(`${box.url}/account/people`)
  await hers.page.getByText(person.email).waitFor()
  expect(await hers.page.getByRole('button', { name: /Invite|Remove|Role/ }).count()).toBe(0)
  await page.reload()
  await page.getByRole('button', { name: `Remove ${grace.email}` }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: `Remove ${grace.email}` })
    .click()
  await page.getByText(`${grace.email} was removed.`).waitFor()
  await hers.page.reload()
  await hers.page.getByRole('button', { name: 'Sign in' }).waitFor()
  await hers.context.clearCookies()
  await hers.page.goto(link.href)
  await hers.page.getByLabel('Password', { exact: true }).fill(grace.password)
  await hers.page.getByRole('button', { name: 'Accept' }).click()
  await hers.page.getByText('This invitation is no longer valid').waitFor()
})

test('the link of a digest opens what is held, and only the button decides', async () => {
  if (!browser) return
  const world = await reporting({ PILLARBOX_POLICY__DIGEST: 'true' })
  const { box, ada } = world
  box.dns.mx('owner.example', 'mx.owner.example').a('mx.owner.example', '127.0.0.1')
  await withPassword(box, { ...person, email: 'ada@owner.example' })
  await box.call('PATCH', '/v1/policy', { preset: 'all' })
  const { body: email } = await box.call('POST', `/v1/identities/${ada}/emails`, {
    to: 'bob@elsewhere.example',
    reply_to: 'eve@elsewhere.example',
    subject: 'An offer',
    body_text: 'Hello Bob.',
    body_html:
      '<p>All our <b>secrets</b>: <a href="https://drop.example/box">here</a>.</p><script>document.title = "ran"</script>',
  })
  await world.job('send-hold-digests')
  const raw = (await world.arrived(1))[0]!.raw.replaceAll(/=\r?\n/g, '').replaceAll('=3D', '=')
  const [link] = /http:\S+decision=reject/.exec(raw)!
  const url = new URL(link)
  const { page } = await screen(browser, box, url.pathname + url.hash, { visitor: true })
  await page.getByText('An offer').waitFor()
  await page.getByText('eve@elsewhere.example').waitFor()
  await page.getByText('All our secrets: here.').waitFor()
  await page.getByText('https://drop.example/box').waitFor()
  expect(await page.title()).not.toBe('ran')
  await page.getByText('Hello Bob.').waitFor()
  expect(page.url()).toBe(`${box.url}/decide`)
  const status = async (): Promise<unknown> => (await box.call('GET', `/v1/holds/${email['hold'].id}`)).body['status']
  expect(await status()).toBe('open')
  await page.getByRole('button', { name: 'Approve instead' }).click()
  await page.getByRole('button', { name: 'Reject instead' }).click()
  expect(await status()).toBe('open')
  await page.getByLabel('Reason').fill('Not him.')
  await page.getByRole('button', { name: 'Reject', exact: true }).click()
  await page.getByText('This is rejected.').waitFor()
  expect(await status()).toBe('rejected')
  await page.goto(link)
  await page.getByText('This is rejected.').waitFor()
  expect(await page.getByRole('button').count()).toBe(0)
})

test('the link of a digest shows which card would be revealed, and for how much', async () => {
  if (!browser) return
  const world = await reporting({ PILLARBOX_POLICY__DIGEST: 'true' })
  const { box, ada } = world
  box.dns.mx('owner.example', 'mx.owner.example').a('mx.owner.example', '127.0.0.1')
  await withPassword(box, { ...person, email: 'ada@owner.example' })
  await box.call('PATCH', '/v1/policy', { preset: 'all' })
  const { body: stored } = await box.call(
    'POST',
    `/v1/identities/${ada}/cards`,
    card({ card_name: 'travel', budget_cents: 5_000_000 }),
  )
  await box.call('POST', `/v1/cards/${stored.id}/reveal`, { amount_cents: 1_234_500, purpose: 'a stamp for one dollar' })
  await world.job('send-hold-digests')
  const raw = (await world.arrived(1))[0]!.raw.replaceAll(/=\r?\n/g, '').replaceAll('=3D', '=')
  const url = new URL(/http:\S+decision=approve/.exec(raw)![0])
  const { page } = await screen(browser, box, url.pathname + url.hash, { visitor: true })
  await page.getByText('$12,345.00').waitFor()
  const shown = await page.locator('main').textContent()
  for (const fact of ['travel', '4242', 'a stamp for one dollar']) expect(shown).toContain(fact)
})

test('over plain http from elsewhere the page says what it needs', async () => {
  if (!browser) return
  const box = await appliance()
  const { page, context } = await screen(browser, box, '/', { visitor: true })
  await context.route('http://box.test/**', async (route) => {
    const url = route.request().url().replace('http://box.test', box.url)
    await route.fulfill({ response: await route.fetch({ url }) })
  })
  await page.goto('http://box.test/')
  await page.getByRole('heading', { name: 'This page needs https, or localhost' }).waitFor()
  expect(await page.getByRole('button').count()).toBe(0)
})

test('a second factor is added on the page, and asked for from then on', async () => {
  if (!browser) return
  const box = await appliance()
  await withPassword(box)
  const { page } = await screen(browser, box, '/account')
  await page.getByLabel('Password', { exact: true }).fill(person.password)
  await page.getByRole('button', { name: 'Add a second factor' }).click()
  const secret = await page.locator('strong.mono').textContent()
  const recovery = await page.locator('ul.mono li').first().textContent()
  await page.getByLabel('Code of the app').fill('000000')
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.locator('.field', { hasText: 'Code of the app' }).getByText('This code is wrong').waitFor()
  await page.getByLabel('Code of the app').fill(generateSync({ secret: secret! }))
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.getByText('Recovery codes left: 10.').waitFor()
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await page.getByRole('heading', { name: 'Pillarbox' }).waitFor()
  await page.getByLabel('E-mail address').fill(person.email)
  await page.getByLabel('Password').fill(person.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  const code = page.getByLabel('Code', { exact: true })
  await code.waitFor()
  expect(await code.evaluate('document.activeElement.name')).toBe('totp')
  await code.fill('111111')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('.field', { hasText: 'Code' }).getByText('This code is wrong').waitFor()
  await code.fill(recovery!)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Activity' }).waitFor()
})

test('a session that ends keeps what was typed: signing in goes on with it', async () => {
  if (!browser) return
  const box = await appliance()
  await withPassword(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { page, troubles } = await screen(browser, box, `/identities/${ada['id']}/inbox`)
  await page.getByRole('button', { name: 'Write' }).click()
  await page.getByLabel('To', { exact: true }).fill('postmaster@pillarbox.test')
  await page.getByLabel('Subject').fill('Written before')
  await page.getByLabel('Message', { exact: true }).fill('A long letter.')
  await page.getByText('Attach files, or send later').click()
  const gone = join(folder(), 'gone.txt')
  writeFileSync(gone, 'x')
  await page.getByLabel('Files').setInputFiles(gone)
  rmSync(gone)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page
    .getByRole('alert')
    .getByText(/^Failed: .*file/)
    .waitFor()
  await page.getByLabel('Files').setInputFiles([])
  // as browsers do when the choice of a file is left
  await page.getByLabel('Files').dispatchEvent('cancel', { bubbles: true })
  const other = await signIn(box)
  expect((await other.call('DELETE', '/v1/account/sessions')).status).toBe(200)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  const again = page.getByRole('dialog', { name: 'Sign in again' })
  await again.waitFor()
  for (let presses = 0; presses < 3; presses += 1) await page.keyboard.press('Escape')
  await again.getByLabel('Password').fill('wrong, alas')
  await again.getByRole('button', { name: 'Sign in' }).click()
  await again.getByText('The e-mail address or the password is wrong.').waitFor()
  expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('A long letter.')
  await again.getByLabel('Password').fill(person.password)
  await again.getByRole('button', { name: 'Sign in' }).click()
  // nobody had to press Send once more
  await page.getByRole('heading', { name: 'Written before' }).waitFor()
  await page.getByText('A long letter.').last().waitFor()
  const { body } = await box.call('GET', `/v1/identities/${ada['id']}/emails?direction=outbound`)
  expect(body.data).toHaveLength(1)
  expect(troubles).toEqual([])
})

test('when another tab lets in somebody else, this one begins anew for them', async () => {
  if (!browser) return
  const box = await appliance()
  await withPassword(box)
  await box.app.accounts.add({ name: 'Grace', ...grace })
  const { page, context } = await screen(browser, box, '/account')
  const cut: (() => Promise<void>)[] = []
  await context.routeWebSocket(/\/v1\/realtime/, (socket) => {
    socket.connectToServer()
    cut.push(() => socket.close({ code: 1013 }))
  })
  const letIn = async (who: typeof person): Promise<void> => {
    await page.goto(`${box.url}/keys`)
    await page.getByRole('button', { name: 'New key' }).waitFor()
    await expect.poll(() => cut.length).toBeGreaterThan(0)
    const [name = '', value = ''] = (await signIn(box, who)).cookie.split('=')
    await context.addCookies([{ name, value, url: box.url, sameSite: 'Lax', httpOnly: true }])
  }
  await letIn(grace)
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
  await page.waitForURL(`${box.url}/`)
  await page.getByTitle(grace.email).waitFor()
  cut.length = 0
  await letIn(person)
  await cut.at(-1)!()
  await page.waitForURL(`${box.url}/`)
  await page.getByTitle(person.email).waitFor()
})

test('an identity is suspended, resumed and deleted, and what goes with it is named', async () => {
  if (!browser) return
  const box = await appliance()
  await withPassword(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await box.call('POST', '/v1/identities', { name: 'Grace' })
  await box.call('POST', `/v1/identities/${ada['id']}/totp`, { secret: 'JBSWY3DPEHPK3PXP', service_name: 'GitHub' })
  const { page } = await screen(browser, box, '/identities')
  await page.getByLabel('Search identities').fill('GRA')
  await page.getByRole('link', { name: 'Ada', exact: true }).waitFor({ state: 'detached' })
  await page.getByLabel('Search identities').fill('ada@pillar')
  await page.getByRole('link', { name: 'Settings of Ada' }).click()
  await page.getByRole('button', { name: 'Suspend' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Suspend' }).click()
  await page.getByRole('heading', { name: 'Ada suspended' }).waitFor()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('heading', { name: 'Ada', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  const asked = page.getByRole('dialog', { name: 'Delete Ada?' })
  for (const what of ['ada@pillarbox.test', '1 one-time password', 'no cards']) await asked.getByText(what).waitFor()
  await page.keyboard.press('Escape')
  expect((await box.call('GET', `/v1/identities/${ada['id']}`)).status).toBe(200)
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByRole('button', { name: 'Delete Ada' }).click()
  await page.getByRole('link', { name: 'Grace', exact: true }).waitFor()
  expect(await page.getByRole('link', { name: 'Ada', exact: true }).count()).toBe(0)
  expect((await box.call('GET', `/v1/identities/${ada['id']}`)).status).toBe(404)
})

test('what may have been done already is not done twice', async () => {
  if (!browser) return
  const box = await appliance()
  await withPassword(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { page, context } = await screen(browser, box, `/identities/${ada['id']}/inbox`)
  let lost = 0
  await context.route('**/v1/identities/*/emails', async (route) => {
    if (route.request().method() !== 'POST' || lost > 0) return route.continue()
    lost += 1
    // the box hears it, and its answer gets lost
    await route.fetch()
    return route.abort('connectionreset')
  })
  await page.getByRole('button', { name: 'Write' }).click()
  await page.getByLabel('To', { exact: true }).fill('postmaster@pillarbox.test')
  await page.getByLabel('Message', { exact: true }).fill('Only once.')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByText('The box cannot be reached.').waitFor()
  // who pressed it by the keyboard is still there
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Send')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByText('The message was queued.').waitFor()
  const { body } = await box.call('GET', `/v1/identities/${ada['id']}/emails?direction=outbound`)
  expect([lost, body.data.length]).toEqual([1, 1])
})

test('who signs in over the page of another gets a page of their own, and what waited is not done in their name', async () => {
  if (!browser) return
  const box = await appliance()
  await withPassword(box)
  await box.app.accounts.add({ name: 'Grace', ...grace })
  const { page, troubles } = await screen(browser, box)
  // a page that was not heard yet would find at once that the session has ended
  await goSubscribed(page, `${box.url}/webhooks`)
  await page.getByRole('button', { name: 'New webhook' }).click()
  await page.getByLabel('URL').fill('https://receiver.test/hook')
  const other = await signIn(box)
  expect((await other.call('DELETE', '/v1/account/sessions')).status).toBe(200)
  await page.getByRole('button', { name: 'Create' }).click()
  const again = page.getByRole('dialog', { name: 'Sign in again' })
  await again.getByLabel('E-mail address').fill(grace.email)
  await again.getByLabel('Password').fill(grace.password)
  await again.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(`${box.url}/`)
  await page.getByTitle(grace.email).waitFor()
  const theirs = await signIn(box, grace)
  expect((await theirs.call('GET', '/v1/webhooks')).body.data).toEqual([])
  expect(troubles).toEqual([])
})

test('a second link of a digest in the same tab shows what it is about, or nothing that could be approved', async () => {
  if (!browser) return
  const world = await reporting({ PILLARBOX_POLICY__DIGEST: 'true' })
  const { box, ada } = world
  box.dns.mx('owner.example', 'mx.owner.example').a('mx.owner.example', '127.0.0.1')
  await withPassword(box, { ...person, email: 'ada@owner.example' })
  await box.call('PATCH', '/v1/policy', { preset: 'all' })
  const holds = new Map<string, string>()
  for (const subject of ['An offer', 'A complaint']) {
    const input = { to: 'bob@elsewhere.example', subject, body_text: 'Hello Bob.' }
    const { body: email } = await box.call('POST', `/v1/identities/${ada}/emails`, input)
    holds.set(subject, email['hold'].id)
  }
  await world.job('send-hold-digests')
  const raw = (await world.arrived(1))[0]!.raw.replaceAll(/=\r?\n/g, '').replaceAll('=3D', '=')
  const links = [...new Set(raw.match(/http:[^\s&]+&decision=approve/g))].map((link) => new URL(link))
  expect(links).toHaveLength(2)
  const [one, other] = links as [URL, URL]
  const { page } = await screen(browser, box, one.pathname + one.hash, { visitor: true })
  const approve = page.getByRole('button', { name: 'Approve', exact: true })
  await approve.waitFor()
  const subjects = page.locator('main dt', { hasText: 'Subject' }).locator('+ dd')
  const first = (await subjects.textContent())!
  const paste = (url: URL): Promise<unknown> => page.evaluate(`location.href = ${JSON.stringify(url.pathname + url.hash)}`)
  // its first answer is lost
  let lost = 0
  await page.route('**/v1/hold-links/read', (route) => (lost++ === 0 ? route.abort() : route.continue()))
  await paste(other)
  await page.getByText('The box cannot be reached.').waitFor()
  expect(await approve.count()).toBe(0)
  await page.unroute('**/v1/hold-links/read')
  // and the late answer to an earlier one is not shown for a later one
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const token = new URLSearchParams(other.hash.slice(1)).get('token')!
  await page.route('**/v1/hold-links/read', async (route) => {
    if (route.request().postData()!.includes(token)) await released
    await route.continue()
  })
  const asked = page.waitForRequest((request) => request.url().endsWith('/read') && request.postData()!.includes(token))
  await paste(one)
  await approve.waitFor()
  await paste(other)
  const late = await asked
  await paste(one)
  await approve.waitFor()
  release()
  await (await late.response())!.finished()
  await page.waitForTimeout(500)
  expect(await subjects.textContent()).toBe(first)
  await approve.click()
  await page.getByText('This is approved.').waitFor()
  for (const [subject, id] of holds) {
    const { body } = await box.call('GET', `/v1/holds/${id}`)
    expect([subject, body['status']]).toEqual([subject, subject === first ? 'approved' : 'open'])
  }
})

test('who signs in over the page of another person of the account does not do in their own name what waited', async () => {
  if (!browser) return
  const box = await appliance()
  await withPassword(box)
  const owner = await signIn(box)
  const invitation = { email: grace.email, role: 'owner', password: person.password }
  const { body: invited } = await owner.call('POST', '/v1/people/invitations', invitation)
  const token = new URLSearchParams(new URL(invited['url'] as string).hash.slice(1)).get('token')
  const acceptance = { token, password: grace.password }
  const accepted = await box.call('POST', '/v1/people/invitations/accept', acceptance, {
    key: null,
    headers: { Origin: box.url },
  })
  expect(accepted.status).toBe(200)
  const { page } = await screen(browser, box)
  await goSubscribed(page, `${box.url}/webhooks`)
  await page.getByRole('button', { name: 'New webhook' }).click()
  await page.getByLabel('URL').fill('https://receiver.test/hook')
  expect((await owner.call('DELETE', '/v1/account/sessions')).status).toBe(200)
  await page.getByRole('button', { name: 'Create' }).click()
  const again = page.getByRole('dialog', { name: 'Sign in again' })
  await again.getByLabel('E-mail address').fill(grace.email)
  await again.getByLabel('Password').fill(grace.password)
  await again.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(`${box.url}/`, { timeout: 30_000 })
  await page.getByRole('heading', { name: 'Activity' }).waitFor()
  expect((await box.call('GET', '/v1/webhooks')).body.data).toEqual([])
})
