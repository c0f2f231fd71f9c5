import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { inhabit } from '../../contract/inhabited.ts'
import { readBack } from '../../ops/backup/read-back.ts'
import { type Appliance, deliver, message } from '../../support/appliance.ts'

/** A box with something in most tables, that does not run. */
export async function fullBox(): Promise<{ box: Appliance; file: string; answers: Record<string, unknown> }> {
  const world = await inhabit()
  onTestFinished(() => world.close())
  const { box, database } = world
  const { body: eve } = await box.call('POST', '/v1/identities', { name: 'Eve', metadata: { note: 'a\uFDD0b' } })
  const words = `Größe 東京都 naïve=\n and=00the end\n${'word\n'.repeat(500)}`
  const type = { 'Content-Type': 'text/plain; charset=utf-8', 'Content-Transfer-Encoding': 'quoted-printable' }
  const raw = message({ To: eve.email, Subject: 'Übersicht', ...type }, words)
  expect(await deliver(box.smtp, { to: eve.email, raw: Buffer.from(raw) })).toMatch(/^250 /)
  await box.settled()
  const answers = await readBack(box)
  database.close()
  await box.app.stop()
  return { box, file: join(box.directory, 'data', 'pillarbox.db'), answers }
}
