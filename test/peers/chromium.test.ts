import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chromium } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { identity, token } from '../support/live.ts'
import { peer } from '../support/peer.ts'

const page = `<!doctype html><title>Inbox</title><ul></ul><script>
  const [url, token] = location.hash.slice(1).split(',')
  const socket = new WebSocket(url, ['pillarbox.v1', token])
  socket.onopen = () => socket.send(JSON.stringify({ type: 'subscribe', channel: 'email_messages' }))
  socket.onmessage = ({ data }) => {
    const frame = JSON.parse(data)
    const item = document.createElement('li')
    item.textContent = frame.type === 'event' ? frame.event.data.subject : frame.type
    document.querySelector('ul').append(item)
  }
  socket.onclose = ({ code }) => { document.title = 'closed ' + code }
</script>`

/** A site of somebody, on a port of its own. */
async function site(): Promise<string> {
  const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end(page)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a page in a browser shows a mail as it arrives; a page of another site is not let in', { timeout: 90_000 }, async () => {
  const executablePath = peer('chromium')
  if (executablePath === undefined) return
  const [ours, theirs] = [await site(), await site()]
  const box = await appliance({ PILLARBOX_HTTP__CORS_ORIGINS: ours })
  const ada = await identity(box, 'Ada')
  const made = await token(box)
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] })
  onTestFinished(() => browser.close())
  const tab = await browser.newPage()
  await tab.goto(`${ours}/#${made.url},${made.token}`)
  await tab.getByText('subscribed').waitFor()
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Straight to the screen' }, 'x\n') })
  await tab.getByText('Straight to the screen').waitFor()
  const other = await browser.newPage()
  await other.goto(`${theirs}/#${made.url},${made.token}`)
  await other.waitForFunction("document.title === 'closed 1006'")
  expect(await other.locator('li').count()).toBe(0)
})
