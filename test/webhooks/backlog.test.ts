import { expect, test } from 'vitest'
import { inside } from '../cards/settled.ts'
import { appliance } from '../support/appliance.ts'
import { type Behaviour, says, WebhookSink } from '../support/webhook-sink.ts'

const many = 300

test('deliveries of an event that very many wait for are created as attempts may begin, and each hears it once', async () => {
  const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  const sink = await WebhookSink.start()
  for (let number = 0; number < many; number += 1)
    await box.call('POST', '/v1/webhooks', { url: `${sink.url}/${number}`, events: ['identity.created'] })
  const { body: first } = await box.call('POST', '/v1/identities', {})
  await box.settled()
  const held: Parameters<Behaviour>[0][] = []
  sink.behaviour = (response) => void held.push(response)
  const { body: second } = await box.call('POST', '/v1/identities', {})
  const states = () =>
    inside<{ state: string; n: number }>(box, 'SELECT state, count(*) AS n FROM deliveries_queue GROUP BY state ORDER BY state')
  // all of them are under way and none waits, until as many are as may be of one account
  await expect.poll(() => states().find(({ state }) => state === 'running')?.n ?? 0).toBeGreaterThan(176)
  const [done, running, ...others] = states()
  expect(done).toEqual({ state: 'done', n: many })
  expect(running!.n).toBeLessThanOrEqual(240)
  expect(others).toEqual([])
  expect(inside(box, 'SELECT count(*) AS n FROM webhook_backlog')).toEqual([{ n: 1 }])
  sink.behaviour = says(200)
  for (const response of held) response.writeHead(200).end()
  await box.settled()
  expect(states()).toEqual([{ state: 'done', n: 2 * many }])
  expect(inside(box, 'SELECT count(*) AS n FROM webhook_backlog')).toEqual([{ n: 0 }])
  for (const { id } of [first, second]) {
    const paths = sink.received.filter(({ body }) => body.identity_id === id).map(({ path }) => path)
    expect(paths).toHaveLength(many)
    expect(new Set(paths).size).toBe(many)
  }
})
