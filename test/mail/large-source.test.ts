import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { appliance, deliver, message } from '../support/appliance.ts'

test('the source of a message above the memory that one read may take is answered whole, and so many at once as have room', async () => {
  const box = await appliance({ PILLARBOX_SMTP__SIZE: '80 MiB' })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  const raw = message({ Subject: 'Large' }, `${'Many words. '.repeat(6)}\n`.repeat(960_000))
  expect(raw.length).toBeGreaterThan(64 * 1024 * 1024)
  expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^250 /)
  const { body: list } = await box.call('GET', `/v1/identities/${ada.id}/emails`)
  const path = `/v1/identities/${ada.id}/emails/${list.data[0].id}/raw`
  const ask = async (): Promise<[number, unknown]> => {
    const response = await fetch(`${box.url}${path}`, { headers: { Authorization: `Bearer ${box.key}` } })
    if (response.status !== 200) return [response.status, ((await response.json()) as { error: { type: string } }).error.type]
    return [200, hashOf(Buffer.from(await response.arrayBuffer()).subarray(-raw.length))]
  }
  const whole = [200, hashOf(Buffer.from(raw, 'latin1'))]
  const answers = await Promise.all([ask(), ask(), ask()])
  expect(answers).toContainEqual(whole)
  for (const answer of answers) expect([whole, [429, 'rate_limited']]).toContainEqual(answer)
  expect(await ask()).toEqual(whole)
}, 120_000)

function hashOf(octets: Buffer): string {
  return createHash('sha256').update(octets).digest('hex')
}
