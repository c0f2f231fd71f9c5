import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Appliance, appliance, deliver, message } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { movable } from '../support/held-clock.ts'
import { hasObjectServer, type ObjectServer, startObjectServer } from '../support/object-server.ts'
import { pillarbox } from '../support/pillarbox.ts'
import { boxProcess } from '../support/process.ts'
import { type CuttingProxy, cuttingProxy } from '../store/postgres/cutting-proxy.ts'

const there = hasObjectServer()
const hour = 3_600_000

let store: ObjectServer
beforeAll(async () => {
  if (there) store = await startObjectServer()
})
afterAll(() => store?.close())

/** The settings of a box that uses this bucket for what is above 16 KiB. */
function objects(bucket: string, changes: Record<string, string> = {}): Record<string, string> {
  return {
    PILLARBOX_BLOBS__S3__ENDPOINT: store.endpoint,
    PILLARBOX_BLOBS__S3__BUCKET: bucket,
    PILLARBOX_BLOBS__S3__REGION: 'us-east-1',
    PILLARBOX_BLOBS__S3__ACCESS_KEY_ID: store.access_key_id,
    PILLARBOX_BLOBS__S3__SECRET_ACCESS_KEY: store.secret_access_key,
    PILLARBOX_BLOBS__S3__ABOVE: '16 KiB',
    PILLARBOX_RETENTION__TRASH: '0',
    ...changes,
  }
}

/** A message with so many bytes of text, which deflates to a little more than a half. */
function letter(to: string, subject: string, bytes: number): string {
  const text = randomBytes(bytes / 2).toString('hex')
  return message(
    { To: to, Subject: subject, 'Message-ID': `<${randomBytes(8).toString('hex')}@sender.test>` },
    `${text.replaceAll(/.{76}/g, '$&\n')}\n`,
  )
}

interface Report {
  lines: { name: string; status: string; message: string; fix: string | null }[]
}

interface Ada {
  id: string
  email: string
}

async function newIdentity(box: Appliance, name = 'Ada'): Promise<Ada> {
  const { status, body } = await box.call<Ada>('POST', '/v1/identities', { name })
  expect(status).toBe(201)
  return body
}

/** The ids of the e-mails of an identity, newest first. */
async function emails(box: Appliance, { id }: Ada): Promise<string[]> {
  const { body } = await box.call('GET', `/v1/identities/${id}/emails?direction=all`)
  return body.data.map((one) => one.id as string)
}

/** The raw message without the fields that the box has prepended. */
async function rawOf(box: Appliance, { id }: Ada, email: string): Promise<string> {
  const response = await fetch(`${box.url}/v1/identities/${id}/emails/${email}/raw`, {
    headers: { authorization: `Bearer ${box.key}` },
  })
  expect(response.status).toBe(200)
  const text = Buffer.from(await response.arrayBuffer()).toString('latin1')
  return text.slice(text.indexOf('From: Sam'))
}

/** Delivers a message, and returns the id of its e-mail. */
async function arrive(box: Appliance, ada: Ada, raw: string): Promise<string> {
  expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^250/)
  return (await emails(box, ada))[0]!
}

function job(box: Appliance, name: string): Promise<void> {
  return box.app.jobs.find((one) => one.name === name)!.run()
}

/** Of two objects in the bucket the one without a blob stays for an hour, and is deleted then. */
async function expectDeletedAfterAnHour(box: Appliance, bucket: string, clock: { ahead: number }): Promise<void> {
  for (const [ahead, count] of [
    [0, 2],
    [hour + 1000, 1],
  ] as const) {
    clock.ahead = ahead
    await job(box, 'sweep-objects')
    expect(await store.names(bucket)).toHaveLength(count)
  }
}

/** A way to the store that can be cut. */
async function cuttable(): Promise<{ proxy: CuttingProxy; endpoint: string }> {
  const proxy = await cuttingProxy(Number(new URL(store.endpoint).port))
  onTestFinished(() => proxy.close())
  return { proxy, endpoint: `http://127.0.0.1:${proxy.port}` }
}

const sha = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex')

describe.runIf(there)('large e-mails in a store of objects', () => {
  test('a message above the size is an object, one below is in the database, and both read back byte for byte, after a restart too', async () => {
    const bucket = await store.bucket()
    const box = await appliance(objects(bucket))
    const ada = await newIdentity(box)
    const [small, large] = [letter(ada.email, 'small', 10_000), letter(ada.email, 'large', 3_000_000)]
    const one = await arrive(box, ada, small)
    expect(await store.names(bucket)).toEqual([])
    const other = await arrive(box, ada, large)
    const [name] = await store.names(bucket)
    expect(name).toMatch(/^pillarbox\/[0-9a-f-]{36}\.eml$/)
    expect(sha(await store.bytes(bucket, name!))).toBe(sha(large))
    const even = message({ To: ada.email, Subject: 'even' }, 'Good morning\n'.repeat(2500))
    const third = await arrive(box, ada, even)
    const deflated = (await store.names(bucket)).find((found) => found !== name)!
    expect(deflated).toMatch(/^pillarbox\/[0-9a-f-]{36}\.eml\.deflate$/)
    expect(sha(inflateRawSync(await store.bytes(bucket, deflated)))).toBe(sha(even))
    for (let round = 0; round < 2; round += 1) {
      expect(sha(await rawOf(box, ada, one))).toBe(sha(small))
      expect(sha(await rawOf(box, ada, other))).toBe(sha(large))
      expect(sha(await rawOf(box, ada, third))).toBe(sha(even))
      await box.restart()
    }
    const { body } = await box.call('GET', `/v1/identities/${ada.id}`)
    expect(body['storage'].used).toBe(small.length + large.length + even.length)
  })

  test('what is sent with a large attachment is an object, and so is the copy of its recipient here', async () => {
    const bucket = await store.bucket()
    const box = await appliance(objects(bucket))
    const [ada, bea] = [await newIdentity(box), await newIdentity(box, 'Bea')]
    const content = randomBytes(200_000)
    const attachments = [{ filename: 'a.bin', content_type: 'application/octet-stream', content: content.toString('base64') }]
    const sent = await box.call('POST', `/v1/identities/${ada.id}/emails`, {
      to: bea.email,
      subject: 'file',
      body_text: 'here',
      attachments,
    })
    expect(sent.status).toBe(201)
    await box.settled()
    expect(await store.names(bucket)).toHaveLength(2)
    for (const one of [ada, bea]) {
      const [email] = await emails(box, one)
      const { body } = await box.call('GET', `/v1/identities/${one.id}/emails/${email}/attachments/0`)
      expect(sha(Buffer.from(await (await fetch(body['url'] as string)).arrayBuffer()))).toBe(sha(content))
    }
  })

  test('a message to several is one object, which is deleted with the last of its copies', async () => {
    const bucket = await store.bucket()
    const box = await appliance(objects(bucket))
    const [ada, bea] = [await newIdentity(box), await newIdentity(box, 'Bea')]
    expect(await deliver(box.smtp, { to: [ada.email, bea.email], raw: letter(ada.email, 'both', 100_000) })).toMatch(/^250/)
    expect(await store.names(bucket)).toHaveLength(1)
    for (const [one, left] of [[ada, 1] as const, [bea, 0] as const]) {
      const [email] = await emails(box, one)
      expect((await box.call('DELETE', `/v1/identities/${one.id}/emails/${email}`)).status).toBe(200)
      await box.settled()
      expect(await store.names(bucket)).toHaveLength(left)
    }
  })

  test('while the store is away large mail is deferred and read later, small mail is taken, and all goes on when it is back', async () => {
    const bucket = await store.bucket()
    const { proxy, endpoint } = await cuttable()
    const box = await appliance(objects(bucket, { PILLARBOX_BLOBS__S3__ENDPOINT: endpoint, PILLARBOX_BLOBS__S3__TIMEOUT: '1 s' }))
    const ada = await newIdentity(box)
    const before = letter(ada.email, 'before', 100_000)
    const email = await arrive(box, ada, before)
    proxy.block()
    const raw = letter(ada.email, 'meanwhile', 100_000)
    expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^451 4\.3\.0/)
    expect(await deliver(box.smtp, { to: ada.email, raw: letter(ada.email, 'small', 1000) })).toMatch(/^250/)
    expect(await emails(box, ada)).toHaveLength(2)
    const attachments = [{ filename: 'a.bin', content: randomBytes(100_000).toString('base64') }]
    const sent = await box.call('POST', `/v1/identities/${ada.id}/emails`, {
      to: ada.email,
      subject: 'x',
      body_text: 'x',
      attachments,
    })
    expect([sent.status, sent.body.error['code'], sent.headers.get('retry-after')]).toEqual([500, 'storage_unavailable', '5'])
    const read = await box.call('GET', `/v1/identities/${ada.id}/emails/${email}/raw`)
    expect([read.status, read.body.error]).toEqual([
      500,
      expect.objectContaining({
        code: 'storage_unavailable',
        message: 'The raw message is in a store of objects that is not available. Try again later.',
      }),
    ])
    expect((await box.call('GET', `/v1/identities/${ada.id}/emails/${email}`)).body['body_text']).toContain('\n')
    proxy.unblock()
    expect(await deliver(box.smtp, { to: ada.email, raw })).toMatch(/^250/)
    expect(await rawOf(box, ada, (await emails(box, ada))[0]!)).toBe(raw)
    expect(await rawOf(box, ada, email)).toBe(before)
    const lines = box.logged
      .map((line) => JSON.parse(line) as { level: string; msg: string })
      .filter(({ msg }) => msg.startsWith('store of objects'))
    expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
      ['error', 'store of objects not available: large e-mails are deferred'],
      ['warn', 'store of objects available again'],
    ])
  })

  test('an object whose message was refused is deleted an hour later, and one that is referred to never is', async () => {
    const bucket = await store.bucket()
    const clock = movable()
    const box = await appliance(objects(bucket, { PILLARBOX_MAIL__QUOTA: '1 MiB' }), clock)
    const ada = await newIdentity(box)
    const raw = letter(ada.email, 'fits', 600_000)
    const email = await arrive(box, ada, raw)
    // the quota is checked in the transaction, after the object was written
    expect(await deliver(box.smtp, { to: ada.email, raw: letter(ada.email, 'does not', 600_000) })).toMatch(/^452|^552/)
    expect(await store.names(bucket)).toHaveLength(2)
    await expectDeletedAfterAnHour(box, bucket, clock)
    expect(await rawOf(box, ada, email)).toBe(raw)
  })

  test('a box that is killed between the object and the commit leaves an object that is deleted, and no e-mail', async () => {
    const bucket = await store.bucket()
    const { proxy, endpoint } = await cuttable()
    const clock = movable()
    const box = await appliance(objects(bucket, { PILLARBOX_BLOBS__S3__ENDPOINT: endpoint }), clock)
    const ada = await newIdentity(box)
    const raw = letter(ada.email, 'first', 100_000)
    const email = await arrive(box, ada, raw)
    await box.app.stop()
    const killed = boxProcess(box.env)
    const { smtp } = (await killed.said('started')) as { smtp: Appliance['smtp'][] }
    // the object is stored, and the box is not told
    proxy.mute()
    const sent = deliver(smtp[0]!, { to: ada.email, raw: letter(ada.email, 'second', 100_000) }).catch(() => '')
    await expect.poll(() => store.names(bucket), { timeout: 20_000 }).toHaveLength(2)
    await killed.end('SIGKILL')
    expect(await sent).not.toMatch(/^250/)
    proxy.unblock()
    await box.restart()
    expect(await emails(box, ada)).toEqual([email])
    await expectDeletedAfterAnHour(box, bucket, clock)
    expect(await rawOf(box, ada, email)).toBe(raw)
  })

  test('a purge while the store is away deletes the object once it is back, after a restart too', async () => {
    const bucket = await store.bucket()
    const { proxy, endpoint } = await cuttable()
    const box = await appliance(
      objects(bucket, { PILLARBOX_BLOBS__S3__ENDPOINT: endpoint, PILLARBOX_BLOBS__S3__TIMEOUT: '300 ms' }),
    )
    const ada = await newIdentity(box)
    const email = await arrive(box, ada, letter(ada.email, 'purged', 100_000))
    proxy.block()
    expect((await box.call('DELETE', `/v1/identities/${ada.id}/emails/${email}`)).status).toBe(200)
    await box.settled()
    expect(await store.names(bucket)).toHaveLength(1)
    proxy.unblock()
    await box.restart()
    await job(box, 'sweep-objects')
    expect(await store.names(bucket)).toEqual([])
  })

  test('retention of raw mail deletes its object, and the e-mail stays', async () => {
    const bucket = await store.bucket()
    const clock = movable()
    const box = await appliance(objects(bucket, { PILLARBOX_RETENTION__RAW: '7 d' }), clock)
    const ada = await newIdentity(box)
    const email = await arrive(box, ada, letter(ada.email, 'old', 100_000))
    clock.ahead = 8 * 24 * hour
    await job(box, 'let-go-of-raw-mail')
    await box.settled()
    expect(await store.names(bucket)).toEqual([])
    const { status, body } = await box.call('GET', `/v1/identities/${ada.id}/emails/${email}/raw`)
    expect([status, body.error['code']]).toEqual([404, 'raw_expired'])
    const file = join(folder(), 'backup.tar')
    expect(await pillarbox(box, ['backup', file])).toMatchObject({ status: 0 })
    expect(await pillarbox(box, ['verify', file])).toMatchObject({ status: 0, errors: '' })
  })

  test('a backup has the raw mail, and is restored without a store, or into another one', async () => {
    const bucket = await store.bucket()
    const box = await appliance(objects(bucket))
    const ada = await newIdentity(box)
    const raws = [letter(ada.email, 'first', 100_000), letter(ada.email, 'second', 2_500_000), letter(ada.email, 'small', 1000)]
    const ids = []
    for (const raw of raws) ids.push(await arrive(box, ada, raw))
    const file = join(folder(), 'backup.tar')
    expect(await pillarbox(box, ['backup', file])).toMatchObject({ status: 0 })
    expect(await pillarbox(box, ['verify', file])).toMatchObject({ status: 0 })
    const key = join(box.directory, 'data-keys', 'master.key')
    const elsewhere = await store.bucket()
    for (const [settings, count] of [[{}, 0] as const, [objects(elsewhere), 2] as const]) {
      const directory = folder()
      const env = { ...box.env, PILLARBOX_DATA_DIR: join(directory, 'data') }
      for (const name of Object.keys(objects(bucket))) delete (env as Record<string, string | undefined>)[name]
      const restored = await pillarbox({ env, directory }, ['restore', file, '--master-key', key])
      expect(restored).toMatchObject({ status: 0 })
      const other = await appliance({ ...env, ...settings })
      if (count > 0) await job(other, 'move-raw-mail')
      expect(await store.names(elsewhere)).toHaveLength(count)
      for (const [index, raw] of raws.entries()) expect(sha(await rawOf(other, ada, ids[index]!))).toBe(sha(raw))
      await other.app.stop()
    }
    // those of the box that was backed up are its own
    expect(await store.names(bucket)).toHaveLength(2)
  })

  test('a backup that cannot read an object is refused, and says which', async () => {
    const bucket = await store.bucket()
    const box = await appliance(objects(bucket))
    const ada = await newIdentity(box)
    const email = await arrive(box, ada, letter(ada.email, 'lost', 100_000))
    const [name] = await store.names(bucket)
    await store.remove(bucket, name!)
    const { status, errors } = await pillarbox(box, ['backup', join(folder(), 'backup.tar')])
    expect(status).not.toBe(0)
    expect(errors).toContain(
      `The raw mail in ${name} could not be read: The store of objects does not have the object (NoSuchKey, status 404). Nothing was backed up.`,
    )
    const { status: answer, body } = await box.call('GET', `/v1/identities/${ada.id}/emails/${email}/raw`)
    expect([answer, body.error['code'], body.error['message']]).toEqual([
      500,
      'storage_unavailable',
      'The store of objects has lost or damaged the raw message; its text, codes and links are here.',
    ])
  })

  test('mail from before the store was set is moved there, and the box does not start without the store any more', async () => {
    const bucket = await store.bucket()
    const box = await appliance({ PILLARBOX_RETENTION__TRASH: '0' })
    const ada = await newIdentity(box)
    const raws = [letter(ada.email, 'first', 100_000), letter(ada.email, 'small', 1000), letter(ada.email, 'third', 1_500_000)]
    const ids = []
    for (const raw of raws) ids.push(await arrive(box, ada, raw))
    Object.assign(box.env, objects(bucket))
    await box.restart()
    await job(box, 'move-raw-mail')
    await job(box, 'move-raw-mail')
    expect(await store.names(bucket)).toHaveLength(2)
    for (const [index, raw] of raws.entries()) expect(sha(await rawOf(box, ada, ids[index]!))).toBe(sha(raw))
    await job(box, 'sweep-objects')
    await box.app.stop()
    for (const name of Object.keys(objects(bucket))) delete box.env[name]
    const { status, errors } = await pillarbox(box, ['serve'])
    expect([status, errors]).toEqual([
      1,
      expect.stringMatching(
        /Raw mail of this box is in a store of objects \(pillarbox\/.*\), and blobs\.s3 is not set: set it as before\./,
      ),
    ])
    Object.assign(box.env, objects(bucket))
    await box.restart()
    expect(await rawOf(box, ada, ids[2]!)).toBe(raws[2])
  })

  test('an export has the raw mail, and an import puts it there', async () => {
    const bucket = await store.bucket()
    const box = await appliance(objects(bucket))
    const [ada, bea] = [await newIdentity(box), await newIdentity(box, 'Bea')]
    const raw = letter(ada.email, 'carried', 300_000)
    await arrive(box, ada, raw)
    const { body: exporting } = await box.call('POST', `/v1/identities/${ada.id}/export`, {})
    await box.settled()
    const { body: exported } = await box.call('GET', `/v1/jobs/${exporting['id']}`)
    const file = await (await fetch((exported['result'] as { url: string }).url)).arrayBuffer()
    for (let round = 0; round < 2; round += 1) {
      const upload = await fetch(`${box.url}/v1/identities/${bea.id}/import`, {
        method: 'POST',
        headers: { authorization: `Bearer ${box.key}`, 'content-type': 'application/zip' },
        body: file,
      })
      expect(upload.status).toBe(201)
      await box.settled()
      // what is there already is not uploaded again
      expect(await store.names(bucket)).toHaveLength(2)
    }
    expect(await rawOf(box, bea, (await emails(box, bea))[0]!)).toBe(raw)
  })

  test('wrong settings are sentences with remedies, at the start and of the doctor', async () => {
    const bucket = await store.bucket()
    const box = await appliance(objects(bucket))
    const right = { ...box.env }
    const cases: [Record<string, string>, RegExp][] = [
      [
        { PILLARBOX_BLOBS__S3__BUCKET: 'no-such-bucket' },
        /has no such bucket \(NoSuchBucket, status 404\)\..*Create the bucket at the store/s,
      ],
      [
        { PILLARBOX_BLOBS__S3__SECRET_ACCESS_KEY: 'wrong' },
        /does not accept the access key or its secret \(SignatureDoesNotMatch.*Correct blobs\.s3\.access_key_id and blobs\.s3\.secret_access_key/s,
      ],
      [
        { PILLARBOX_BLOBS__S3__REGION: 'elsewhere-1' },
        /is in another region, or at another endpoint.*Correct blobs\.s3\.region/s,
      ],
    ]
    const line = async (): Promise<Report['lines'][number]> => {
      const { output } = await pillarbox(box, ['doctor', '--json'])
      return (JSON.parse(output) as Report).lines.find(({ name }) => name === 'objects')!
    }
    expect(await line()).toMatchObject({ status: 'pass' })
    await box.app.stop()
    for (const [changes, sentence] of cases) {
      Object.assign(box.env, right, changes)
      const { errors } = await pillarbox(box, ['serve'])
      expect(errors).toMatch(sentence)
      const { status, message: said, fix } = await line()
      expect([status, `${said} ${fix}`]).toEqual(['fail', expect.stringMatching(sentence)])
    }
    Object.assign(box.env, right)
    await box.restart()
    expect(await store.names(bucket)).toEqual([])
  })
})
