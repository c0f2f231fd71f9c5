import { afterAll, describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { deliver, message, openAppliance } from '../support/appliance.ts'

const { box, close } = await openAppliance()
afterAll(close)

type Json = ReturnType<typeof JSON.parse>

/**
 * The calls of a published client for tests of sign-ups: `Content-Type` with every call, also one without a body; JSON as the answer of every call, also
 * of a deletion; the text of a message read from the rows of the list.
 */
async function ask(path: string, init: { method?: string; body?: string } = {}): Promise<Json> {
  const headers = { Authorization: `Bearer ${box.key}`, 'Content-Type': 'application/json' }
  const response = await fetch(`${box.url}/v1${path}`, { ...init, headers })
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
  return response.json()
}

/** What the first message that arrived since then has of this form. */
async function found(path: string, since: Date, form: RegExp): Promise<string | undefined> {
  const { data } = await ask(path)
  for (const row of data) {
    if (new Date(row.received_at) < since) continue
    const match = form.exec(row.body ?? (row.body_text || row.body_html || ''))
    if (match) return match[0]
  }
  return undefined
}

const code = /\b\d{6}\b/
const link = /https?:\/\/[^\s<>"]+(?:verify|confirm|activate|token|magic)[^\s<>"]*/i

const html = '<p>Welcome. <a href="https://shop.test/confirm?token=x1&amp;to=2">Confirm your address</a></p>'

describe('a client for tests of sign-ups', async () => {
  const began = new Date()
  const body = JSON.stringify({ provision_phone: true, metadata: { run: 7, source: 'tests', ephemeral: true } })
  const ada = await ask('/identities', { method: 'POST', body })
  const emails = `/identities/${ada.id}/emails`

  test('makes an identity with an address, a number and what it says of it', () => {
    expect(ada).toMatchObject({ status: 'active', metadata: { run: 7, source: 'tests', ephemeral: true } })
    expect([typeof ada.name, typeof ada.date_of_birth]).toEqual(['string', 'string'])
    expect(ada.email).toContain('@')
    expect(ada.phone_number).toMatch(/^\+\d+$/)
  })

  test('reads the code of an e-mail, and the link of one that is HTML alone, from the rows of the list, the newest first', async () => {
    expect(await found(`${emails}?include=body`, began, code)).toBeUndefined()
    const welcome = { Subject: 'Welcome', 'Content-Type': 'text/html; charset=utf-8' }
    await deliver(box.smtp, { to: ada.email, raw: message(welcome, `${html}\n`) })
    await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Your code' }, 'The code is 111222.\n') })
    await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'Your code' }, 'The code is 333444.\n') })
    expect(await found(`${emails}?include=body`, began, code)).toBe('333444')
    expect(await found(`${emails}?include=body`, began, link)).toBe('https://shop.test/confirm?token=x1&amp;to=2')
    expect(await found(`${emails}?include=body`, new Date(Date.now() + 60_000), code)).toBeUndefined()
  })

  test('finds no text in the rows of a list without include=body, as the API document has it', async () => {
    const { data } = await ask(emails)
    expect(data).toHaveLength(3)
    for (const row of data) expect([row.body_text, row.body_html]).toEqual([undefined, undefined])
    expect(data[0].snippet).toContain('333444')
  })

  test('finds it there in a box that is set up for such clients', async () => {
    await box.app.reload(await loadConfig({ env: { ...box.env, PILLARBOX_MAIL__LIST_BODIES: 'true' }, cwd: box.directory }))
    expect(await found(emails, began, code)).toBe('333444')
    expect(await found(emails, began, link)).toBe('https://shop.test/confirm?token=x1&amp;to=2')
  })

  test('reads the code of a text message from the rows of the list', async () => {
    const text = { from: '+15550100199', to: ada.phone_number, body: 'Your code is 555666' }
    await ask('/sms/loopback/inject', { method: 'POST', body: JSON.stringify(text) })
    expect(await found(`/identities/${ada.id}/sms`, began, code)).toBe('555666')
  })

  test('deletes the identity, and is told so in JSON', async () => {
    expect(await ask(`/identities/${ada.id}`, { method: 'DELETE' })).toEqual({ id: ada.id, deleted: true })
    await expect(ask(emails)).rejects.toThrow(/^404: \{"error":/)
  })
})
