import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { deliver, message } from '../support/appliance.ts'
import { builtPage } from '../support/built-page.ts'
import { Firefox } from '../support/firefox.ts'
import { livedIn } from '../support/lived-in.ts'
import { person } from '../support/people.ts'

/** The paths of all views, of which those of `arrivals` are for who has no password yet. */
const views = [
  ...readFileSync(new URL('../../src/web/browser/views.ts', import.meta.url), 'utf8')
    .split('export const arrivals')[0]!
    .matchAll(/path: '([^']+)'/g),
].map(([, path]) => path!)

beforeAll(() => builtPage())

let firefox: Firefox | undefined
beforeAll(async () => {
  firefox = await Firefox.start()
})
afterAll(() => firefox?.stop())

/** The page of a box with a conversation in it, to which somebody has signed in by the keyboard. */
async function signedIn(browser: Firefox): Promise<Awaited<ReturnType<typeof livedIn>>> {
  const world = await livedIn()
  onTestFinished(() => expect(browser.troubles).toEqual([]))
  await browser.resize(1280, 800)
  await browser.open(world.box.url)
  await browser.fill('E-mail address', person.email)
  // from field to field, and sent
  await browser.type(`\uE004${person.password}\uE007`)
  await browser.shows('What')
  return world
}

test('in Firefox ESR every view shows itself, and on 360 pixels nothing sticks out', async () => {
  if (!firefox) return
  const { box, ada, thread } = await signedIn(firefox)
  const { body: domains } = await box.call('GET', '/v1/domains')
  const ids: Record<string, string> = {
    '/identities/:id': ada,
    '/domains/:id': domains.data[0].id as string,
  }
  const paths = views
    .map((path) => {
      const place = Object.keys(ids).find((prefix) => path.startsWith(prefix))
      return path.replace(':thread_id', thread).replace(':id', place === undefined ? ':id' : ids[place]!)
    })
    .filter((path) => !path.includes(':'))
  expect(paths.length).toBeGreaterThan(20)
  for (const width of [1280, 360]) {
    await firefox.resize(width, 800)
    for (const path of paths) {
      await firefox.open(`${box.url}${path}`)
      await firefox.until(`document.querySelector('main h1') && !document.body.innerText.includes('Loading…')`)
      expect([path, await firefox.evaluate('document.documentElement.scrollWidth <= innerWidth')]).toEqual([path, true])
      expect([path, await firefox.evaluate(`document.querySelector('.trouble')?.textContent ?? ''`)]).toEqual([path, ''])
    }
  }
})

test('in Firefox ESR mail is written, arrives on the open screen, and is shown as it was sent', async () => {
  if (!firefox) return
  const { box, ada, thread } = await signedIn(firefox)
  await firefox.click('Identities')
  await firefox.shows('New identity')
  await firefox.click('Ada')
  await firefox.click('Write')
  await firefox.fill('To', 'grace@pillarbox.test')
  await firefox.fill('Subject', 'From Firefox')
  await firefox.fill('Message', 'Written with a fox.')
  await firefox.click('Send')
  await firefox.shows('From Firefox')
  const { body: grace } = await box.call('GET', '/v1/identities?name=Grace')
  const subjects = async (): Promise<string[]> =>
    (await box.call('GET', `/v1/identities/${grace.data[0].id}/emails`)).body.data.map(({ subject }) => subject as string)
  await expect.poll(subjects).toContain('From Firefox')

  const { body: to } = await box.call('GET', `/v1/identities/${ada}`)
  await deliver(box.smtp, { to: to['email'], raw: message({ To: to['email'], Subject: 'While you look' }, 'Code 271828.') })
  await firefox.shows('While you look')

  await firefox.open(`${box.url}/identities/${ada}/inbox/${thread}`)
  await firefox.click('Copy the code 493817')
  await firefox.until(`document.querySelector('iframe.mail-frame')`)
})

test('in Firefox ESR a login is stored, shown and deleted', async () => {
  if (!firefox) return
  const { box, ada } = await signedIn(firefox)
  await firefox.open(`${box.url}/identities/${ada}/logins`)
  await firefox.click('New login')
  await firefox.fill('Place', 'GitHub')
  await firefox.fill('Password', 'correct horse')
  await firefox.click('Store')
  await firefox.click('Show the login at GitHub')
  await firefox.shows('correct horse')
  const { body: stored } = await box.call('GET', `/v1/identities/${ada}/logins`)
  expect(stored.data).toMatchObject([{ label: 'GitHub', has_password: true }])
  await firefox.click('Close')
  await firefox.click('Delete GitHub')
  await firefox.click('Delete')
  await firefox.shows('No login yet.')
})
