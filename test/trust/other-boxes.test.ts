import { expect, test } from 'vitest'
import type { Evaluation } from '../../src/trust/model.ts'
import { appliance } from '../support/appliance.ts'
import { authority } from '../support/authority.ts'
import { IssuerHost } from '../support/issuer-host.ts'
import { newKey } from '../support/tokens.ts'
import { anotherAccount, somebody } from './accounts.ts'

test('an agent of another box is judged by its box’s word, which counts little, and by what was reported here', async () => {
  const trusted = await authority()
  const box = await appliance({ PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8', PILLARBOX_FETCH__CA_FILE: trusted.caFile })
  const host = await IssuerHost.start(trusted)
  const key = newKey()
  const did = host.did('v1:agents:ada')
  host.publish(did, key)
  host.publish(host.did(), key)
  const evaluate = async (changes: object, sub = did): Promise<Evaluation> => {
    const token = host.token(key, sub, { aud: box.url, ...changes })
    return (await box.call<Evaluation>('POST', '/v1/trust/evaluate', { token, action: 'payment' })).body
  }

  const praised = await evaluate({ reputation: { score: 1, tier: 'platinum' }, email: 'ceo@example.com', handle: 'boss' })
  expect(praised).toMatchObject({
    decision: 'allow',
    score: 0.7,
    // what else it says of itself is not shown as if it were known
    subject: { did, handle: null, identity_id: null, email: null, proven: true },
  })
  expect(praised.reasons[1]).toContain(`${host.origin} authenticates ${did}, and nothing else`)
  expect(await evaluate({ reputation: { score: 0.4, tier: 'bronze' } })).toMatchObject({ decision: 'deny', score: 0.4 })
  for (const reputation of [undefined, 'best', { score: 7 }, { score: -1 }, { score: '1' }, [1]]) {
    expect(await evaluate({ reputation })).toMatchObject({ decision: 'review', score: 0.5 })
  }

  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  await box.call('POST', `/v1/identities/${bob.id}/events`, { type: 'negative', about: did, weight: 5 })
  expect(await evaluate({ reputation: { score: 1 } })).toMatchObject({ decision: 'review', score: 0.62 })

  // a box that calls one of its own as one of ours is called gets nothing of what is said of ours
  const eve = await somebody(box.call, 'Eve')
  const other = await anotherAccount(box)
  const { body: cyd } = await other('POST', '/v1/identities', { name: 'Cyd' })
  await other('POST', `/v1/identities/${cyd.id}/events`, { type: 'positive', about: eve.agent.id, weight: 5 })
  expect(await evaluate({}, eve.id)).toMatchObject({ score: 0.5, subject: { did: null, identity_id: null } })

  host.pages.clear()
  const unknown = newKey()
  const forged = await box.call<Evaluation>('POST', '/v1/trust/evaluate', {
    token: host.token(unknown, did, { aud: box.url }),
    min_score: 0,
  })
  expect(forged.body).toMatchObject({ decision: 'deny', score: 0, subject: { did: null, proven: false } })
})
