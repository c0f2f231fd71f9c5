import { expect, test } from 'vitest'
import type { Evaluation } from '../../src/trust/model.ts'
import { appliance } from '../support/appliance.ts'
import { authority } from '../support/authority.ts'
import { IssuerHost } from '../support/issuer-host.ts'
import { newKey } from '../support/tokens.ts'
import { somebody } from './accounts.ts'

test('one of this box is known by its DID in every spelling that resolves to it', async () => {
  const box = await appliance({ PILLARBOX_PUBLIC_URL: 'https://box.example:8443' })
  box.url = `http://127.0.0.1:${box.app.httpAddresses.plain!.port}`
  const ada = await somebody(box.call, 'Ada')
  expect(ada.agent.did).toBe(`did:web:box.example%3A8443:v1:agents:${ada.agent.id}`)
  const evaluate = async (did: string): Promise<Evaluation> =>
    (await box.call<Evaluation>('POST', '/v1/trust/evaluate', { did, min_score: 0 })).body
  await box.call('PATCH', `/v1/identities/${ada.id}`, { status: 'suspended' })
  for (const host of [
    'box.example%3A8443',
    'BOX.example%3A8443',
    'box.example%3a8443',
    'box.example.%3A8443',
    'b%6Fx.example%3A8443',
  ]) {
    const spelled = [`did:web:${host}:v1:agents:${ada.agent.id}`, `did:web:${host}:v1:%61gents:${ada.agent.id}`]
    for (const did of spelled) {
      const { decision, reasons, subject } = await evaluate(did)
      expect([did, decision, reasons]).toEqual([did, 'deny', ['The identity is suspended.']])
      expect(subject.did).toBe(ada.agent.did)
    }
    // and whatever else bears the name of the box is nobody
    for (const did of [`did:web:${host}`, `did:web:${host}:v1:agents:${ada.agent.id}x`, `did:web:${host}:v2:${ada.agent.id}`]) {
      expect([did, (await evaluate(did)).decision]).toEqual([did, 'deny'])
    }
  }
})

test('a DID of another box is looked up: one that is not there is denied, one that cannot be is looked at', async () => {
  const trusted = await authority()
  const box = await appliance({ PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8', PILLARBOX_FETCH__CA_FILE: trusted.caFile })
  const host = await IssuerHost.start(trusted)
  const key = newKey()
  const evaluate = async (did: string): Promise<Evaluation> =>
    (await box.call<Evaluation>('POST', '/v1/trust/evaluate', { did, min_score: 0 })).body

  host.publish(host.did('ada'), key)
  const there = await evaluate(host.did('ada'))
  expect(there).toMatchObject({ decision: 'review', score: 0.5, subject: { did: host.did('ada'), proven: false } })
  expect(there.reasons[1]).toMatch(/^The agent exists/)
  // a spelling that others would not compare with the one in the document
  expect((await evaluate(host.did('ada').replace('%3A', '%3a'))).subject.did).toBe(host.did('ada'))
  expect(host.asked).toEqual(['/ada/did.json'])

  host.publish(host.did('quiet'), key, { assertionMethod: [] })
  const quiet = await evaluate(host.did('quiet'))
  expect([quiet.decision, quiet.reasons[0]]).toEqual(['deny', expect.stringContaining('has no keys')])

  const gone = await evaluate(host.did('nobody'))
  expect([gone.decision, gone.score, gone.reasons]).toEqual(['deny', 0, [expect.stringContaining(' has no ')]])
  host.publish(host.did('mallory'), key, { id: host.did('ada') })
  expect((await evaluate(host.did('mallory'))).decision).toBe('deny')
  expect((await evaluate(`${host.did('a')}:..:b`)).decision).toBe('deny')

  host.pages.set('/away/did.json', { status: 503 })
  const away = await evaluate(host.did('away'))
  expect([away.decision, away.reasons[1]]).toEqual(['review', expect.stringContaining('answered 503')])
  const other = await evaluate(`did:key:${key.multibase}`)
  expect([other.decision, other.reasons[1]]).toEqual(['review', expect.stringContaining('only did:web is supported')])
})

test.each(['127.0.0.1', '10.0.0.1', '169.254.169.254', '[::1]', 'localhost', 'inner.test'])(
  'no connection is opened to %s for the sake of a DID',
  async (host) => {
    const dialled: unknown[] = []
    const box = await appliance({}, undefined, {
      outsideDial: (options, done) => {
        dialled.push(options.hostname)
        done(new Error('must not be called'), null)
      },
    })
    box.dns.a('inner.test', '10.1.2.3')
    const did = `did:web:${encodeURIComponent(host)}:v1:agents:x`
    const { body } = await box.call<Evaluation>('POST', '/v1/trust/evaluate', { did })
    expect([body.decision, body.reasons.join(' ')]).toEqual(['review', expect.stringContaining('is not a public address')])
    expect(dialled).toEqual([])
  },
)
