import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { folder } from '../../support/folder.ts'
import { HeldClock } from '../../support/held-clock.ts'
import { passphraseFile, pillarbox, started } from './command.ts'
import { kept } from './read-back.ts'

const fixtures = fileURLToPath(new URL('../../fixtures/backups/', import.meta.url))

interface Then {
  passphrase: string
  key: string
  totp: string
  reveals: Record<string, string>
  answers: Record<string, unknown>
}

test('a backup of the first data format is restored, and tells what the first program told', async () => {
  const then = JSON.parse(readFileSync(join(fixtures, '0.1.0.json'), 'utf8')) as Then
  const directory = folder()
  const box = { env: {}, directory }
  const file = join(fixtures, '0.1.0.tar')
  const passphrase = ['--passphrase-file', passphraseFile(directory, then.passphrase)]
  const verified = await pillarbox(box, 'verify', file, ...passphrase, '--scratch', directory, '--json')
  expect([verified.status, JSON.parse(verified.output)]).toMatchObject([
    0,
    { database_version: 6, keys: 'opened', sealed_values: 22 },
  ])

  const data = join(directory, 'data')
  const restored = await pillarbox(box, 'restore', file, '--data', data, ...passphrase, '--json')
  expect([restored.errors, restored.status]).toEqual(['', 0])
  const { created_at } = JSON.parse(restored.output) as { created_at: string }
  const settings = { PILLARBOX_OUTBOUND__MODE: 'none', PILLARBOX_HTTP__RATE_LIMIT: '1000000' }
  // what was to leave then does not leave now: the clock stands where it stood
  const now = await started(data, settings, new HeldClock(Date.parse(created_at)))
  for (const [path, answer] of Object.entries(then.answers)) {
    const { body } = await now.call<unknown>('GET', path, undefined, { key: then.key })
    // fields may have been added since, none may have gone or changed
    if (typeof answer === 'string') expect([path, body]).toEqual([path, answer])
    else expect([path, kept(withoutReveals(body))]).toMatchObject([path, kept(answer) as object])
  }
  for (const [path, encrypted_data] of Object.entries(then.reveals)) {
    expect((await now.call('POST', path, {}, { key: then.key })).body).toMatchObject({ encrypted_data })
  }
  const { body: entries } = await now.call('GET', then.totp, undefined, { key: then.key })
  expect(entries.data).toHaveLength(1)
  for (const { id } of entries.data) {
    const { body } = await now.call('GET', `${then.totp}/${id}/code`, undefined, { key: then.key })
    expect(body.code).toMatch(/^\d{6}$/)
  }
}, 300_000)

/** The cards were revealed once the events had been read. */
function withoutReveals(body: unknown): unknown {
  const { data } = body as { data?: { event?: string }[] }
  return Array.isArray(data) ? { ...(body as object), data: data.filter(({ event }) => event !== 'card.revealed') } : body
}
