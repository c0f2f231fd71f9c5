import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, test } from 'vitest'
import type { Appliance } from '../../support/appliance.ts'
import { allAttempts } from '../../support/attempts.ts'
import { WebhookSink } from '../../support/webhook-sink.ts'
import { severalBoxes } from './boxes.ts'
import { serverOfFile } from './server.ts'

const postgres = serverOfFile()

test('a webhook that is deleted at one box gets nothing more from another, once the call is answered', async () => {
  const boxes = await severalBoxes(postgres(), 2, { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  const name = boxes[0].env['PILLARBOX_DATABASE__URL']!.split('/').at(-1)!
  const sink = await WebhookSink.start()
  const open: ServerResponse[] = []
  sink.behaviour = (response) => void open.push(response)
  const { body: webhook } = await boxes[0].call('POST', '/v1/webhooks', { url: sink.url, events: ['identity.created'] })
  const { body: other } = await boxes[0].call('POST', '/v1/webhooks', { url: `${sink.url}/other`, events: ['identity.created'] })
  expect((await boxes[0].call('POST', '/v1/identities', { name: 'Ada' })).status).toBe(201)
  await sink.until(2)
  const [holder] = await postgres().run(
    name,
    `SELECT boxes.name FROM boxes INNER JOIN deliveries_queue ON deliveries_queue.run_id = boxes.run_id AND lane = '${webhook.id}'`,
  )
  const elsewhere = boxes.find((box: Appliance) => !String(holder!['name']).includes(box.env['PILLARBOX_DATA_DIR']!))!
  const cut = Promise.all(open.filter(({ req }) => req.url === '/').map((response) => once(response, 'close')))
  expect((await elsewhere.call('DELETE', `/v1/webhooks/${webhook.id}`)).status).toBe(200)
  expect(
    await postgres().run(
      name,
      `SELECT outcome, count(*)::int AS n FROM ${allAttempts} INNER JOIN deliveries_queue ON deliveries_queue.seq = delivery_seq
        WHERE lane = '${webhook.id}' GROUP BY outcome`,
    ),
  ).toEqual([{ outcome: 'interrupted', n: 1 }])
  await cut
  // those of others go on, and nothing more comes to the deleted one
  expect(
    await postgres().run(
      name,
      `SELECT count(*)::int AS n FROM deliveries_queue WHERE lane = '${other.id}' AND state = 'running'`,
    ),
  ).toEqual([{ n: 1 }])
  for (const response of open) response.end('thanks')
  await boxes[0].call('POST', '/v1/identities', { name: 'Ben' })
  await sink.until(2, ({ path }) => path === '/other')
  expect(sink.received.filter(({ path }) => path === '/')).toHaveLength(1)
})

test('what waits in the backlog of a box that has ended is taken up by another', async () => {
  const boxes = await severalBoxes(postgres(), 1, { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  const name = boxes[0].env['PILLARBOX_DATABASE__URL']!.split('/').at(-1)!
  const sink = await WebhookSink.start()
  await boxes[0].call('POST', '/v1/webhooks', { url: sink.url, events: ['identity.created'] })
  await boxes[0].call('POST', '/v1/identities', { name: 'Ada' })
  await sink.until(1)
  await boxes[0].settled()
  // as another box leaves it
  await postgres().run(
    name,
    `INSERT INTO webhook_backlog (seq, account_id) SELECT seq, account_id FROM events WHERE type = 'identity.created'`,
    `INSERT INTO boxes (run_id, directory, seen_at) VALUES ('other', 'there', floor(extract(epoch FROM clock_timestamp()) * 1000))`,
  )
  await sink.until(2)
  expect(sink.received.map(({ body }) => body.id)).toEqual([sink.received[0]!.body.id, sink.received[0]!.body.id])
})

test('a success at one box ends the failures that another has seen', async () => {
  const boxes = await severalBoxes(postgres(), 1, { PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  const name = boxes[0].env['PILLARBOX_DATABASE__URL']!.split('/').at(-1)!
  const sink = await WebhookSink.start()
  const { body: webhook } = await boxes[0].call('POST', '/v1/webhooks', { url: sink.url, events: ['identity.created'] })
  const failing = `SELECT failing_since FROM webhooks WHERE id = '${webhook.id}'`
  await boxes[0].call('POST', '/v1/identities', { name: 'Ada' })
  await sink.until(1)
  await boxes[0].settled()
  // as another box writes it
  await postgres().run(name, `UPDATE webhooks SET failing_since = '2026-11-20T10:05:00.000Z' WHERE id = '${webhook.id}'`)
  await boxes[0].call('POST', '/v1/identities', { name: 'Ben' })
  await sink.until(2)
  await boxes[0].settled()
  expect(await postgres().run(name, failing)).toEqual([{ failing_since: null }])
})
