import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Appliance, deliver, message } from '../../support/appliance.ts'
import { severalBoxes } from './boxes.ts'
import { serverOfFile } from './server.ts'

const postgres = serverOfFile()

async function download(url: string): Promise<{ status: number; bytes: Buffer; length: string | null }> {
  const response = await fetch(url)
  return {
    status: response.status,
    bytes: Buffer.from(await response.arrayBuffer()),
    length: response.headers.get('content-length'),
  }
}

/** The same URL at another box. */
function at(box: Appliance, url: string): string {
  const { pathname, search } = new URL(url)
  return `${box.url}${pathname}${search}`
}

test('an export that one box has made is downloaded from the other, whole, until it is deleted there', async () => {
  const [one, other] = await severalBoxes(postgres())
  const { body: ada } = await one.call('POST', '/v1/identities', { name: 'Ada' })
  // more than one piece
  const noise = Array.from({ length: 30_000 }, (_, n) => createHash('sha512').update(String(n)).digest('base64')).join('\n')
  expect(await deliver(one.smtp, { to: ada.email, raw: message({ To: ada.email, Subject: 'long' }, noise) })).toMatch(/^250/)
  const { body: job } = await one.call('POST', `/v1/identities/${ada.id}/export`, {})
  const result = async (): Promise<Record<string, unknown> | undefined> => {
    const { body } = await other.call('GET', `/v1/jobs/${job.id}`)
    return body['status'] === 'done' ? (body['result'] as Record<string, unknown>) : undefined
  }
  await expect.poll(result, { timeout: 20_000 }).toBeDefined()
  const { url, sha256, size } = (await result()) as { url: string; sha256: string; size: number }
  expect(size).toBeGreaterThan(1024 * 1024)
  for (const box of [one, other]) {
    const { status, bytes, length } = await download(at(box, url))
    expect([status, bytes.length, length]).toEqual([200, size, String(size)])
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(sha256)
  }
  for (const box of [one, other]) {
    await box.app.jobs.find(({ name }) => name === 'sweep-exports')!.run()
    expect((await download(at(box, url))).status).toBe(200)
  }
  expect(readdirSync(join(one.env['PILLARBOX_DATA_DIR']!, 'exports'))).toEqual([])
  expect((await other.call('DELETE', `/v1/jobs/${job.id}`)).status).toBe(200)
  for (const box of [one, other]) expect((await download(at(box, url))).status).toBe(404)
  expect(
    await postgres().run(new URL(one.env['PILLARBOX_DATABASE__URL']!).pathname.slice(1), 'SELECT 1 FROM export_pieces'),
  ).toEqual([])
})
