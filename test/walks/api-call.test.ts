import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'

test('identities are made, listed, changed and deleted', async () => {
  const box = await appliance()
  const made = await box.call('POST', '/v1/identities', { display_name: 'Büro Süd', metadata: { team: 'north', old: 1 } })
  expect(made.status).toBe(201)
  expect(made.headers.get('location')).toBe(`/v1/identities/${made.body.id}`)
  expect(made.body.email).toBe('buro-sud@pillarbox.test')
  expect(made.body.date_of_birth).toMatch(/^\d{4}-\d\d-\d\d$/)

  const { body: changed } = await box.call('PATCH', `/v1/identities/${made.body.id}`, {
    name: 'South',
    metadata: { team: 'south', old: null },
  })
  expect(changed).toMatchObject({ name: 'South', metadata: { team: 'south' }, email: made.body.email })
  expect(changed.metadata).not.toHaveProperty('old')

  const { body: list } = await box.call('GET', '/v1/identities?limit=1')
  expect(Object.keys(list.data[0]).toSorted()).toEqual(['created_at', 'email', 'id', 'name', 'phone_number', 'status'])

  expect((await box.call('DELETE', `/v1/identities/${made.body.id}`)).body).toEqual({ id: made.body.id, deleted: true })
  expect((await box.call('GET', `/v1/identities/${made.body.id}`)).status).toBe(404)
  expect((await box.call('DELETE', `/v1/identities/${made.body.id}`)).status).toBe(404)
})

test('an identity can be made of nothing, and names are unique without regard to case', async () => {
  const box = await appliance({ PILLARBOX_SMS__PROVIDER: 'none' })
  const { body: first } = await box.call('POST', '/v1/identities')
  expect(first.name).toMatch(/\w/)
  const clash = await box.call('POST', '/v1/identities', { name: first.name.toUpperCase() })
  expect(clash).toMatchObject({ status: 409, body: { error: { type: 'conflict', param: 'name', status: 409 } } })
  const { body: japanese } = await box.call('POST', '/v1/identities', { name: '山田太郎' })
  expect(japanese.email).toMatch(/^[a-z][a-z0-9-]+@pillarbox\.test$/)
  for (const email_username of ['postmaster', 'buzz', 'buzz']) await box.call('POST', '/v1/identities', { email_username })
  const reserved = await box.call('POST', '/v1/identities', { email_username: 'abuse' })
  expect(reserved.body.error).toMatchObject({ type: 'conflict', param: 'email_username' })
  const taken = await box.call('POST', '/v1/identities', { email_username: 'buzz' })
  expect(taken.body.error).toMatchObject({ type: 'conflict', param: 'email_username' })
  const phone = await box.call('POST', '/v1/identities', { provision_phone: true })
  expect(phone).toMatchObject({ status: 400, body: { error: { code: 'sms_not_configured', param: 'provision_phone' } } })
})

test('lists are paged by cursor without a gap or a repeat', async () => {
  const box = await appliance()
  await Promise.all(Array.from({ length: 25 }, (_, index) => box.call('POST', '/v1/identities', { name: `Agent ${index}` })))
  const seen: string[] = []
  let path = '/v1/identities?limit=7'
  for (;;) {
    const { body } = await box.call('GET', path)
    seen.push(...body.data.map((one) => one.id as string))
    if (!body.has_more) {
      expect(body.next_cursor).toBeNull()
      break
    }
    path = `/v1/identities?limit=7&cursor=${body.next_cursor}`
  }
  expect(seen).toHaveLength(25)
  expect(new Set(seen).size).toBe(25)
  const { body: offset } = await box.call('GET', '/v1/identities?limit=7&offset=7')
  expect(offset.data.map((one) => one.id as string)).toEqual(seen.slice(7, 14))
  const both = await box.call('GET', `${path}&offset=3`)
  expect(both).toMatchObject({ status: 400, body: { error: { param: 'offset' } } })
  const bad = await box.call('GET', '/v1/identities?cursor=nonsense')
  expect(bad).toMatchObject({ status: 400, body: { error: { type: 'invalid_request', param: 'cursor', code: 'bad_cursor' } } })
})

test('keys: scopes, binding, rotation with grace, revocation', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const { body: bound, status } = await box.call('POST', '/v1/api-keys', {
    label: 'ada',
    scopes: ['emails:read', 'account:write'],
    identity_id: ada.id,
  })
  expect(status).toBe(201)
  expect(bound.key).toMatch(/^pbx_[0-9A-Za-z]{49}$/)
  const { body: keys } = await box.call('GET', '/v1/api-keys')
  expect(JSON.stringify(keys)).not.toContain(bound.key)
  expect(keys.data[0]).toMatchObject({ key_prefix: bound.key.slice(0, 12), identity_id: ada.id })

  const as = { key: bound.key as string }
  expect((await box.call('GET', `/v1/identities/${ada.id}/emails`, undefined, as)).status).toBe(200)
  expect((await box.call('GET', `/v1/identities/${bob.id}/emails`, undefined, as)).status).toBe(404)
  expect((await box.call('GET', `/v1/identities/${ada.id}`, undefined, as)).status).toBe(403)
  const wider = await box.call('POST', '/v1/api-keys', { scopes: ['cards:write'] }, as)
  expect(wider).toMatchObject({ status: 403, body: { error: { type: 'forbidden', code: 'missing_scope' } } })
  const elsewhere = await box.call('POST', '/v1/api-keys', { scopes: ['emails:read'], identity_id: bob.id }, as)
  expect(elsewhere.status).toBe(404)
  const { body: child } = await box.call('POST', '/v1/api-keys', { scopes: ['emails:read'] }, as)
  expect(child.identity_id).toBe(ada.id)

  const { body: rotated } = await box.call('POST', `/v1/api-keys/${bound.id}/rotate`, { grace_seconds: 60 })
  expect(rotated.key).not.toBe(bound.key)
  for (const key of [bound.key, rotated.key]) {
    expect((await box.call('GET', `/v1/identities/${ada.id}/emails`, undefined, { key })).status).toBe(200)
  }
  await box.call('POST', `/v1/api-keys/${bound.id}/rotate`)
  for (const key of [bound.key, rotated.key]) {
    expect((await box.call('GET', `/v1/identities/${ada.id}/emails`, undefined, { key })).status).toBe(401)
  }
  await box.call('DELETE', `/v1/api-keys/${child.id}`)
  expect((await box.call('GET', `/v1/identities/${ada.id}/emails`, undefined, { key: child.key })).status).toBe(401)

  const { body: doomed } = await box.call('POST', '/v1/api-keys', { scopes: ['identities:read'], identity_id: bob.id })
  expect((await box.call('GET', `/v1/identities/${bob.id}`, undefined, { key: doomed.key })).status).toBe(200)
  await box.call('DELETE', `/v1/identities/${bob.id}`)
  expect((await box.call('GET', `/v1/identities/${bob.id}`, undefined, { key: doomed.key })).status).toBe(401)
})

test('search finds words, phrases, prefixes and parts of CJK text, in one mailbox only', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const send = (to: string, subject: string, body: string) =>
    deliver(box.smtp, { to, raw: message({ Subject: subject, 'Content-Type': 'text/plain; charset=utf-8' }, body) })
  await send(ada.email, 'Invoice for March', 'Please pay the overdue invoice soon.\n')
  await send(ada.email, 'Meeting', 'Grüße aus Köln, see the invoices attached. 東京都で会議があります\n')
  await send(bob.email, 'Invoice for Bob', 'invoice\n')
  const found = async (query: string): Promise<string[]> => {
    const { body } = await box.call('GET', `/v1/identities/${ada.id}/emails/search?query=${encodeURIComponent(query)}`)
    return body.data.map((row) => row.subject as string)
  }
  expect(await found('invoice')).toEqual(['Invoice for March'])
  expect(await found('invoic*')).toEqual(['Meeting', 'Invoice for March'])
  expect(await found('"overdue invoice"')).toEqual(['Invoice for March'])
  expect(await found('invoic* -overdue')).toEqual(['Meeting'])
  expect(await found('koln')).toEqual(['Meeting'])
  expect(await found('京都')).toEqual(['Meeting'])
  expect(await found('subject:meeting')).toEqual(['Meeting'])
  expect(await found('from:sender')).toEqual(['Meeting', 'Invoice for March'])
  expect(await found('has:attachment')).toEqual([])
  for (const query of ['"', 'NEAR(a b)', 'a AND', 'owner : x', "'; DROP TABLE emails; --", '* OR *x', 'subject:"unclosed']) {
    const answer = await box.call('GET', `/v1/identities/${ada.id}/emails/search?query=${encodeURIComponent(query)}`)
    expect([200, 400]).toContain(answer.status)
  }
  const nothing = await box.call('GET', `/v1/identities/${ada.id}/emails/search`)
  expect(nothing).toMatchObject({ status: 400, body: { error: { param: 'query' } } })
  const { body: first } = await box.call('GET', `/v1/identities/${ada.id}/emails/search?query=invoic*&limit=1`)
  expect(first).toMatchObject({ has_more: true, data: [{ subject: 'Meeting' }] })
  const { body: second } = await box.call(
    'GET',
    `/v1/identities/${ada.id}/emails/search?query=invoic*&limit=1&cursor=${first.next_cursor}`,
  )
  expect(second).toMatchObject({ has_more: false, data: [{ subject: 'Invoice for March' }] })
})

test('threads hold a conversation by its references, else by subject and participants', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const send = (fields: Record<string, string>) => deliver(box.smtp, { to: ada.email, raw: message(fields, 'Hello\n') })
  await send({ Subject: 'Plans', 'Message-ID': '<a@x.test>' })
  await send({ Subject: 'Entirely new subject', 'Message-ID': '<b@x.test>', References: '<a@x.test>' })
  await send({ Subject: 'Re: Plans', 'Message-ID': '<c@x.test>' })
  await send({ Subject: 'Plans', From: 'Other <other@other.test>', 'Message-ID': '<d@x.test>' })
  const { body: threads } = await box.call('GET', `/v1/identities/${ada.id}/threads`)
  expect(threads.data.map((one) => [one.subject, one.message_count, one.unread_count])).toEqual([
    ['Plans', 1, 1],
    ['Plans', 3, 3],
  ])
  const { body: thread } = await box.call('GET', `/v1/identities/${ada.id}/threads/${threads.data[1].id}`)
  expect(thread.messages.map((one: { message_id: string }) => one.message_id)).toEqual(['<a@x.test>', '<b@x.test>', '<c@x.test>'])
  await box.call('PATCH', `/v1/identities/${ada.id}/emails/${thread.messages[0].id}`, { unread: false })
  await box.call('DELETE', `/v1/identities/${ada.id}/emails/${thread.messages[1].id}`)
  const { body: after } = await box.call('GET', `/v1/identities/${ada.id}/threads/${threads.data[1].id}`)
  expect(after).toMatchObject({ message_count: 2, unread_count: 1 })
  const { body: messages } = await box.call('GET', `/v1/identities/${ada.id}/messages`)
  expect(messages.data.map((one) => [one.type, one.message_id])).toEqual([
    ['email', '<a@x.test>'],
    ['email', '<c@x.test>'],
    ['email', '<d@x.test>'],
  ])
})

test('attachments are listed, and open by a signed URL that cannot be changed', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const content = Buffer.from('<svg onload="alert(1)"/>')
  const raw = message(
    { Subject: 'With a file', 'Content-Type': 'multipart/mixed; boundary=b' },
    `--b\nContent-Type: text/plain\n\nSee the file\n--b\nContent-Type: image/svg+xml; name="../evil\u202egpj.svg"\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment\n\n${content.toString('base64')}\n--b--\n`,
  )
  expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^250 /)
  const { body: list } = await box.call('GET', `/v1/identities/${ada.id}/emails?has_attachments=true`)
  const path = `/v1/identities/${ada.id}/emails/${list.data[0].id}/attachments`
  const { body: records } = await box.call('GET', path)
  expect(records.data).toMatchObject([{ index: 0, content_type: 'image/svg+xml', size: content.length }])
  expect(records.data[0].filename).not.toMatch(/[/\u202e]/)
  const { body: record } = await box.call('GET', `${path}/0`)
  const opened = await fetch(record.url)
  expect(opened.status).toBe(200)
  expect(Buffer.from(await opened.arrayBuffer())).toEqual(content)
  expect(opened.headers.get('content-type')).toBe('application/octet-stream')
  expect(opened.headers.get('content-disposition')).toMatch(/^attachment;/)
  expect(opened.headers.get('x-content-type-options')).toBe('nosniff')
  expect(opened.headers.get('content-security-policy')).toContain('sandbox')
  const part = await fetch(record.url, { headers: { Range: 'bytes=1-3' } })
  expect([part.status, await part.text()]).toEqual([206, 'svg'])
  const url = new URL(record.url)
  for (const change of [
    { expires: '9999999999' },
    { signature: 'AAAA' },
    { signature: `${url.searchParams.get('signature')}A` },
  ]) {
    const changed = new URL(url)
    for (const [name, value] of Object.entries(change)) changed.searchParams.set(name, value)
    expect((await fetch(changed)).status).toBe(403)
  }
  expect((await box.call('GET', `${path}/1`)).status).toBe(404)
  await box.call('DELETE', `/v1/identities/${ada.id}/emails/${list.data[0].id}`)
  expect((await fetch(record.url)).status).toBe(404)
})
