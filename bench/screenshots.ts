import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium, type Page } from 'playwright-core'
import { type Appliance, deliver, message, openAppliance } from '../test/support/appliance.ts'
import { person, signIn, withPassword } from '../test/support/people.ts'

/** Writes the pictures of docs/page.md: each view of the page, light and dark. */

const folder = join(fileURLToPath(new URL('..', import.meta.url)), 'docs', 'page')

interface View {
  name: string
  path: string
  /** What is done before the picture is taken. */
  before?: (page: Page) => Promise<void>
  visitor?: boolean
  width?: number
}

function views(ada: string, thread: string): View[] {
  const inbox = `/identities/${ada}/inbox/${thread}`
  return [
    { name: 'sign-in', path: '/', visitor: true },
    { name: 'identities', path: '/identities' },
    { name: 'inbox', path: inbox, before: (page) => page.getByText('Authentication', { exact: true }).click() },
    {
      name: 'reply',
      path: inbox,
      before: async (page) => {
        await page.getByRole('button', { name: 'Reply' }).click()
        await page.getByLabel('Message', { exact: true }).fill('Thank you, I am in.')
      },
    },
    { name: 'telephone', path: inbox, width: 360 },
    {
      name: 'identity',
      path: `/identities/${ada}/settings`,
      before: (page) => page.getByRole('button', { name: 'Delete', exact: true }).click(),
    },
    { name: 'account', path: '/account' },
  ]
}

const html = `<style>body{font-family:sans-serif}</style><h2>Welcome to the club, Ada</h2><p>Your code is <b>493817</b>.</p>
<p><a href="https://club.test/confirm?token=1">Confirm your address</a></p><img src="https://club.test/logo.png" alt="The Club">`

async function fill(box: Appliance): Promise<View[]> {
  await withPassword(box)
  box.dns.txt('club.test', 'v=spf1 ip4:127.0.0.1 -all').txt('_dmarc.club.test', 'v=DMARC1; p=reject')
  for (const name of ['Hedy', 'Grace', 'Ada']) await box.call('POST', '/v1/identities', { name })
  const { body } = await box.call('GET', '/v1/identities')
  const { id, email } = body.data[0]!
  const write = (from: string, fields: Record<string, string>, text: string): Promise<string> =>
    deliver(box.smtp, { from, to: email, raw: message({ To: email, ...fields }, text) })
  await write('sam@example.com', { From: 'Sam <sam@example.com>', Subject: 'Lunch on Tuesday?' }, 'Shall we say noon?\n')
  await write('news@example.org', { From: 'The Weekly <news@example.org>', Subject: 'Ten things' }, 'This week, ten things.\n')
  const parts = `--b\nContent-Type: text/plain\n\nYour code is 493817.\nhttps://club.test/confirm?token=1\n--b\nContent-Type: text/html\n\n${html}\n--b--\n`
  const club = { From: 'The Club <hello@club.test>', Subject: 'Your sign-in code' }
  await write('hello@club.test', { ...club, 'Content-Type': 'multipart/alternative; boundary=b' }, parts)
  const { body: threads } = await box.call('GET', `/v1/identities/${id}/threads`)
  return views(id, threads.data[0]!['id'])
}

async function take(): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const { box, close } = await openAppliance()
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] })
  try {
    const all = await fill(box)
    const [name = '', value = ''] = (await signIn(box, person)).cookie.split('=')
    for (const { name: view, path, before, visitor, width = 1080 } of all) {
      for (const colorScheme of ['light', 'dark'] as const) {
        const context = await browser.newContext({ viewport: { width, height: 660 }, colorScheme, reducedMotion: 'reduce' })
        if (!visitor) await context.addCookies([{ name, value, url: box.url }])
        const page = await context.newPage()
        await page.goto(box.url + path, { waitUntil: 'networkidle' })
        await before?.(page)
        await page.waitForTimeout(400)
        await page.screenshot({ path: join(folder, `${view}-${colorScheme}.png`) })
        await context.close()
      }
    }
  } finally {
    await browser.close()
    await close()
  }
}

await take()
