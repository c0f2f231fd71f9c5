import { expect, test } from 'vitest'
import { appliance, message } from '../../support/appliance.ts'
import { emailsOf, imported, packed } from './moving.ts'

test('control characters in what an archive says of a message are left out', async () => {
  const box = await appliance()
  const { id } = (await box.call('POST', '/v1/identities', { name: 'Ada' })).body
  const control = '\u0001\u0007\u007f\ud800'
  const state = {
    file: 'a.eml',
    direction: 'outbound',
    status: 'bounced',
    to: `v${control}@victim.test`,
    mail_from: `a${control}@sender.test`,
    bcc: [{ address: `w${control}@victim.test`, name: `W${control}ill` }],
    deliveries: [
      {
        recipient: `v${control}@victim.test`,
        status: 'bounced',
        smtp_code: 550,
        enhanced_code: `5.1.1${control}`,
        response: `550 ${control.repeat(200)}unknown`,
        mx: `mx${control}.victim.test`,
        tls: `TLSv1.3${control}`,
        attempts: 1,
        next_attempt_at: null,
        delivered_at: null,
      },
    ],
  }
  const files = {
    'a.eml': message({ Subject: 'a', 'Message-ID': '<a@sender.test>' }, 'Words.'),
    'messages.jsonl': `${JSON.stringify(state)}\n`,
  }
  expect((await imported(box, id, await packed(files))).result).toMatchObject({ imported: 1, not_understood: 0 })
  const [email] = await emailsOf(box, id)
  expect(email).toMatchObject({
    to: 'v\ufffd@victim.test',
    bcc: [{ address: 'w\ufffd@victim.test', name: 'W\ufffdill' }],
    deliveries: [
      {
        recipient: 'v\ufffd@victim.test',
        enhanced_code: '5.1.1\ufffd',
        response: `550 ${'\ufffd'.repeat(200)}unknown`,
        mx: 'mx\ufffd.victim.test',
        tls: 'TLSv1.3\ufffd',
      },
    ],
  })
})
