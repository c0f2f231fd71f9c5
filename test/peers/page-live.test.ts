import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Clock } from '../../src/core/clock.ts'
import { appliance, type Appliance } from '../support/appliance.ts'
import { HeldClock } from '../support/held-clock.ts'
import { withPassword } from '../support/people.ts'
import { chromiumBrowser, goSubscribed, screen } from '../support/screen.ts'
import { says, WebhookSink } from '../support/webhook-sink.ts'

let browser: Browser | undefined

beforeAll(async () => {
  browser = await chromiumBrowser()
})

afterAll(() => browser?.close())

async function desk(clock?: Clock): Promise<Appliance> {
  const settings = { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8', PILLARBOX_WEBHOOKS__ALLOW_HTTP: 'true' }
  const box = await appliance(settings, clock)
  await withPassword(box)
  return box
}

/** A view, connected, that asks for nothing by the clock: what it shows it was told of. `loads` counts how often it was loaded since. */
async function told(box: Appliance, path: string, sign: string): Promise<{ page: Page; loads: () => number }> {
  const { page, context } = await screen(browser!, box, '/')
  await context.addInitScript('window.setInterval = () => 0')
  await goSubscribed(page, `${box.url}${path}`)
  await page.getByText(sign).first().waitFor()
  // what is read again upon that has come
  await page.waitForTimeout(500)
  let loads = 0
  page.on('load', () => (loads += 1))
  return { page, loads: () => loads }
}

test('keys that are made, rotated and revoked elsewhere are shown at once', async () => {
  if (!browser) return
  const box = await desk()
  const { page, loads } = await told(box, '/keys', 'first key')
  const { body: key } = await box.call('POST', '/v1/api-keys', { label: 'made elsewhere' })
  const line = page.getByRole('listitem').filter({ hasText: 'made elsewhere' })
  await line.getByText(`${key['key_prefix']}…`).waitFor()
  const { body: rotated } = await box.call('POST', `/v1/api-keys/${key['id']}/rotate`)
  await line.getByText(`${rotated['key_prefix']}…`).waitFor()
  await box.call('DELETE', `/v1/api-keys/${key['id']}`)
  await line.waitFor({ state: 'detached' })
  expect(loads()).toBe(0)
})

test('webhooks that are made, changed and deleted elsewhere, or end with their key, are shown at once', async () => {
  if (!browser) return
  const box = await desk()
  const { page, loads } = await told(box, '/webhooks', 'No webhook yet.')
  const { body: key } = await box.call('POST', '/v1/api-keys', {})
  const make = async (description: string): Promise<string> => {
    const input = { url: 'https://receiver.test/', events: ['email.received'], description }
    return (await box.call('POST', '/v1/webhooks', input, { key: key['key'] as string })).body['id'] as string
  }
  const line = (text: string) => page.getByRole('listitem').filter({ hasText: text })
  const [one, other] = [await make('The one'), await make('The other')]
  await line('The one').getByText('active', { exact: true }).waitFor()
  const { page: view } = await told(box, `/webhooks/${one}`, 'The one')
  await box.call('PATCH', `/v1/webhooks/${one}`, { description: 'The first' })
  for (const open of [page, view]) await open.getByText('The first').waitFor()
  await box.call('DELETE', `/v1/webhooks/${other}`)
  await line('The other').waitFor({ state: 'detached' })
  await box.call('DELETE', `/v1/api-keys/${key['id']}`)
  for (const open of [page, view]) await open.getByText('disabled: the key that created it expired or was revoked').waitFor()
  expect(loads()).toBe(0)
})

test('what is delivered to a webhook is shown at once, also when it is tried again', async () => {
  if (!browser) return
  // the second attempt is not due before the first is seen
  const clock = new HeldClock(Date.now())
  const box = await desk(clock)
  const sink = await WebhookSink.start()
  sink.behaviour = says(500)
  const { body: hook } = await box.call('POST', '/v1/webhooks', { url: `${sink.url}/hook`, events: ['identity.created'] })
  const { page, loads } = await told(box, `/webhooks/${hook['id']}`, 'Nothing was sent to it yet.')
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  await page.getByText('1 attempt,').waitFor()
  sink.behaviour = says(200)
  clock.advance(10_000)
  await page.getByText('2 attempts,').waitFor()
  await page.getByRole('listitem').getByText('delivered', { exact: true }).waitFor()
  expect([loads(), sink.received.length]).toEqual([0, 2])
})

test('a list is shown although events come faster than it can be read, and is not read many times at once', async () => {
  if (!browser) return
  const box = await desk()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada 0' })
  const { page } = await screen(browser, box, '/')
  let [under, most] = [0, 0]
  await page.route(/\/v1\/identities(\?|$)/, async (route) => {
    under += 1
    most = Math.max(most, under)
    await new Promise((resolve) => setTimeout(resolve, 800))
    under -= 1
    await route.continue()
  })
  const enough = new AbortController()
  const flow = (async () => {
    for (let count = 1; !enough.signal.aborted; count += 1) {
      await box.call('PATCH', `/v1/identities/${ada['id']}`, { name: `Ada ${count}` })
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  })()
  try {
    await goSubscribed(page, `${box.url}/identities`)
    const line = page.getByRole('link', { name: /^Ada \d+$/ })
    await line.waitFor({ timeout: 30_000 })
    // those of the view before, and of the subscription, do not count
    most = 0
    // and what comes later is shown too, while they still come
    const before = await line.textContent()
    await expect.poll(() => line.textContent(), { timeout: 30_000 }).not.toBe(before)
    expect(most).toBeLessThan(4)
  } finally {
    enough.abort()
    await flow
  }
  const { body: last } = await box.call('GET', `/v1/identities/${ada['id']}`)
  await page.getByRole('link', { name: last['name'] as string, exact: true }).waitFor()
})

test('the late answer of an earlier search takes no button from the list that is shown', async () => {
  if (!browser) return
  const box = await desk()
  for (let count = 0; count < 51; count += 1) await box.call('POST', '/v1/identities', { name: `Agent ${count}` })
  const { page } = await screen(browser, box, '/')
  await goSubscribed(page, `${box.url}/identities`)
  const more = page.getByRole('button', { name: 'More' })
  await more.waitFor()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await page.route(/query=nobody/, async (route) => {
    await released
    await route.continue()
  })
  const search = page.getByLabel('Search identities')
  const [asked] = await Promise.all([page.waitForRequest(/query=nobody/), search.fill('nobody')])
  await search.fill('')
  await more.waitFor()
  release()
  await (await asked.response())!.finished()
  await page.waitForTimeout(500)
  expect(await more.count()).toBe(1)
})

test('a view that could not be loaded says so; the next one is not said to have failed while it is loading', async () => {
  if (!browser) return
  const box = await desk()
  const { page } = await screen(browser, box, '/')
  await page.route(/assets\/domains-/, (route) => route.abort())
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  await page.route(/assets\/agents-/, async (route) => {
    await released
    await route.continue()
  })
  const failed = page.getByText('This part of the page could not be loaded.')
  await page.getByRole('link', { name: 'Domains', exact: true }).click()
  await failed.waitFor()
  await page.getByRole('link', { name: 'Agents', exact: true }).click()
  await page.waitForURL(`${box.url}/agents`)
  await page.getByText('Loading…').waitFor({ timeout: 20_000 })
  expect(await failed.count()).toBe(0)
  release()
  await page.getByRole('heading', { name: 'Agents', exact: true }).waitFor()
})
