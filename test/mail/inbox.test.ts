import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { appliance, type Appliance, deliver, message } from '../support/appliance.ts'
import { Dialogue } from '../support/smtp.ts'

async function subjects(box: Appliance, id: string, query = ''): Promise<string[]> {
  const { body } = await box.call('GET', `/v1/identities/${id}/emails${query}`)
  return body.data.map(({ subject }) => subject as string).toReversed()
}

test('one message for many is a copy for each, with the address it came to', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const to = ['ada@pillarbox.test', 'ADA+News@PillarBox.TEST', 'bob@pillarbox.test']
  expect(await deliver(box.smtp, { to, raw: message({ Subject: 'All', To: 'list@lists.test' }, 'x\n') })).toMatch(/^250 /)
  const { body: adas } = await box.call('GET', `/v1/identities/${ada.id}/emails?duplicates=true`)
  expect(adas.data.map(({ to: at, tag }) => [String(at).toLowerCase(), tag])).toEqual([
    ['ada+news@pillarbox.test', 'news'],
    ['ada@pillarbox.test', null],
  ])
  expect(await subjects(box, bob.id)).toEqual(['All'])
  const { body: whole } = await box.call('GET', `/v1/identities/${bob.id}/emails/${(await idsOf(box, bob.id))[0]}`)
  expect(whole).toMatchObject({ to: 'bob@pillarbox.test', recipients: { to: [{ address: 'list@lists.test' }] }, bcc: [] })
})

test('an address outside ASCII is read as it is, and needs SMTPUTF8', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const client = await Dialogue.hello(box.smtp.port)
  expect(await client.say('MAIL FROM:<jösé@bücher.test>')).toMatch(/^553 5\.6\.7/)
  expect(await client.say('MAIL FROM:<jösé@bücher.test> SMTPUTF8')).toMatch(/^250 /)
  expect(await client.say('RCPT TO:<ada@pillarbox.test>')).toMatch(/^250 /)
  expect(await client.say('RCPT TO:<ädä@pillarbox.test>')).toMatch(/^550 5\.1\.1/)
  expect(await client.say('DATA')).toMatch(/^354/)
  client.send('From: José <jösé@bücher.test>\r\nSubject: Grüße\r\n\r\nHallo\r\n')
  expect(await client.say('.')).toMatch(/^250 /)
  client.destroy()
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  expect(body.data).toMatchObject([{ from: 'jösé@xn--bcher-kva.test', from_name: 'José', subject: 'Grüße' }])
  expect((await box.call('GET', `/v1/identities/${ada.id}/emails?from=${encodeURIComponent('jösé')}`)).body.data).toHaveLength(1)
})

test('spam is kept apart: shown when asked for, in no search, no timeline and no wait', async () => {
  const filter = createServer((request, response) => {
    request.resume().on('end', () => response.end(JSON.stringify({ action: 'add header', score: 9, required_score: 5 })))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => filter.once('listening', resolve))
  onTestFinished(() => void filter.close())
  const { port } = filter.address() as AddressInfo
  const box = await appliance({ PILLARBOX_MAIL__RSPAMD__URL: `http://127.0.0.1:${port}` })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Buy now' }, 'Cheap zebra, code 493817\n') })
  const path = `/v1/identities/${ada.id}`
  expect(await subjects(box, ada.id)).toEqual([])
  expect(await subjects(box, ada.id, '?spam=true')).toEqual(['Buy now'])
  expect((await box.call('GET', `${path}/emails/search?query=zebra`)).body.data).toEqual([])
  expect((await box.call('GET', `${path}/messages`)).body.data).toEqual([])
  expect((await box.call('GET', `${path}/wait?timeout=0`)).body).toMatchObject({ timed_out: true })
  expect((await box.call('GET', `${path}/wait?timeout=0&spam=true`)).body).toMatchObject({ timed_out: false, codes: ['493817'] })
})

test('what comes for the operator makes one mailbox, once, however many come at once', async () => {
  const box = await appliance()
  const replies = await Promise.all(
    Array.from({ length: 12 }, (_, turn) =>
      deliver(box.smtp, { to: turn % 2 ? 'postmaster' : 'abuse@pillarbox.test', raw: message({ Subject: `No ${turn}` }, 'x\n') }),
    ),
  )
  for (const reply of replies) expect(reply).toMatch(/^250 /)
  const { body: list } = await box.call('GET', '/v1/identities')
  expect(list.data).toMatchObject([{ name: 'postmaster', email: 'postmaster@pillarbox.test' }])
  expect(await subjects(box, list.data[0].id)).toHaveLength(12)
  await box.call('DELETE', `/v1/identities/${list.data[0].id}`)
  expect(await deliver(box.smtp, { to: 'postmaster', raw: message({ Subject: 'Again' }, 'x\n') })).toMatch(/^250 /)
  const { body: after } = await box.call('GET', '/v1/identities')
  expect(after.data).toMatchObject([{ email: 'postmaster@pillarbox.test' }])
  expect(after.data[0].id).not.toBe(list.data[0].id)
})

test('an identity deleted while its mail is on the way gets none of it, and a sender with no other recipient is told', async () => {
  const box = await appliance()
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  for (const others of [[], [bob.email as string]]) {
    const { body: ada } = await box.call('POST', '/v1/identities', {})
    const client = await Dialogue.hello(box.smtp.port)
    expect(await client.begin([ada.email, ...others])).toMatch(/^354/)
    await box.call('DELETE', `/v1/identities/${ada.id}`)
    client.send(message({ Subject: 'Late' }, 'x\n'))
    expect(await client.say('.')).toMatch(others.length === 0 ? /^550 5\.1\.1/ : /^250 /)
    client.destroy()
    expect((await box.call('GET', `/v1/identities/${ada.id}/emails`)).status).toBe(404)
  }
  expect(await subjects(box, bob.id)).toEqual(['Late'])
})

test('mail from the null sender is automated, whatever its header says', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  for (const from of ['sam@sender.test', '']) {
    expect(await deliver(box.smtp, { from, to: ada.email, raw: message({ Subject: `From <${from}>` }, 'x\n') })).toMatch(/^250 /)
  }
  const { body } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  expect(body.data).toMatchObject([
    { subject: 'From <>', automated: true },
    { subject: 'From <sam@sender.test>', automated: false },
  ])
})

async function idsOf(box: Appliance, identity: string): Promise<string[]> {
  const { body } = await box.call('GET', `/v1/identities/${identity}/emails`)
  return body.data.map(({ id }) => id as string)
}
