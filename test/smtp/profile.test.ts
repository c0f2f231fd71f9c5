import { expect, test } from 'vitest'
import { conflict, Fault, invalid, notFound, storageFull } from '../../src/core/fault.ts'
import { receiving, submitting } from '../../src/smtp/profile.ts'
import { Refusal } from '../../src/smtp/replies.ts'

test.each([
  [new Fault('rate_limited', 'Too many.', { retryAfter: 60 }), '451 4.7.1 Too many.'],
  [new Fault('unauthorized', 'Gone.'), '421 4.7.0 Gone.'],
  [new Fault('forbidden', 'No.', { code: 'sender_not_allowed' }), '553 5.7.1 No.'],
  [new Fault('forbidden', 'No.'), '550 5.7.1 No.'],
  [conflict('Suspended.'), '550 5.7.1 Suspended.'],
  [conflict('Not verified.', { code: 'domain_not_verified' }), '550 5.7.1 Not verified.'],
  [notFound('identity'), '550 5.7.1 No such identity.'],
  [invalid('to', 'Suppressed.', 'recipient_suppressed'), '550 5.7.1 Suppressed.'],
  [invalid('to', 'No address.'), '553 5.1.3 No address.'],
  [invalid('bcc', 'No address.', 'invalid_recipient'), '553 5.1.3 No address.'],
  [invalid('cc', 'None leaves.', 'outbound_off'), '550 5.7.1 None leaves.'],
  [invalid('to', 'Too many.', 'too_many_recipients'), '452 4.5.3 Too many.'],
  [invalid('raw', 'Malformed.'), '554 5.6.0 Malformed.'],
  [invalid('raw', 'Too large.', 'message_too_large'), '552 5.3.4 Too large.'],
  [storageFull(), '452 4.3.1 Insufficient system storage, try again later'],
  [new Fault('internal_error', 'A secret.'), '451 4.3.0 Local error, try again later'],
  [new Error('A secret.'), '451 4.3.0 Local error, try again later'],
  [new Refusal(550, '5.1.1', 'As it is'), '550 5.1.1 As it is'],
])('who hands in mail hears of %s: %s', (error, reply) => {
  expect(submitting.refusalFor(error).message).toBe(reply)
})

test('a stranger hears nothing of our faults but that the disk is full', () => {
  for (const fault of [conflict('A secret.'), new Fault('rate_limited', 'A secret.'), notFound('identity')]) {
    expect(receiving.refusalFor(fault).message).toBe('451 4.3.0 Local error, try again later')
  }
  expect(receiving.refusalFor(storageFull()).message).toMatch(/^452 4\.3\.1 /)
})
