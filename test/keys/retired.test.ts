import { expect, test } from 'vitest'
import { App } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import { createLog } from '../../src/core/log.ts'
import { appliance } from '../support/appliance.ts'
import { verifiedDomain } from '../support/verified-domain.ts'

test('the master key can be changed after the keys of a domain or of tokens were, whose private halves are gone', async () => {
  const clock = { ahead: 0, now: () => Date.now() + clock.ahead }
  const box = await appliance({}, clock)
  const domain = await verifiedDomain(box)
  expect((await box.call('POST', `/v1/domains/${domain.id}/dkim/rotate`)).status).toBe(200)
  clock.ahead = 601_000
  expect((await box.call('POST', '/v1/signing-keys/rotate', { now: false })).status).toBe(200)
  await box.app.stop()
  const closed = await App.open(await loadConfig({ env: box.env, cwd: box.directory }), createLog('silent'))
  try {
    expect((await closed.rotateMasterKey()).values).toBeGreaterThan(5)
  } finally {
    await closed.stop()
  }
  await box.restart()
  expect((await box.call('GET', '/v1/domains')).status).toBe(200)
})
