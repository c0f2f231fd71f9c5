import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Pair } from '../outbound/outgoing.ts'
import { looksWell } from '../support/looks.ts'
import { tabTo } from '../support/screen.ts'
import { openPageWorld, viewOf } from './page-world.ts'

let world: Pair
let browser: Browser | undefined
let close: (() => Promise<void>) | undefined

beforeAll(async () => {
  const opened = await openPageWorld()
  if (!opened) return
  ;({ world, browser, close } = opened)
})

afterAll(() => close?.())

async function view(path: string, heading: string): Promise<Page | undefined> {
  return browser && viewOf(browser, world.box, path, heading)
}

async function policyOf(path: string): Promise<unknown> {
  return (await world.box.call('GET', path)).body
}

test('the rules of the account are made, moved and removed; an error stands at the field of its rule', async () => {
  const page = await view('/policy', 'Policy')
  if (!page) return
  const rule = (number: number) => page.getByRole('group', { name: `Rule ${number}`, exact: true })
  await page.getByRole('button', { name: 'Add a rule' }).click()
  await rule(1).getByLabel('Action').selectOption('refuse')
  await rule(1).getByLabel('secret').check()
  await rule(1).getByLabel('email').check()
  await tabTo(page, /^Add a rule$/)
  await page.keyboard.press('Enter')
  await rule(2).getByLabel('Action').selectOption('send')
  await rule(2).getByLabel('To', { exact: true }).fill('known @partner.example nobody@')
  await rule(2).getByLabel('Links').selectOption('without')
  await rule(2).getByLabel('More recipients than').fill('many')
  await page.getByLabel('Where no rule holds').selectOption('all')
  const save = page.getByRole('button', { name: 'Save the policy' })
  await save.click()
  await rule(2).locator('.refusal').waitFor()
  expect(await rule(2).getByLabel('More recipients than').getAttribute('aria-invalid')).toBe('true')
  await rule(2).getByLabel('More recipients than').fill('3')
  await save.click()
  await expect.poll(() => rule(2).getByLabel('To', { exact: true }).getAttribute('aria-invalid')).toBe('true')
  expect(await rule(1).locator('.refusal').count()).toBe(0)
  await looksWell(page, 'policy')
  expect(await policyOf('/v1/policy')).toMatchObject({ preset: 'open', rules: [] })
  await rule(2).getByLabel('To', { exact: true }).fill('known @partner.example')
  await save.click()
  await page.getByText('The policy was saved.').waitFor()
  const first = { when: { channel: ['email'], found: ['secret'] }, action: 'refuse' }
  const second = { when: { to: ['known', '@partner.example'], links: false, recipients_over: 3 }, action: 'send' }
  expect(await policyOf('/v1/policy')).toMatchObject({ preset: 'all', rules: [first, second] })
  // what is stored is what is displayed, and a move keeps what was typed
  await page.reload()
  await rule(2).getByLabel('To', { exact: true }).fill('known')
  await page.getByRole('button', { name: 'Move up rule 2' }).click()
  await save.click()
  await page.getByText('The policy was saved.').waitFor()
  expect(await policyOf('/v1/policy')).toMatchObject({
    preset: 'all',
    rules: [{ ...second, when: { ...second.when, to: ['known'] } }, first],
  })
  // a rule that can never match: the whole rule is wrong
  await page.getByRole('button', { name: 'Add a rule' }).click()
  await page.getByRole('button', { name: 'Add a rule' }).click()
  await save.click()
  await rule(4).locator('.refusal').filter({ hasText: 'rule 3' }).waitFor()
  for (const number of [4, 3, 2, 1]) await page.getByRole('button', { name: `Remove rule ${number}` }).click()
  await page.getByLabel('Where no rule holds').selectOption('open')
  await save.click()
  await expect.poll(() => policyOf('/v1/policy')).toMatchObject({ preset: 'open', rules: [] })
})

test('an identity has a policy of its own', async () => {
  const path = `/identities/${world?.ada.id}`
  const page = await view(`${path}/policy`, 'Ada')
  if (!page) return
  await page.getByLabel('Where no rule holds').selectOption('known')
  await page.getByRole('button', { name: 'Save the policy' }).click()
  await page.getByText('The policy was saved.').waitFor()
  expect(await policyOf(`/v1${path}/policy`)).toMatchObject({ preset: 'known', rules: [] })
  expect(await policyOf('/v1/policy')).toMatchObject({ preset: 'open' })
})

test('who may write is allowed and blocked, for the account and for one identity; a wrong entry is said at its list', async () => {
  const page = await view('/policy', 'Policy')
  if (!page) return
  const form = page.getByRole('form', { name: 'Who may write' })
  await form.getByLabel('Allowed').fill('@partner.example\nada@example.net')
  await form.getByLabel('Blocked').fill('nobody@')
  await form.getByLabel('Set aside above').fill('49')
  await form.getByLabel('Only senders that DMARC verifies').check()
  await form.getByRole('button').click()
  await form.locator('.refusal').waitFor()
  expect(await form.getByLabel('Blocked').getAttribute('aria-invalid')).toBe('true')
  await looksWell(page, 'senders')
  expect(await policyOf('/v1/senders')).toMatchObject({ allow: [], block: [] })
  await form.getByLabel('Blocked').fill('@spam.example')
  await tabTo(page, /^Save the lists$/)
  await page.keyboard.press('Enter')
  await page.getByText('The lists were saved.').waitFor()
  const wanted = {
    allow: ['@partner.example', 'ada@example.net'],
    block: ['@spam.example'],
    require_dmarc: true,
    replies: true,
    max_score: 49,
  }
  expect(await policyOf('/v1/senders')).toMatchObject(wanted)
  await page.goto(`${world.box.url}/identities/${world.ada.id}/policy`)
  await form.getByLabel('Blocked').fill('eve@example.net')
  await form.getByLabel('Verified answers always').uncheck()
  await form.getByRole('button').click()
  await page.getByText('The lists were saved.').waitFor()
  expect(await policyOf(`/v1/identities/${world.ada.id}/senders`)).toMatchObject({ block: ['eve@example.net'], replies: false })
  expect(await policyOf('/v1/senders')).toMatchObject(wanted)
})
