import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chromium } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { peer } from '../support/peer.ts'
import { person, withPassword } from '../support/people.ts'

/** A page of somebody's, on a port of its own: to a browser another origin, and by another name another site. */
async function site(): Promise<number> {
  const server = createServer((_, response) =>
    response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>x</title>'),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

test(
  'a browser that is signed in does nothing for a page elsewhere, and all for one of a listed origin',
  { timeout: 120_000 },
  async () => {
    const executablePath = peer('chromium')
    if (executablePath === undefined) return
    const [ours, theirs] = [await site(), await site()]
    const box = await appliance({ PILLARBOX_HTTP__CORS_ORIGINS: `http://127.0.0.1:${ours}` })
    await withPassword(box)
    const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
    onTestFinished(() => browser.close())
    const context = await browser.newContext()
    const page = await context.newPage()
    await page.goto(`http://127.0.0.1:${ours}/`)
    const call = (from: typeof page, method: string, path: string, body?: unknown) =>
      from.evaluate(
        async ([url, verb, text]) => {
          const init = {
            method: verb!,
            credentials: 'include' as const,
            ...(text ? { body: text, headers: { 'Content-Type': 'application/json' } } : {}),
          }
          return fetch(url!, init).then(
            ({ status }) => status,
            () => 'kept away',
          )
        },
        [`${box.url}${path}`, method, body === undefined ? undefined : JSON.stringify(body)],
      )
    expect(await call(page, 'POST', '/v1/session', person)).toBe(200)
    expect((await context.cookies())[0]).toMatchObject({ name: 'pillarbox', httpOnly: true, sameSite: 'Strict', path: '/' })
    expect(await page.evaluate('document.cookie')).toBe('')
    expect(await call(page, 'POST', '/v1/identities', { name: 'Ada' })).toBe(201)

    // the same site at another port gets the cookie sent along; another site does not
    for (const host of ['127.0.0.1', 'localhost']) {
      const evil = await context.newPage()
      await evil.goto(`http://${host}:${theirs}/`)
      expect(await call(evil, 'GET', '/v1/session')).toBe('kept away')
      expect(await call(evil, 'POST', '/v1/identities', { name: 'Made by another' })).toBe('kept away')
      expect(await call(evil, 'DELETE', '/v1/session')).toBe('kept away')
      // what needs no leave to be asked: a form, and a fetch whose answer is not read
      await evil.evaluate(async (url) => {
        const body = '{"name":"Made by another"}'
        await fetch(url, { method: 'POST', mode: 'no-cors', credentials: 'include', body }).catch(() => undefined)
      }, `${box.url}/v1/identities`)
      await evil.setContent(
        `<form method=post enctype=text/plain action="${box.url}/v1/identities"><input name='{"name":"Made by another","x":"' value='"}'></form>`,
      )
      await Promise.all([evil.waitForURL(`${box.url}/**`), evil.evaluate("document.querySelector('form').submit()")])
      expect(JSON.parse((await evil.locator('body').textContent())!)).toMatchObject({
        error: { type: expect.stringMatching(/forbidden|unauthorized/) },
      })
      await evil.close()
    }
    const { body } = await box.call('GET', '/v1/identities')
    expect(body.data.map(({ name }) => name as string)).toEqual(['Ada'])
    expect(await call(page, 'GET', '/v1/session')).toBe(200)
    expect(await call(page, 'DELETE', '/v1/session')).toBe(200)
    expect(await context.cookies()).toEqual([])
  },
)
