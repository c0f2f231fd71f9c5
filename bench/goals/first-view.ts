import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { type Box, startBox } from '../box.ts'
import { startNameServer } from '../dns.ts'
import { fill } from '../fill.ts'
import { type Bench, finding } from '../finding.ts'
import { type Sample, shown, spreadOf } from '../measure.ts'
import { senderZone } from '../messages.ts'
import { openStore } from '../seed.ts'

const messages = 100_000
const identities = 1000

const person = { email: 'ada@example.com', password: 'a long and quiet evening' }

/** From the address to what one came for, in a browser that was never there (P21): all identities, and a mailbox. */
export const firstView: Bench = {
  name: 'first-view',
  goals: ['P21'],
  async run({ directory, rounds }) {
    const data = join(directory, 'data')
    const store = await openStore(data)
    const ids = await fill(store, messages, identities, () => {})
    await store.close()
    const server = await startNameServer(directory, senderZone)
    const box = await startBox({ directory: data, dns: server.address })
    const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
    try {
      setPassword(data)
      const cookie = await signedIn(box)
      const samples: Sample[] = []
      for (let round = 0; round <= rounds; round++) {
        const context = await browser.newContext()
        await context.addCookies([{ ...cookie, url: box.url }])
        const list = await timed(context, `${box.url}/`, (page) => page.locator('.rows li').nth(20).waitFor())
        const inbox = `${box.url}/identities/${ids[round % ids.length]!}/inbox`
        const mailbox = await timed(context, inbox, (page) => page.locator('.mails li').nth(20).waitFor())
        await context.close()
        if (round > 0) samples.push({ 's list': list / 1000, 's mailbox': mailbox / 1000 })
      }
      return (['list', 'mailbox'] as const).map((what) => {
        const spread = spreadOf(samples, `s ${what}`)
        return finding({
          goal: 'P21',
          what: `First view of the page: ${what}, in a box of ${identities} identities and ${messages} messages`,
          against: '–',
          value: spread.median,
          most: 0.3,
          unit: 's',
          figures: [`${shown(spread)} s`],
        })
      })
    } finally {
      await browser.close()
      await box.stop()
      server.stop()
    }
  },
}

/** Milliseconds in which Chromium loads the parts of its own new window, a hundred files. */
const ownStart = 2000

/** Milliseconds until what is wanted can be seen. */
async function timed(context: BrowserContext, url: string, seen: (page: Page) => Promise<void>): Promise<number> {
  const page = await context.newPage()
  await sleep(ownStart)
  const began = performance.now()
  await page.goto(url, { waitUntil: 'commit' })
  await seen(page)
  const took = performance.now() - began
  await page.close()
  return took
}

/** The first password is set as its operator sets it: no key can. */
function setPassword(data: string): void {
  const words = ['account', 'password', 'bench', '--email', person.email, '--data', data]
  execFileSync(fileURLToPath(new URL('../../bin/pillarbox', import.meta.url)), words, { input: `${person.password}\n` })
}

async function signedIn(box: Box): Promise<{ name: string; value: string }> {
  const headers = { 'Content-Type': 'application/json', Origin: box.url }
  const session = await fetch(`${box.url}/v1/session`, { method: 'POST', headers, body: JSON.stringify(person) })
  const [name = '', value = ''] = session.headers.getSetCookie()[0]!.split(';', 1)[0]!.split('=')
  return { name, value }
}
