import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { peer } from '../../support/peer.ts'
import type { Machine } from './machine.ts'

const client = fileURLToPath(new URL('client.ts', import.meta.url))

/** What `pillarbox init --json` answers, as far as it is looked at. */
export interface Made {
  first_key: string
  setup_link: string
}

/** The answers to the questions of `init`, as the page says scripts give them; nothing outside the machine is asked. */
export const answers = '--yes --json --offline --domain agents.test --hostname mx.agents.test'

/** What `init` printed as JSON, after whatever was printed before it. */
export function madeBy(text: string): Made {
  return JSON.parse(text.slice(text.lastIndexOf('\n{', text.lastIndexOf('"first_key"')) + 1)) as Made
}

/** One message comes in at the port, and is read by the API. */
export async function expectMail(machine: Machine, key: string, port = 25): Promise<void> {
  const delivered = await machine.reach(process.execPath, [client, 'deliver', key, `${port}`])
  expect(delivered.text).toMatch(/^250 /)
  await expectRead(machine, key)
}

/** The message that came in is there. */
export async function expectRead(machine: Machine, key: string): Promise<void> {
  const { text } = await machine.reach(process.execPath, [client, 'read', key])
  const { data } = JSON.parse(text) as { data: unknown[] }
  expect(data[0]).toMatchObject({ subject: 'From nothing', codes: ['493817'] })
}

/** The link that was printed opens in a browser, and leads to a password and in. */
export async function expectPage(machine: Machine, link: string): Promise<void> {
  const chromium = peer('chromium')
  if (chromium === undefined) return
  const browser = await machine.browser(chromium)
  try {
    const page = await browser.newPage()
    await page.goto(link)
    await page.getByLabel('E-mail address').fill('ada@sender.test')
    await page.getByLabel('Password', { exact: true }).fill('a long and quiet evening')
    await page.getByRole('button', { name: 'Set the password' }).click()
    await page.getByRole('heading', { name: 'Activity' }).waitFor()
  } finally {
    await browser.close()
  }
}

/** The service runs as a user with one right, by what the kernel says of its process. */
export async function expectRights(machine: Machine, pid: string): Promise<void> {
  const status = new Map(
    (await machine.must(`cat /proc/${pid}/status`)).split('\n').map((line) => line.split(':\t') as [string, string]),
  )
  const user = new RegExp(`^pillarbox:[^:]*:${status.get('Uid')!.split('\t')[0]}:`, 'm')
  expect(machine.read('/etc/passwd')).toMatch(user)
  // capabilities(7): bit 10 is CAP_NET_BIND_SERVICE
  expect([status.get('CapEff'), status.get('NoNewPrivs')]).toEqual(['0000000000000400', '1'])
}

/** What root does beside a stopped box leaves nothing that the box could not write, and a second set-up changes nothing of the first. */
export async function expectRootLeavesNothing(machine: Machine): Promise<void> {
  expect(await machine.must('pillarbox domain list')).toMatch(/^agents\.test +pending +default$/m)
  expect(await machine.must('find /var/lib/pillarbox /var/lib/pillarbox-keys ! -user pillarbox')).toBe('')
  const again = await machine.run('pillarbox init --yes --offline --domain other.test')
  expect(again.code).not.toBe(0)
  expect(again.text).toContain('There is a box in /var/lib/pillarbox already.')
}
