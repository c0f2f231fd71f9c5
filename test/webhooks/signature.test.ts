import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { SecretRotation } from '../../src/webhooks/model.ts'
import { newSecret, signatureHeaders, signingKey } from '../../src/webhooks/signature.ts'

const signed = { id: 'evt_1', timestamp: Math.floor(Date.now() / 1000), body: '{"text":"grüße 🎉"}' }

test('the example of the Standard Webhooks specification comes out as it says', () => {
  const headers = signatureHeaders(
    { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: 1614265330, body: '{"test": 2432232314}' },
    signingKey('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'),
    null,
  )
  expect(headers['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=')
  expect(headers['X-Service-Signature']).toBe(
    createHmac('sha256', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw').update('{"test": 2432232314}').digest('hex'),
  )
})

test('during a rotation both secrets verify, and no other', () => {
  const [now, before, other] = [newSecret(), newSecret(), newSecret()]
  const headers = signatureHeaders(signed, signingKey(now), signingKey(before))
  for (const secret of [now, before]) expect(new Webhook(secret).verify(signed.body, headers)).toEqual(JSON.parse(signed.body))
  expect(() => new Webhook(other).verify(signed.body, headers)).toThrow('signature')
  expect(headers['X-Service-Signature-Previous']).toBe(createHmac('sha256', before).update(signed.body).digest('hex'))
  expect(signatureHeaders(signed, signingKey(now), null)).not.toHaveProperty('X-Service-Signature-Previous')
})

test('a secret of the user’s own keys with its text', () => {
  const secret = 'a secret of my own making'
  expect(new Webhook(secret, { format: 'raw' }).verify(signed.body, signatureHeaders(signed, signingKey(secret), null))).toEqual(
    JSON.parse(signed.body),
  )
})

test('made secrets differ and hold 32 bytes; given ones must be usable by every receiver', () => {
  expect(newSecret()).not.toBe(newSecret())
  expect(Buffer.from(newSecret().slice(6), 'base64')).toHaveLength(32)
  for (const good of [newSecret(), 'sixteen-letters!', 'x'.repeat(256)])
    expect([good, SecretRotation.safeParse({ secret: good }).success]).toEqual([good, true])
  for (const bad of [
    'short',
    'x'.repeat(257),
    'umlauts are bad: ü',
    'line\nbreak in here',
    'whsec_',
    'whsec_not base64 at all',
    'whsec_c2hvcnQ=',
  ]) {
    expect([bad, SecretRotation.safeParse({ secret: bad }).success]).toEqual([bad, false])
  }
})
