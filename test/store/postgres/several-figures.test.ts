import { expect, test } from 'vitest'
import { type Appliance, deliver, message } from '../../support/appliance.ts'
import { severalBoxes } from './boxes.ts'
import { serverOfFile } from './server.ts'

const postgres = serverOfFile()

test('the figures of a minute are those of all boxes: what each did is added, what all heard is not', async () => {
  const boxes = await severalBoxes(postgres(), 3)
  const { body: ada } = await boxes[0].call('POST', '/v1/identities', { name: 'Ada' })
  const mail = (box: Appliance): Promise<string> => deliver(box.smtp, { to: ada.email, raw: message({ To: ada.email }, 'hello') })
  for (const [index, box] of boxes.entries())
    for (let count = 0; count <= index; count += 1) expect(await mail(box)).toMatch(/^250/)
  for (const box of boxes) await box.settled()
  const name = new URL(boxes[0].env['PILLARBOX_DATABASE__URL']!).pathname.slice(1)
  const [{ n: events }] = (await postgres().run(name, 'SELECT count(*)::int AS n FROM events WHERE seq > 0')) as [{ n: number }]
  const from = new Date(Date.now() - 180_000).toISOString()
  await Promise.all(boxes.map((box) => box.app.jobs.find((job) => job.name === 'note-figures')!.run()))
  const { body } = await boxes[1].call<{ series: { mail_in: number | null; events: number | null; database: number | null }[] }>(
    'GET',
    `/v1/stats?from=${from}`,
  )
  const noted = body.series.filter(({ mail_in }) => mail_in !== null)
  const sum = (of: 'mail_in' | 'events'): number => noted.reduce((total, minute) => total + minute[of]!, 0)
  expect([sum('mail_in'), sum('events')]).toEqual([6, events])
  expect(noted.every(({ database }) => database !== null && database > 0)).toBe(true)
})
