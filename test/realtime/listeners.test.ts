import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { token } from '../support/live.ts'

test('over TLS the address is wss, and works', async () => {
  const directory = folder()
  const pair = await generate([{ name: 'commonName', value: '127.0.0.1' }])
  const [cert, key] = [join(directory, 'cert.pem'), join(directory, 'key.pem')]
  writeFileSync(cert, pair.cert)
  writeFileSync(key, pair.private)
  const box = await appliance({
    PILLARBOX_HTTP__TLS__CERT: cert,
    PILLARBOX_HTTP__TLS__KEY: key,
    PILLARBOX_HTTP__TLS__LISTEN: '127.0.0.1:0',
  })
  const secure = box.url
  box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
  const made = await token(box)
  expect(made.url).toBe(`${secure.replace('https', 'wss')}/v1/realtime`)
  const webSocket = new WebSocket(`${made.url}?token=${made.token}`, { rejectUnauthorized: false })
  onTestFinished(() => webSocket.terminate())
  await once(webSocket, 'open')
  const closed = once(webSocket, 'close')
  const stopped = box.restart()
  expect((await closed)[0]).toBe(1001)
  await stopped
})

test('behind a trusted proxy a refused socket counts against the client’s address', async () => {
  const box = await appliance({ PILLARBOX_HTTP__TRUSTED_PROXIES: '127.0.0.1', PILLARBOX_HTTP__PUBLIC_RATE_LIMIT: '3' })
  const attempt = (address: string): Promise<number> =>
    new Promise((resolve) => {
      const webSocket = new WebSocket(`${box.url.replace('http', 'ws')}/v1/realtime?token=rtt_bad`, {
        headers: { 'X-Forwarded-For': address },
      })
      webSocket.on('unexpected-response', (request, response) => {
        resolve(response.statusCode!)
        request.destroy()
      })
      webSocket.on('error', () => undefined)
    })
  const statuses: number[] = []
  for (let index = 0; index < 4; index += 1) statuses.push(await attempt('203.0.113.7'))
  expect(statuses).toEqual([401, 401, 401, 429])
  expect(await attempt('203.0.113.8')).toBe(401)
})
