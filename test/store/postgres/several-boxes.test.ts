import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { App } from '../../../src/app.ts'
import { loadConfig } from '../../../src/config.ts'
import { systemClock } from '../../../src/core/clock.ts'
import { bootstrapKey, call } from '../../support/appliance.ts'
import { allAttempts } from '../../support/attempts.ts'
import { child } from '../../support/child.ts'
import { DnsStub } from '../../support/dns-stub.ts'
import { folder } from '../../support/folder.ts'
import { lendCertificate } from '../../support/own-certificate.ts'
import { testBox } from '../../support/process.ts'
import { hangs, says, WebhookSink } from '../../support/webhook-sink.ts'
import { quiet } from '../opened.ts'
import { heartbeat } from './queue-of-box.ts'
import { emptyDatabase, serverOfFile } from './server.ts'

const postgres = serverOfFile()

test('the webhook that a killed box was sending is sent by another, once, under the same id', async () => {
  await emptyDatabase(postgres(), 'several')
  const [first, second] = [join(folder(), 'data'), join(folder(), 'data')]
  const dns = await DnsStub.start()
  onTestFinished(() => dns.close())
  const env = (data: string): Record<string, string> => ({
    ...testBox,
    PILLARBOX_DATA_DIR: data,
    PILLARBOX_KEYS_DIR: `${first}-keys`,
    PILLARBOX_DATABASE__URL: postgres().url('several'),
    PILLARBOX_DNS__SERVERS: dns.servers.join(','),
    PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
    PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
  })
  await lendCertificate(first)
  await lendCertificate(second)
  const killed = child('store/postgres/children/box.ts', [JSON.stringify(env(first))])
  await killed.until(1)
  const [url] = killed.lines()
  expect(url).toMatch(/^http:/)
  const sink = await WebhookSink.start()
  sink.behaviour = hangs
  const ask = (path: string, body: unknown) => call({ url: url!, key: bootstrapKey }, 'POST', path, body, {})
  expect((await ask('/v1/webhooks', { url: sink.url, events: ['identity.created'] })).status).toBe(201)
  expect((await ask('/v1/identities', { name: 'Ada' })).status).toBe(201)
  await sink.until(1)
  const config = await loadConfig({ env: env(second), cwd: second })
  const app = await App.open(config, quiet, systemClock, {
    schedule: { idle: true },
    postgres: { shared: true, heartbeat },
  })
  onTestFinished(() => app.stop())
  await app.start()
  // what happens at one is heard by who waits at the other
  const heard: unknown[] = []
  void call({ url: app.publicUrl, key: bootstrapKey }, 'GET', '/v1/events?wait=60&limit=1', undefined, {}).then(({ body }) =>
    heard.push(body),
  )
  for (let number = 0; heard.length === 0; number += 1) {
    await ask('/v1/api-keys', { label: `key ${number}` })
    await sleep(200)
  }
  expect(heard[0]).toMatchObject({ data: [{ type: 'key.created', data: { label: expect.stringMatching(/^key \d+$/) } }] })
  sink.behaviour = says(200)
  await sleep(heartbeat.ended + 1000)
  expect(sink.received).toHaveLength(1)
  await killed.kill()
  await sink.until(2)
  expect(sink.received[1]!.raw).toBe(sink.received[0]!.raw)
  await expect
    .poll(() => postgres().run('several', `SELECT number::int, outcome FROM ${allAttempts} ORDER BY number`))
    .toEqual([
      { number: 1, outcome: 'interrupted' },
      { number: 2, outcome: 'done' },
    ])
  expect(sink.received).toHaveLength(2)
})
