import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Appliance, deliver, message } from '../support/appliance.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'
import { person, signIn, withPassword } from '../support/people.ts'
import { chromiumBrowser, goSubscribed, screen } from '../support/screen.ts'

let browser: Browser | undefined

beforeAll(async () => {
  browser = await chromiumBrowser()
})

afterAll(() => browser?.close())

/** A box whose people can sign in, and the server of sender.test, who answers. */
async function desk(): Promise<{ box: Appliance; ada: string; sink: MailSink }> {
  const sink = await MailSink.start()
  const { box, ada } = await sendingBox(sink.port)
  box.dns.mx('sender.test', 'mx.sender.test').a('mx.sender.test', '127.0.0.1')
  await withPassword(box)
  return { box, ada, sink }
}

let letters = 0

async function write(box: Appliance, to: string, subject: string, text: string): Promise<void> {
  letters += 1
  const fields = { To: to, Subject: subject, 'Message-ID': `<${letters}@sender.test>` }
  expect(await deliver(box.smtp, { to, raw: message(fields, text) })).toMatch(/^250 /)
}

async function answer(page: Page, text: string): Promise<void> {
  await page.getByRole('button', { name: 'Reply' }).last().click()
  await page.getByLabel('Message', { exact: true }).fill(text)
  await page.getByRole('button', { name: 'Send', exact: true }).click()
}

test('somebody signs in and makes an identity; mail appears by itself, its code is copied, a reply is delivered', async () => {
  if (!browser) return
  const { box, sink } = await desk()
  const { page, troubles } = await screen(browser, box, '/', { visitor: true })
  await page.getByLabel('E-mail address').fill(person.email)
  await page.getByLabel('Password').fill('not this one')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('The e-mail address or the password is wrong.').waitFor()
  await page.getByLabel('Password').fill(person.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('link', { name: 'Identities', exact: true }).click()
  await page.getByRole('button', { name: 'New identity' }).click()
  await page.getByLabel('Name', { exact: true }).fill('ADA')
  await page.getByRole('button', { name: 'Create' }).click()
  // the complaint is at the field, and what was typed is there
  const complaint = page.locator('.field', { hasText: 'Name' }).locator('.refusal')
  await complaint.waitFor()
  expect(await page.getByLabel('Name', { exact: true }).getAttribute('aria-invalid')).toBe('true')
  await page.getByLabel('Name', { exact: true }).fill('Grace')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText('No mail yet').waitFor()

  let loads = 0
  page.on('load', () => (loads += 1))
  await write(box, 'grace@pillarbox.test', 'Your sign-in code', 'Your verification code is 493817.\n')
  const line = page.getByRole('link', { name: /Your sign-in code/ })
  await line.getByText('1 new').waitFor()
  await line.click()
  await page.getByRole('button', { name: 'Copy the code 493817' }).click()
  await page.getByText('Copied: the code 493817.').waitFor()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe('493817')
  // who looks at a message has read it
  await line.getByText('1 new').waitFor({ state: 'detached' })

  await answer(page, 'Thank you, I am in.')
  const sent = page.getByRole('article', { name: 'From Grace' })
  await sent.getByRole('list').getByText('delivered', { exact: true }).waitFor()
  expect(sink.messages.map(({ raw }) => raw).join('')).toContain('Thank you, I am in.')
  expect([loads, troubles]).toEqual([0, []])
})

test('two people on two screens see the same', async () => {
  if (!browser) return
  const { box, ada } = await desk()
  const inbox = `/identities/${ada}/inbox`
  const [one, other] = await Promise.all([screen(browser, box, inbox), screen(browser, box, inbox)])
  const pages = [one.page, other.page]
  await Promise.all(pages.map((page) => page.getByText('No mail yet').waitFor()))
  await write(box, 'ada@pillarbox.test', 'For both', 'Hello.\n')
  await Promise.all(pages.map((page) => page.getByRole('link', { name: /For both/ }).click()))
  await Promise.all(pages.map((page) => page.getByText('Hello.').last().waitFor()))
  await answer(one.page, 'Answered by one of us.')
  for (const page of pages) {
    const sent = page.getByRole('article', { name: 'From Ada' })
    await sent.getByText('Answered by one of us.').waitFor()
    await sent.getByRole('list').getByText('delivered', { exact: true }).waitFor()
  }
  await box.call('PATCH', `/v1/identities/${ada}`, { name: 'Ada Lovelace', status: 'suspended' })
  for (const page of pages) await page.getByRole('heading', { name: 'Ada Lovelace suspended' }).waitFor()
  expect([...one.troubles, ...other.troubles]).toEqual([])
})

test('a lost connection is told, and what came meanwhile is there once it is back', async () => {
  if (!browser) return
  const { box, ada } = await desk()
  const { page, context } = await screen(browser, box, '/')
  let down = false
  const cut: (() => Promise<void>)[] = []
  const frames: string[] = []
  await context.routeWebSocket(/\/v1\/realtime/, (socket) => {
    if (down) {
      void socket.close({ code: 1013 })
      return
    }
    const server = socket.connectToServer()
    socket.onMessage((frame) => {
      frames.push(String(frame))
      server.send(frame)
    })
    cut.push(() => socket.close({ code: 1013 }))
  })
  await goSubscribed(page, `${box.url}/identities/${ada}/inbox`)
  await write(box, 'ada@pillarbox.test', 'Before', 'One.\n')
  await page.getByRole('link', { name: /Before/ }).waitFor()
  down = true
  for (const end of cut) await end()
  await page.getByText('The connection to the box was lost.').waitFor()
  await write(box, 'ada@pillarbox.test', 'Meanwhile', 'Two.\n')
  expect(await page.getByRole('link', { name: /Meanwhile/ }).count()).toBe(0)
  down = false
  await page.getByRole('link', { name: /Meanwhile/ }).waitFor()
  await page.getByText('The connection to the box was lost.').waitFor({ state: 'detached' })
  // it went on from the event it had last
  expect(frames.filter((frame) => frame.includes('"since":"evt_'))).toHaveLength(1)

  // a network that goes away ends no connection: the browser alone knows
  const told = page.getByText('The connection to the box was lost.')
  await context.setOffline(true)
  await told.waitFor()
  await context.setOffline(false)
  await told.waitFor({ state: 'detached' })

  // the event came, and what it had the page read did not
  await page.route('**/threads*', (route) => route.abort())
  await write(box, 'ada@pillarbox.test', 'Half told', 'Three.\n')
  await page.getByText('The box cannot be reached.').first().waitFor()
  await page.unroute('**/threads*')
  await cut.at(-1)!()
  await page.getByRole('link', { name: /Half told/ }).waitFor()

  // whoever comes back to the tab now and then, before signing in again, opens one connection
  const connections = cut.length
  expect((await (await signIn(box)).call('DELETE', '/v1/account/sessions')).status).toBe(200)
  await cut.at(-1)!()
  const again = page.getByRole('dialog', { name: 'Sign in again' })
  await again.waitFor()
  for (let turns = 0; turns < 3; turns += 1) {
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await page.waitForTimeout(100)
  }
  await again.getByLabel('Password').fill(person.password)
  await again.getByRole('button', { name: 'Sign in' }).click()
  await told.waitFor({ state: 'detached' })
  await write(box, 'ada@pillarbox.test', 'At last', 'Four.\n')
  await page.getByRole('link', { name: /At last/ }).waitFor()
  expect(cut.length - connections).toBe(1)
})

test('what is marked on another screen is seen here, and bodies are not read again for it', async () => {
  if (!browser) return
  const { box, ada } = await desk()
  await write(box, 'ada@pillarbox.test', 'A long letter', 'Hello.\n')
  const { page } = await screen(browser, box, '/')
  await page.clock.install()
  await goSubscribed(page, `${box.url}/identities/${ada}/inbox`)
  await page.getByRole('link', { name: /A long letter/ }).click()
  await page.getByRole('button', { name: 'Mark as unread' }).waitFor()
  const { body } = await box.call('GET', `/v1/identities/${ada}/emails`)
  const { id, thread_id } = body.data[0]!
  const looked = `/v1/identities/${ada}/emails?thread_id=${thread_id}`
  const whole = `/v1/identities/${ada}/threads/${thread_id}`
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url().slice(box.url.length)))
  for (let before = -1; before < asked.length;) {
    before = asked.length
    await page.waitForTimeout(500)
  }
  const glance = async (): Promise<void> => {
    const before = asked.length
    await page.clock.fastForward(16_000)
    await expect.poll(() => asked.slice(before).filter((one) => one.startsWith(looked))).toHaveLength(1)
  }
  await glance()
  await glance()
  expect(asked.filter((one) => one === whole)).toEqual([])
  await box.call('PATCH', `/v1/identities/${ada}/emails/${id}`, { read: false })
  await glance()
  await page.getByRole('button', { name: 'Mark as read' }).waitFor()
  expect(asked.filter((one) => one === whole)).toHaveLength(1)
})

test('in a conversation of several megabytes the newest mail can be opened, and the rest is not read again by the clock', async () => {
  if (!browser) return
  const { box, ada } = await desk()
  const filling = `${'word '.repeat(14)}\n`.repeat(4000)
  for (let issue = 1; issue <= 8; issue += 1) {
    await write(box, 'ada@pillarbox.test', 'The weekly letter', `This is issue ${issue}.\n${filling}`)
  }
  await box.settled()
  const { body: threads } = await box.call('GET', `/v1/identities/${ada}/threads`)
  expect(threads.data).toMatchObject([{ message_count: 8 }])
  const { page } = await screen(browser, box, '/')
  await page.clock.install()
  await goSubscribed(page, `${box.url}/identities/${ada}/inbox/${threads.data[0]!.id}`)
  const later = page.getByRole('button', { name: 'Later' })
  const articles = page.getByRole('article')
  await articles.first().waitFor()
  expect(await articles.count()).toBeLessThan(8)
  const asked: string[] = []
  page.on('request', (request) => asked.push(request.url().slice(box.url.length)))
  for (let before = -1; before < asked.length;) {
    before = asked.length
    await page.waitForTimeout(1000)
  }
  asked.length = 0
  await page.clock.fastForward(16_000)
  await expect.poll(() => asked.some((one) => one.includes('thread_id='))).toBe(true)
  await page.waitForTimeout(1000)
  expect(asked.filter((one) => one.includes('/threads/'))).toEqual([])
  for (let clicks = 0; clicks < 8 && (await articles.count()) < 8; clicks += 1) {
    const before = await articles.count()
    await later.click({ timeout: 20_000 })
    await expect.poll(() => articles.count()).toBeGreaterThan(before)
  }
  expect(await articles.count()).toBe(8)
  expect(await later.count()).toBe(0)
  await articles.last().getByText('This is issue 8.').waitFor()
  const unread = async (): Promise<number> => (await box.call('GET', `/v1/identities/${ada}/emails?unread=true`)).body.data.length
  await expect.poll(unread).toBe(0)
})

test('mail that comes in a tab nobody looks at stays unread until somebody does', async () => {
  if (!browser) return
  const { box, ada } = await desk()
  await write(box, 'ada@pillarbox.test', 'Looked at', 'Once.\n')
  const { page, context } = await screen(browser, box, '/')
  await context.addInitScript(
    "Object.defineProperty(document, 'visibilityState', { get: () => globalThis.lookedAway ? 'hidden' : 'visible' })",
  )
  await goSubscribed(page, `${box.url}/identities/${ada}/inbox`)
  await page.getByRole('link', { name: /Looked at/ }).click()
  const unread = async (): Promise<number> => (await box.call('GET', `/v1/identities/${ada}/emails?unread=true`)).body.data.length
  await expect.poll(unread).toBe(0)
  const look = (away: boolean): Promise<unknown> =>
    page.evaluate(`globalThis.lookedAway = ${away}; document.dispatchEvent(new Event('visibilitychange'))`)
  await look(true)
  await write(box, 'ada@pillarbox.test', 'Looked at', 'Twice.\n')
  await expect.poll(() => page.getByRole('article').count()).toBe(2)
  await page.waitForTimeout(1000)
  expect(await unread()).toBe(1)
  await look(false)
  await expect.poll(unread).toBe(0)
})

test('a sender whose SPF record says nothing of the server is not said to publish none', async () => {
  if (!browser) return
  const { box, ada } = await desk()
  box.dns.txt('sender.test', 'v=spf1 ?all')
  await write(box, 'ada@pillarbox.test', 'Neither', 'Hello.\n')
  const { body } = await box.call('GET', `/v1/identities/${ada}/emails`)
  const { body: email } = await box.call('GET', `/v1/identities/${ada}/emails/${body.data[0]!.id}`)
  expect(email['authentication'].spf.result).toBe('neutral')
  const { page } = await screen(browser, box, `/identities/${ada}/inbox/${body.data[0]!.thread_id}`)
  await page.getByText('Authentication', { exact: true }).click()
  const facts = page.getByRole('article').locator('details dl')
  await facts.getByText('DMARC', { exact: true }).waitFor()
  expect(await facts.textContent()).toContain('sender.test does not say whether the sending server is authorized')
  expect(await facts.textContent()).not.toContain('publishes no SPF record')
})
