import { expect, test } from 'vitest'
import { welcome } from '../../src/commands/serve.ts'
import { loadConfig } from '../../src/config.ts'
import { appliance } from '../support/appliance.ts'

test('the first start says that the page needs https, where it would be asked for by plain http from elsewhere', async () => {
  for (const [url, told] of [
    ['http://127.0.0.1:8080', false],
    ['http://localhost:8080', false],
    ['http://[::1]:8080', false],
    ['https://box.example.com', false],
    ['http://box.example.com', true],
    ['http://localhost.example.com', true],
  ] as const) {
    const box = await appliance({ PILLARBOX_PUBLIC_URL: url })
    const config = await loadConfig({ env: box.env, cwd: box.directory })
    const text = welcome(box.app, config, 'key', await box.app.setupLink())
    expect(text).toContain(`${url}/setup#token=`)
    expect([url, text.includes('The page requires https')]).toEqual([url, told])
  }
})
