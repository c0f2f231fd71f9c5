import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { spellings } from '../../src/http/route.ts'
import { appliance, deliver, message } from '../support/appliance.ts'

const canary = 'canary-that-must-not-sing'

test('no secret is in a log line, a metric, an error or, unsealed, on disk', async () => {
  const box = await appliance()
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', metadata: { private: `${canary}-metadata` } })
  const { body: made } = await box.call('POST', '/v1/api-keys', { label: 'made' }, { headers: { 'Idempotency-Key': 'made' } })
  const { body: rotated } = await box.call('POST', `/v1/api-keys/${made.id}/rotate`, { grace_seconds: 60 })
  const raw = message(
    { Subject: `Subject ${canary}-subject`, 'Content-Type': 'multipart/mixed; boundary=b' },
    `--b\n\nYour code is 493817 ${canary}-body\n--b\nContent-Type: text/plain\nContent-Disposition: attachment; filename=a.txt\n\n${canary}-file\n--b--\n`,
  )
  await deliver(box.smtp, { to: ada.email, raw })
  const { body: emails } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  const { body: attachment } = await box.call('GET', `/v1/identities/${ada.id}/emails/${emails.data[0].id}/attachments/0`)
  const signature = new URL(attachment.url).searchParams.get('signature')!
  const errors: string[] = []

  // every call there is, with keys good and bad, and canaries in every place a caller can write
  for (const { method, path, route } of spellings(box.app.routes)) {
    const real = path.replace('identities/:id', `identities/${ada.id}`).replace(':email_id', emails.data[0].id)
    const target = real.replace(':thread_id', emails.data[0].thread_id).replace('api-keys/:id', `api-keys/${made.id}`)
    const filled = target.replace(':index', '0')
    const body = method === 'GET' ? undefined : `{"${canary}-field`
    for (const key of [null, `${canary}-key`, box.key, rotated.key as string]) {
      for (const query of ['', `?expires=1&signature=${signature}`, `?cursor=${canary}-cursor`]) {
        if (route.method === 'DELETE' || path.endsWith('/wait')) continue
        const told = await box.call(method, `${filled}${query}`, body, { key, headers: { Cookie: `session=${canary}-cookie` } })
        if (told.status >= 400) errors.push(JSON.stringify(told.body))
      }
    }
  }
  const opened = await box.call('GET', attachment.url, undefined, { key: null })
  expect(opened.body).toContain(`${canary}-file`)
  await box.call('GET', `${attachment.url}x`, undefined, { key: null })
  await box.call('GET', `/v1/nothing/${canary}-path?token=${canary}-query`)
  await deliver(box.smtp, { to: `nobody@pillarbox.test`, raw })

  const secrets = [box.key, made.key as string, rotated.key as string, signature, canary, '493817']
  const metrics = await box.app.metrics.text()
  for (const secret of secrets) {
    expect(box.logged.filter((line) => line.includes(secret))).toEqual([])
    expect(metrics).not.toContain(secret)
  }
  for (const secret of [
    box.key,
    made.key as string,
    rotated.key as string,
    signature,
    `${canary}-key`,
    `${canary}-cookie`,
    `${canary}-body`,
  ]) {
    expect(errors.filter((text) => text.includes(secret))).toEqual([])
  }
  expect(errors.length).toBeGreaterThan(50)

  const files = readdirSync(box.directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  expect(files.some((file) => file.endsWith('pillarbox.db'))).toBe(true)
  for (const key of [box.key, made.key as string, rotated.key as string, signature]) {
    expect(files.filter((file) => readFileSync(file).includes(key))).toEqual([])
  }
})

test('what the log does say of a call is who, what, and how it ended', async () => {
  const box = await appliance()
  const { body: keys } = await box.call('GET', '/v1/api-keys')
  const { headers } = await box.call('GET', '/v1/identities/ident_01jd3v8m2ef1pbx9mz5k7q4w6a/emails?from=somebody')
  const lines = box.logged.filter((line) => line.includes(headers.get('x-request-id')!)).map((line) => JSON.parse(line) as object)
  expect(lines).toMatchObject([{ method: 'GET', route: '/v1/identities/:id/emails', status: 404, key_id: keys.data[0].id }])
  expect(JSON.stringify(lines)).not.toContain('somebody')
})
