import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'
import { builtPage } from '../support/built-page.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox, type SendingBox } from '../support/outgoing.ts'
import { absent, peer } from '../support/peer.ts'
import { withPassword } from '../support/people.ts'
import { chromiumBrowser } from '../support/screen.ts'
import { byDkimpy, pythonWithDkim } from './dkimpy.ts'
import { viewOf } from './page-world.ts'
import { Postfix } from './postfix.ts'

const master = peer('master', 'apt-get install postfix')
const python = await pythonWithDkim()
const isRoot = process.getuid?.() === 0
if (!isRoot) absent('postfix', 'Postfix starts only as root')
const possible =
  isRoot &&
  [master, python, peer('chromium'), peer('setpriv', 'apt-get install util-linux')].every((program) => program !== undefined)

/** A box that delivers to a Postfix, which keeps mail for bob@far.test. */
async function sendingToPostfix(): Promise<SendingBox & { postfix: Postfix }> {
  const free = await MailSink.start()
  const { port } = free
  await free.stop()
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-approval-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const tls = await certificate(directory, 'mx.far.test')
  const receiving = { port, domain: 'far.test', addresses: ['bob@far.test'], tls }
  const postfix = await Postfix.start(master!, { host: '127.0.0.1', port: 1 }, { receiving })
  const sending = await sendingBox(port, { PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '0' })
  sending.box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  return { ...sending, postfix }
}

describe.runIf(possible)('a person at the page', { timeout: 200_000 }, () => {
  test('approves a held e-mail, which reaches a Postfix with good signatures; another screen shows it without a reload', async () => {
    const browser = (await chromiumBrowser())!
    onTestFinished(() => browser.close())
    await builtPage()
    const { box, ada, postfix } = await sendingToPostfix()
    await withPassword(box)
    const { body: agent } = await box.call('POST', '/v1/api-keys', { label: 'agent' })
    await box.call('PATCH', '/v1/policy', { preset: 'all' })
    const [page, other] = [
      await viewOf(browser, box, '/holds', 'Holds'),
      await viewOf(browser, box, `/identities/${ada}/inbox`, 'Ada'),
    ]
    let loads = 0
    for (const open of [page, other]) open.on('load', () => (loads += 1))
    await other.getByLabel('Show').selectOption('Sent')
    await other.getByText('No e-mail.').waitFor()
    const input = { to: 'bob@far.test', subject: 'The offer', body_text: 'Ten pieces.\n', body_html: '<p>Ten <b>pieces</b>.</p>' }
    const { body: sent } = await box.call('POST', `/v1/identities/${ada}/emails`, input, { key: agent['key'] as string })
    expect(sent['status']).toBe('held')
    const line = other.getByRole('listitem').filter({ hasText: 'The offer' })
    await line.getByText('held', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'E-mail' }).click()
    await page.frameLocator('.mail-frame').getByText('pieces').waitFor()
    expect(postfix.kept('bob@far.test')).toEqual([])
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('approved', { exact: true }).waitFor()
    await line.getByText('delivered', { exact: true }).waitFor()
    expect(loads).toBe(0)
    const [kept] = await vi.waitFor(() => {
      const all = postfix.kept('bob@far.test')
      expect(all).toHaveLength(1)
      return all
    }, 20_000)
    expect(kept!.toString('latin1')).toContain('Subject: The offer\n')
    const { body: domains } = await box.call('GET', '/v1/domains')
    const records = domains.data[0]!['dns_records'] as { name: string; value: string }[]
    const published = Object.fromEntries(records.map(({ name, value }) => [name, value]))
    expect(await byDkimpy(python!, kept!, published)).toEqual(['pass rsa-sha256', 'pass ed25519-sha256'])
    const changed = Buffer.from(kept!.toString('latin1').replace('Ten pieces', 'Six pieces'), 'latin1')
    expect((await byDkimpy(python!, changed, published)).filter((verdict) => verdict.startsWith('pass'))).toEqual([])
  })
})
