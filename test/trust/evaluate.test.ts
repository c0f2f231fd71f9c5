import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../src/core/ids.ts'
import {
  acquainted,
  asked,
  askedOtherwise,
  believed,
  decided,
  foreignScore,
  margin,
  strangerScore,
} from '../../src/trust/judgement.ts'
import type { Evaluation } from '../../src/trust/model.ts'
import { type Appliance, type Call, deliver, message, openAppliance } from '../support/appliance.ts'
import { anotherAccount, somebody, type Somebody } from './accounts.ts'

const guide = readFileSync(new URL('../../docs/agents.md', import.meta.url), 'utf8')
let box: Appliance
let close: () => Promise<void>
let other: Call
let ada: Somebody
let bob: Somebody

beforeAll(async () => {
  ;({ box, close } = await openAppliance())
  other = await anotherAccount(box)
  ada = await somebody(box.call, 'Ada')
  bob = await somebody(other, 'Bob')
  box.dns.txt('far.test', 'v=spf1 ip4:127.0.0.1 -all').txt('_dmarc.far.test', 'v=DMARC1; p=none')
})
afterAll(() => close())

describe('a decision', () => {
  test('allows from the score that is asked for, and has somebody look up to 0.2 below', () => {
    expect([decide(0.7, 0.7), decide(0.6999, 0.7), decide(0.5, 0.7), decide(0.4999, 0.7)]).toEqual([
      'allow',
      'review',
      'review',
      'deny',
    ])
    expect([decide(0.1, 0.1), decide(0.1, 0.3), decide(0.3, 0.5), decide(0, 0)]).toEqual(['allow', 'review', 'review', 'allow'])
    expect([decide(1, 0.1, 'review'), decide(1, 0.1, 'deny'), decide(0, 0.9, 'review')]).toEqual(['review', 'deny', 'deny'])
  })

  test('asks what docs/agents.md says', () => {
    for (const [action, min] of Object.entries(asked)) expect(guide).toContain(`| ${action} | ${min} |`)
    expect(guide).toContain(`| none given | ${askedOtherwise} |`)
    expect(guide).toContain(`up to ${margin} less is \`review\``)
    expect([believed, acquainted]).toEqual([0.4, { most: 0.15, half: 10 }])
  })

  test('takes another box’s good word for little, and its bad word for all', () => {
    const none = { positive: 0, negative: 0, disputed: 0 }
    expect([0, 0.2, 0.5, 0.8, 1].map((claimed) => foreignScore(claimed, none))).toEqual([0, 0.2, 0.5, 0.62, 0.7])
    expect(foreignScore(null, none)).toBe(0.5)
    expect(foreignScore(1, { ...none, negative: 10_000 })).toBe(0.5667)
    expect([0, 10, 20].map((letters) => strangerScore(letters, none))).toEqual([0.5, 0.575, 0.6])
  })
})

describe('an agent of this box', () => {
  test.each(['did', 'handle', 'email'] as const)(
    'of another account is known by %s, and nothing of its own is shown',
    async (by) => {
      const { status, body } = await evaluate({ [by]: by === 'email' ? bob.email : bob.agent[by] })
      expect([status, body]).toEqual([
        200,
        {
          decision: 'allow',
          score: 0.5,
          tier: 'bronze',
          min_score: 0.5,
          subject: { did: bob.agent.did, handle: 'bob', identity_id: null, email: bob.email, proven: false },
          reasons: [
            'The score 0.5 (bronze) reaches the required 0.5.',
            'The subject is not authenticated: to authenticate it, request an identity token from it and evaluate that.',
            'There is nothing in its favour yet.',
          ],
        },
      ])
    },
  )

  test('is judged by the action, or by the score that is asked for', async () => {
    const outcomes = []
    for (const input of [
      { action: 'read' },
      { action: 'message' },
      { action: 'delegate' },
      { action: 'payment' },
      { min_score: 0.5001 },
      { min_score: 0.71 },
      { action: 'payment', min_score: 0.2 },
    ]) {
      const { body } = await evaluate({ handle: 'bob', ...input })
      outcomes.push([body.min_score, body.decision])
    }
    expect(outcomes).toEqual([
      [0.3, 'allow'],
      [0.4, 'allow'],
      [0.6, 'review'],
      [0.7, 'review'],
      [0.5001, 'review'],
      [0.71, 'deny'],
      [0.2, 'allow'],
    ])
  })

  test('proves itself by a token for this box, or for the audience that is named', async () => {
    const issue = async (audience?: string): Promise<string> =>
      (await other('POST', `/v1/identities/${bob.id}/token`, audience === undefined ? {} : { audience })).body.token
    const token = await issue()
    const good = await evaluate({ token, action: 'message' })
    expect(good.body).toMatchObject({ decision: 'allow', subject: { did: bob.agent.did, identity_id: null, proven: true } })
    expect(good.body.reasons[1]).toBe('The token is valid: the subject is authenticated.')
    const shop = await issue('https://shop.example.com')
    expect((await evaluate({ token: shop })).body).toMatchObject({
      decision: 'deny',
      score: 0,
      subject: { did: null, proven: false },
    })
    for (const spelled of ['audience', 'aud']) {
      expect((await evaluate({ token: shop, [spelled]: 'https://shop.example.com' })).body).toMatchObject({ decision: 'allow' })
    }
    for (const bad of ['x', `${token}x`, token.slice(0, -4), `${token.split('.').slice(0, 2).join('.')}.`]) {
      const { status, body } = await evaluate({ token: bad, min_score: 0 })
      expect([status, body]).toMatchObject([200, { decision: 'deny', score: 0 }])
      expect(body.reasons[0]).toMatch(/^The token is not valid\. [A-Z]/)
    }
  })

  test('is told with what speaks for and against it, never with how much', async () => {
    const cyd = await somebody(other, 'Cyd')
    await other('POST', `/v1/identities/${cyd.id}/token`, {})
    await box.call('POST', `/v1/identities/${ada.id}/events`, {
      type: 'negative',
      about: cyd.agent.id,
      weight: 5,
      note: 'a secret',
    })
    await box.settled()
    const { body } = await evaluate({ handle: 'cyd' })
    expect(body.reasons).toContain('Against it: reports negative.')
    expect(body.reasons).toContain('In its favour: tokens.')
    expect(JSON.stringify(body)).not.toMatch(/secret|components|counters/)
    expect((await evaluate({ handle: 'cyd', action: 'delegate' })).body.decision).toBe('review')
  })

  test('that is suspended is denied; one that is gone, or never was, too', async () => {
    const eve = await somebody(other, 'Eve')
    const { body: before } = await other('POST', `/v1/identities/${eve.id}/token`, {})
    await other('PATCH', `/v1/identities/${eve.id}`, { status: 'suspended' })
    expect((await evaluate({ handle: 'eve', min_score: 0 })).body).toMatchObject({
      decision: 'deny',
      reasons: ['The identity is suspended.'],
    })
    expect((await evaluate({ token: before.token, min_score: 0 })).body.decision).toBe('deny')
    await other('DELETE', `/v1/identities/${eve.id}`)
    for (const input of [
      { handle: 'eve' },
      { handle: 'never' },
      { did: eve.agent.did },
      { identity_id: newId('ident') },
      { identity_id: bob.id },
    ]) {
      const { status, body } = await evaluate({ ...input, min_score: 0 })
      expect([status, body.decision, body.reasons]).toEqual([200, 'deny', ['There is no such subject on this box.']])
    }
  })

  test('of one’s own account is known by its id, for whoever may name it', async () => {
    expect((await evaluate({ identity_id: ada.id })).body.subject).toMatchObject({ identity_id: ada.id, email: ada.email })
    const { body: key } = await box.call('POST', '/v1/api-keys', { identity_id: (await somebody(box.call, 'Zed')).id })
    expect((await evaluate({ identity_id: ada.id }, { key: key.key as string })).body).toMatchObject({ decision: 'deny' })
  })
})

describe('somebody of elsewhere', () => {
  test('an agent of another box is a name without a token: at best somebody looks, and reports count', async () => {
    const did = 'did:web:elsewhere.test:v1:agents:x'
    expect((await evaluate({ did, min_score: 0 })).body).toMatchObject({
      decision: 'review',
      score: 0.5,
      subject: { did, proven: false },
    })
    await other('POST', `/v1/identities/${bob.id}/events`, { type: 'negative', about: did, weight: 5 })
    const { body } = await evaluate({ did, action: 'payment' })
    expect([body.score, body.decision]).toEqual([0.42, 'deny'])
    expect(body.reasons).toContain('Accounts of this box made bad reports about it.')
    expect(JSON.stringify(body)).not.toContain(bob.id)
  })

  test('an address is known by mail that its domain vouched for, in the account that asks, as far as the key may read', async () => {
    const sam = 'sam@far.test'
    const write = async (from: string): Promise<void> => {
      const raw = message({ From: from, Subject: 'Hello', 'Message-ID': `<${crypto.randomUUID()}@far.test>` }, 'Hello\n')
      expect(await deliver(box.smtp, { from, to: ada.email, raw })).toMatch(/^250/)
    }
    expect((await evaluate({ email: sam, action: 'read' })).body).toMatchObject({ decision: 'review', score: 0.5 })
    await write('sam@unproven.test')
    expect((await evaluate({ email: 'sam@unproven.test', action: 'read' })).body.decision).toBe('review')
    await write(sam)
    await write('Sam@far.test')
    const { body } = await evaluate({ email: 'SAM@Far.test', action: 'message' })
    expect(body).toMatchObject({ decision: 'allow', score: 0.525, subject: { email: sam, did: null } })
    expect(body.reasons[1]).toContain('has written to you before')
    // another account has had no mail of his, and a key for identities alone is told nothing of mail
    expect((await other<Evaluation>('POST', '/v1/trust/evaluate', { email: sam, action: 'read' })).body.decision).toBe('review')
    const { body: key } = await box.call('POST', '/v1/api-keys', { scopes: ['identities:read'] })
    const narrow = await evaluate({ email: sam, action: 'read' }, { key: key.key as string })
    expect(narrow.body).toMatchObject({ decision: 'review', score: 0.5 })
    expect(narrow.body.reasons[1]).toBe('Mail was not considered: the key may not read it.')
    // who wants no more mail is written to after somebody looked
    await box.call('POST', '/v1/suppressions', { email: sam })
    const suppressed = await evaluate({ email: sam, action: 'message' })
    expect([suppressed.body.decision, suppressed.body.reasons]).toEqual([
      'review',
      expect.arrayContaining(['Your account has suppressed this address.']) as string[],
    ])
  })

  test('an address of this box that is no agent’s, or nobody’s, is a stranger', async () => {
    const { body: shy } = await other('POST', '/v1/identities', { name: 'Shy' })
    const [one, none] = [await evaluate({ email: shy.email }), await evaluate({ email: 'nobody@pillarbox.test' })]
    expect(one.body).toEqual({ ...none.body, subject: { ...none.body.subject, email: shy.email } })
    expect(one.body).toMatchObject({ decision: 'review', subject: { identity_id: null, did: null } })
  })
})

test.each([
  [{}, 'token'],
  [{ did: 'did:web:a.test', handle: 'bob' }, 'handle'],
  [{ handle: 'bob', audience: 'https://x.test' }, 'audience'],
  [{ handle: 'bob', aud: 'https://x.test' }, 'aud'],
  [{ token: 'x', aud: 'https://x.test', audience: 'https://y.test' }, 'aud'],
  [{ did: 'web:a.test' }, 'did'],
  [{ did: 'did:web:a.test/x' }, 'did'],
  [{ email: 'nobody' }, 'email'],
  [{ handle: 'bob', action: 'steal' }, 'action'],
  [{ handle: 'bob', min_score: 1.1 }, 'min_score'],
  [{ identity_id: 'x' }, 'identity_id'],
])('%j is no question', async (input, param) => {
  const { status, body } = await evaluate(input)
  expect([status, body]).toMatchObject([400, { error: { param } }])
})

function decide(score: number, min: number, best: 'allow' | 'review' | 'deny' = 'allow'): string {
  return decided({ score, best, reasons: [] }, min).decision
}

function evaluate(input: object, options: { key?: string } = {}) {
  return box.call<Evaluation>('POST', '/v1/trust/evaluate', input, options)
}
