import { expect, test } from 'vitest'
import { accountKey } from '../support/account-key.ts'
import { appliance, deliver, message } from '../support/appliance.ts'

/** Of RFC 2142, of the Baseline Requirements of the CA/Browser Forum (3.2.2.4.4), those that certificate authorities took before, and those under which a box speaks itself. */
const names = `info marketing sales support abuse noc security postmaster hostmaster usenet news webmaster www uucp ftp
  admin administrator root no-reply noreply mailer-daemon ssladmin ssladministrator sslwebmaster sysadmin is it mis`.split(/\s+/)
const variants = ['web.master', 'ad-min', 'no_reply', 'no.reply', 'mailer_daemon', 'host-master', 'ssl-admin']

test('no account but the operator’s has an address at the box’s own domain that speaks for it', async () => {
  const box = await appliance()
  const key = accountKey(box)
  for (const email_username of [...names, ...variants]) {
    for (const more of [{}, { provision_phone: true }, { email_domain: 'pillarbox.test' }]) {
      const { status, body } = await box.call('POST', '/v1/identities', { email_username, ...more }, { key })
      expect([email_username, status, body.error]).toMatchObject([
        email_username,
        409,
        { type: 'conflict', param: 'email_username', message: `${email_username}@pillarbox.test is reserved for the operator.` },
      ])
    }
  }
  // nor is one made of a name, however it is written
  for (const name of ['Admin', 'ＡＤＭＩＮ', 'Àdmin', 'Web.Master', '  root ', 'аdmin', 'No Reply']) {
    const { status, body } = await box.call('POST', '/v1/identities', { name }, { key })
    expect([name, status]).toEqual([name, 201])
    const local = String(body['email']).split('@')[0]!
    expect(names.map((one) => one.replaceAll(/\W/g, ''))).not.toContain(local.replaceAll(/[._-]/g, ''))
    // renamed, it keeps its address
    const renamed = await box.call('PATCH', `/v1/identities/${body['id']}`, { name: `hostmaster ${local}` }, { key })
    expect(renamed.body['email']).toBe(body['email'])
  }
})

test('handles that speak for the box are nobody’s', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  for (const handle of [...names, 'ad-min', 'web-master', 'n-o-reply']) {
    const { body } = await box.call('POST', '/v1/agents', { identity_id: ada.id, handle })
    expect([handle, body.error]).toMatchObject([handle, { type: 'conflict', param: 'handle' }])
  }
})

test('the operator gives its own identities what the box does not need itself', async () => {
  const box = await appliance()
  for (const email_username of ['support', 'sales', 'webmaster', 'admin', 'no-reply']) {
    const { status, body } = await box.call('POST', '/v1/identities', { email_username })
    expect([status, body['email']]).toEqual([201, `${email_username}@pillarbox.test`])
  }
  for (const email_username of ['postmaster', 'abuse', 'hostmaster', 'security', 'mailer-daemon', 'bounce', 'dmarc', 'tlsrpt']) {
    expect((await box.call('POST', '/v1/identities', { email_username })).status).toBe(409)
  }
})

test('mail to such a name reaches whom the operator gave it to, else the operator’s mailbox', async () => {
  const box = await appliance()
  const { body: support } = await box.call('POST', '/v1/identities', { email_username: 'support' })
  const send = (to: string): Promise<string> =>
    deliver(box.smtp, {
      to,
      raw: message({ Subject: `To ${to}`, 'Message-ID': `<${Buffer.from(to).toString('hex')}@sender.test>` }, 'x\n'),
    })
  const operators = [
    'admin@pillarbox.test',
    'WebMaster@pillarbox.test',
    'administrator+acme@pillarbox.test',
    'hostmaster@pillarbox.test',
  ]
  for (const to of [...operators, 'support@pillarbox.test'])
    expect([to, await send(to)]).toEqual([to, expect.stringMatching(/^250/)])
  for (const to of [
    'no-reply@pillarbox.test',
    'mailer-daemon@pillarbox.test',
    'web.master@pillarbox.test',
    'admin-2@pillarbox.test',
  ]) {
    expect([to, await send(to)]).toEqual([to, expect.stringMatching(/^550 5\.1\.1/)])
  }
  const { body: list } = await box.call('GET', '/v1/identities?email=postmaster@pillarbox.test')
  const { body: kept } = await box.call('GET', `/v1/identities/${list.data[0].id}/emails`)
  expect(new Set(kept.data.map(({ to }) => to as string))).toEqual(new Set(operators))
  const { body: own } = await box.call('GET', `/v1/identities/${support.id}/emails`)
  expect(own.data.map(({ to }) => to)).toEqual(['support@pillarbox.test'])
  // one that is deleted leaves the name to the operator
  await box.call('DELETE', `/v1/identities/${support.id}`)
  expect(await send('support+later@pillarbox.test')).toMatch(/^250/)
})
