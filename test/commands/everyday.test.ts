import { describe, expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'
import { card } from '../support/card.ts'
import { asked, pillarbox } from '../support/pillarbox.ts'

const timeout = 120_000

describe('identities', () => {
  test('are made, found by id, name and address, suspended and activated', { timeout }, async () => {
    const box = await appliance()
    const made = await pillarbox(box, ['identity', 'create', 'Ada Lovelace', '--username', 'ada', '--phone'])
    expect(made).toMatchObject({ status: 0, errors: '' })
    expect(made.output).toMatch(
      /^Ada Lovelace was created: ident_\w{26}, with the address ada@pillarbox\.test, and the number \+\d+\.\n$/,
    )
    const id = /ident_\w+/.exec(made.output)![0]
    for (const who of [id, 'ada lovelace', 'ADA@pillarbox.test']) {
      const found = await asked(box, 'identity', 'show', who)
      expect([who, found]).toMatchObject([who, { id, email: 'ada@pillarbox.test', storage: { used: 0, trash: 0 } }])
    }
    expect((await pillarbox(box, ['identity', 'suspend', 'Ada Lovelace'])).output).toContain('is suspended')
    expect((await pillarbox(box, ['identity', 'list'])).output).toMatch(
      /^ident_\w+ +Ada Lovelace +ada@pillarbox\.test +\+\d+ +suspended$/m,
    )
    await asked(box, 'identity', 'activate', 'ada@pillarbox.test')
    expect((await box.call('GET', `/v1/identities/${id}`)).body['status']).toBe('active')
    expect(await pillarbox(box, ['identity', 'show', 'Nobody'])).toMatchObject({
      status: 1,
      errors: 'The account has no identity Nobody. List the identities: pillarbox identity list\n',
    })
  })

  test('are deleted at a time of their own, unless that is taken back', { timeout }, async () => {
    const box = await appliance()
    const made = await asked<{ id: string }>(box, 'identity', 'create', 'Ada', '--expires-at', '2099-01-01')
    expect(made).toMatchObject({ expires_at: '2099-01-01T00:00:00.000Z' })
    const later = await pillarbox(box, ['identity', 'expire', 'Ada', '2099-06-01T12:00:00+02:00'])
    expect(later.output).toBe('Ada (ada@pillarbox.test) will be deleted at 2099-06-01T10:00:00.000Z.\n')
    expect((await pillarbox(box, ['identity', 'expire', 'Ada', 'never'])).output).toContain('will not be deleted by itself')
    expect((await box.call('GET', `/v1/identities/${made.id}`)).body['expires_at']).toBeNull()
    expect((await pillarbox(box, ['identity', 'expire', 'Ada', 'soon'])).errors).toContain('expires_at')
  })

  test('are deleted only by who says that they know what goes', { timeout }, async () => {
    const box = await appliance()
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true })
    for (const subject of ['One', 'Two'])
      await deliver(box.smtp, { to: 'ada@pillarbox.test', raw: message({ Subject: subject }, 'x') })
    await box.call('POST', `/v1/identities/${ada.id}/cards`, card({ label: 'active', budget_cents: 1000 }))
    const refused = await pillarbox(box, ['identity', 'delete', 'Ada'])
    expect([refused.status, refused.errors]).toEqual([
      1,
      `Delete Ada (ada@pillarbox.test)? This also deletes its address permanently, 2 e-mails, 1 card, the number ${ada['phone_number']}. Confirm with --yes.\n`,
    ])
    expect((await box.call('GET', `/v1/identities/${ada.id}`)).status).toBe(200)
    expect(await pillarbox(box, ['identity', 'delete', 'Ada', '--yes'])).toMatchObject({ status: 0, errors: '' })
    expect((await box.call('GET', `/v1/identities/${ada.id}`)).status).toBe(404)
  })
})

test('API keys are made, listed masked, rotated and revoked, also of a box that does not run', { timeout }, async () => {
  const box = await appliance()
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  const words = ['key', 'create', '--label', 'reader', '--identity', 'Ada', '--scope', 'emails:read', 'identities:read']
  const made = await asked<{ id: string; key: string; scopes: string[] }>(box, ...words)
  expect(made.scopes).toEqual(['emails:read', 'identities:read'])
  expect((await box.call('GET', '/v1/identities', undefined, { key: made.key })).body.data).toMatchObject([{ name: 'Ada' }])
  const listed = await pillarbox(box, ['key', 'list'])
  expect(listed.output).toMatch(
    new RegExp(`^${made.id} +reader +${made.key.slice(0, 12)}… +ident_\\w+ .* emails:read identities:read$`, 'm'),
  )
  expect(listed.output).not.toContain(made.key)
  const turned = await pillarbox(box, ['key', 'rotate', 'reader'])
  const [secret] = turned.output.split('\n')
  expect((await box.call('GET', '/v1/identities', undefined, { key: made.key })).status).toBe(401)
  expect((await box.call('GET', '/v1/identities', undefined, { key: secret! })).status).toBe(200)
  await box.app.stop()
  expect((await pillarbox(box, ['key', 'revoke', 'reader'])).output).toBe(`The key ${made.id} (reader) was revoked.\n`)
  const wrong = await pillarbox(box, ['key', 'create', '--scope', 'everything', '--json'])
  expect([wrong.status, JSON.parse(wrong.errors)]).toMatchObject([1, { error: { param: 'scopes.0' } }])
  await box.restart()
  expect((await box.call('GET', '/v1/identities', undefined, { key: secret! })).status).toBe(401)
})

test(
  'a message is sent and watched until it has arrived, or failed; a box that does not run sends nothing',
  { timeout },
  async () => {
    const box = await appliance()
    for (const name of ['Ada', 'Bob']) await box.call('POST', '/v1/identities', { name })
    const sent = await pillarbox(
      box,
      ['send', '--from', 'Ada', '--to', 'bob@pillarbox.test', '--wait'],
      'Typed on standard input\n',
    )
    expect(sent).toMatchObject({ status: 0, errors: '' })
    expect(sent.output).toMatch(/^bob@pillarbox\.test {2}delivered by pillarbox\.test.*$/m)
    const { body: bob } = await box.call('GET', '/v1/identities?name=Bob')
    const { body: mail } = await box.call('GET', `/v1/identities/${bob.data[0].id}/emails`)
    expect(mail.data).toMatchObject([{ subject: 'A test of Pillarbox', snippet: 'Typed on standard input' }])
    const failed = await pillarbox(box, [
      'send',
      '--from',
      'Ada',
      '--to',
      'nobody@pillarbox.test',
      '--text',
      'x',
      '--wait',
      '60',
      '--json',
    ])
    expect([failed.status, JSON.parse(failed.output)]).toMatchObject([
      1,
      { deliveries: [{ status: 'bounced', recipient: 'nobody@pillarbox.test' }] },
    ])
    await box.app.stop()
    expect(await pillarbox(box, ['send', '--from', 'Ada', '--to', 'bob@pillarbox.test', '--text', 'x'])).toMatchObject({
      status: 1,
      errors: 'The box is not running and cannot send. Start it: pillarbox serve\n',
    })
  },
)

test('the queue is listed, looked at, hurried and dropped', { timeout }, async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const at = `/v1/identities/${ada.id}/emails`
  const later = async (): Promise<string> => {
    const send_at = new Date(Date.now() + 86_400_000).toISOString()
    return (await box.call('POST', at, { to: 'postmaster@pillarbox.test', send_at })).body.id as string
  }
  const [one, two] = [await later(), await later()]
  const listed = await asked<{ id: string; about: { email_id: string } }[]>(box, 'queue', 'list')
  const of = (id: string): string => listed.find(({ about }) => about.email_id === id)!.id
  expect((await pillarbox(box, ['queue', 'list'])).output).toMatch(
    new RegExp(`^${of(one)} +email-release +pillarbox\\.test +waiting +0 `, 'm'),
  )
  expect((await pillarbox(box, ['queue', 'summary'])).output).toMatch(/^email-release +pillarbox\.test +2 +0 /m)
  expect((await pillarbox(box, ['queue', 'show', of(one)])).output).toContain('No attempt yet.')
  expect((await pillarbox(box, ['queue', 'drop', of(one)])).status).toBe(0)
  expect((await box.call('GET', `${at}/${one}`)).body['status']).toBe('failed')
  expect((await pillarbox(box, ['queue', 'retry', of(two)])).output).toMatch(/^Retrying now\./)
  await box.settled()
  expect((await box.call('GET', `${at}/${two}`)).body['status']).toBe('delivered')
  expect((await pillarbox(box, ['queue', 'list'])).output).toBe('The queue is empty.\n')
  expect(await pillarbox(box, ['queue', 'drop', of(one)])).toMatchObject({ status: 1, output: '' })
})

test('the status is one screen, and its exit status says whether all is well', { timeout }, async () => {
  const box = await appliance()
  await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: 'ada@pillarbox.test', raw: message({ Subject: 'One' }, 'x') })
  const well = await pillarbox(box, ['status'])
  expect(well).toMatchObject({ status: 0, errors: '' })
  expect(well.output).toMatch(/^Pillarbox {3}\d+\.\d+\.\d+ runs, up /)
  expect(well.output).toMatch(/^mail, 24 h {2}1 received; 0 copies delivered/m)
  expect(well.output.split('\n').length).toBeLessThan(24)
  await box.app.stop()
  const stopped = await pillarbox(box, ['status', '--json'])
  expect([stopped.status, JSON.parse(stopped.output)]).toMatchObject([1, { running: false, identities: 1 }])
})
