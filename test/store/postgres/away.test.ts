import { expect, onTestFinished, test } from 'vitest'
import { emptyDatabase, server } from './server.ts'
import { appliance, deliver, message } from '../../support/appliance.ts'
import { WebhookSink } from '../../support/webhook-sink.ts'

test('a box whose server goes away defers mail and calls, and continues by itself when it is back', async () => {
  const postgres = await server()
  if (!postgres) return
  onTestFinished(() => postgres.close())
  await emptyDatabase(postgres, 'away')
  const box = await appliance({
    PILLARBOX_DATABASE__URL: postgres.url('away'),
    PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
  })
  const sink = await WebhookSink.start()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { status } = await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['email.received'] })
  expect(status).toBe(201)
  const mail = (subject: string): Promise<string> =>
    deliver(box.smtp, { to: ada['email'], raw: message({ Subject: subject, 'Message-ID': `<${subject}@sender.test>` }, 'x\n') })
  expect(await mail('before')).toMatch(/^250 /)
  await sink.until(1)
  for (const how of ['immediate', 'fast'] as const) {
    await postgres.stop(how)
    const refused = await box.call('POST', '/v1/identities', { name: 'Bob' })
    expect(refused.status).toBe(500)
    expect(refused.body.error).toMatchObject({ type: 'internal_error', code: 'storage_unavailable' })
    expect(refused.headers.get('retry-after')).toBe('5')
    expect(await mail(how)).toMatch(/^451 /)
    expect((await box.call('GET', '/readyz', undefined, { key: null })).status).toBe(503)
    await postgres.start()
    expect(await mail(how)).toMatch(/^250 /)
  }
  expect((await box.call('POST', '/v1/identities', { name: 'Bob' })).status).toBe(201)
  await sink.until(3)
  const { body } = await box.call('GET', `/v1/identities/${ada['id']}/emails`)
  expect(body.data.map(({ subject }) => subject as string).toSorted()).toEqual(['before', 'fast', 'immediate'])
  // the result of a probe is used for two seconds
  await expect.poll(async () => (await box.call('GET', '/readyz', undefined, { key: null })).status).toBe(200)
  const lines = box.logged.map((line) => JSON.parse(line) as { msg: string; level: number })
  expect(lines.filter(({ msg }) => msg.includes('database not available'))).toHaveLength(2)
  expect(lines.filter(({ msg }) => msg.includes('database available again'))).toHaveLength(2)
})
