import { expect } from 'vitest'
import { appliance, type Appliance, deliver, message } from './appliance.ts'
import { withPassword } from './people.ts'

/** A box with a conversation in it. */
export async function livedIn(): Promise<{ box: Appliance; ada: string; thread: string }> {
  const box = await appliance()
  await withPassword(box)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await box.call('POST', '/v1/identities', { name: 'Grace' })
  const type = 'multipart/alternative; boundary=b'
  const html =
    '<h1>Hello</h1><p>Your code is <b>493817</b>. <a href="https://sender.test/verify">Confirm</a></p><img src="https://x.test/i.png" alt="">'
  const text = 'Your code is 493817. Confirm: https://sender.test/verify'
  const parts = `--b\nContent-Type: text/plain\n\n${text}\n--b\nContent-Type: text/html\n\n${html}\n--b--\n`
  // an answer stays on the box
  const fields = {
    'Reply-To': 'postmaster@pillarbox.test',
    To: ada['email'],
    Subject: 'A letter with everything',
    'Content-Type': type,
  }
  expect(await deliver(box.smtp, { to: ada['email'], raw: message(fields, parts) })).toMatch(/^250 /)
  await box.call('POST', `/v1/identities/${ada['id']}/emails`, {
    to: 'grace@pillarbox.test',
    subject: 'Out',
    body_text: 'Hello.',
  })
  const { body } = await box.call('GET', `/v1/identities/${ada['id']}/emails`)
  return { box, ada: ada['id'], thread: body.data[0]['thread_id'] }
}
