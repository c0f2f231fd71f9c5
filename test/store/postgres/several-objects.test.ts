import { createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deliver, message } from '../../support/appliance.ts'
import { movable } from '../../support/held-clock.ts'
import { hasObjectServer, type ObjectServer, startObjectServer } from '../../support/object-server.ts'
import { severalBoxes } from './boxes.ts'
import { serverOfFile } from './server.ts'

const postgres = serverOfFile()
const there = hasObjectServer()

const sha = (text: string): string => createHash('sha256').update(text).digest('hex')

let store: ObjectServer
beforeAll(async () => {
  if (there) store = await startObjectServer()
})
afterAll(() => store?.close())

describe.runIf(there)('a store of objects of several boxes', () => {
  test('what one has written the other reads, purges and sweeps', async () => {
    const bucket = await store.bucket()
    const clock = movable()
    const env = {
      PILLARBOX_BLOBS__S3__ENDPOINT: store.endpoint,
      PILLARBOX_BLOBS__S3__BUCKET: bucket,
      PILLARBOX_BLOBS__S3__ACCESS_KEY_ID: store.access_key_id,
      PILLARBOX_BLOBS__S3__SECRET_ACCESS_KEY: store.secret_access_key,
      PILLARBOX_BLOBS__S3__ABOVE: '16 KiB',
      PILLARBOX_RETENTION__TRASH: '0',
      PILLARBOX_MAIL__QUOTA: '1 MiB',
    }
    const [one, other] = await severalBoxes(postgres(), 2, env, clock)
    const { body: ada } = await one.call('POST', '/v1/identities', { name: 'Ada' })
    const raw = message(
      { To: ada.email, Subject: 'large' },
      `${randomBytes(300_000).toString('hex').replaceAll(/.{76}/g, '$&\n')}\n`,
    )
    expect(await deliver(one.smtp, { to: ada.email, raw })).toMatch(/^250/)
    const { body } = await other.call('GET', `/v1/identities/${ada.id}/emails`)
    const path = `/v1/identities/${ada.id}/emails/${body.data[0].id}`
    const response = await fetch(`${other.url}${path}/raw`, { headers: { authorization: `Bearer ${other.key}` } })
    const read = Buffer.from(await response.arrayBuffer()).toString('latin1')
    expect(sha(read.slice(read.indexOf('From: Sam')))).toBe(sha(raw))
    // refused in the transaction: above the quota
    expect(await deliver(one.smtp, { to: ada.email, raw: raw.replace('large', 'second') })).toMatch(/^452|^552/)
    expect(await store.names(bucket)).toHaveLength(2)
    clock.ahead = 3_601_000
    await Promise.all([one, other].map((box) => box.app.jobs.find(({ name }) => name === 'sweep-objects')!.run()))
    expect(await store.names(bucket)).toHaveLength(1)
    expect((await other.call('DELETE', path)).status).toBe(200)
    await other.settled()
    expect(await store.names(bucket)).toEqual([])
  })
})
