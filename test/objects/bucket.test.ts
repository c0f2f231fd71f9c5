import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { Bucket, type BucketSettings } from '../../src/objects/bucket.ts'
import { error, type Misbehaviour, type StoreStub, storeStub } from './store-stub.ts'

async function opened(changes: Partial<BucketSettings> = {}): Promise<{ store: StoreStub; bucket: Bucket }> {
  const store = await storeStub(changes)
  onTestFinished(() => store.close())
  return { store, bucket: new Bucket(store.settings) }
}

const refuse =
  (status: number, code: string): Misbehaviour =>
  (request, response) => {
    request.resume()
    request.on('end', () => response.writeHead(status).end(error(code)))
  }
const cut: Misbehaviour = (request) => request.socket.destroy()
const hang: Misbehaviour = (request) => void request.resume()
const half: Misbehaviour = (_request, response) => {
  response.writeHead(200, { 'content-length': '1000' }).write('x'.repeat(500))
  setTimeout(() => response.destroy(), 50)
}

test('an object of many pieces is written, read and deleted, each with a signature that holds', async () => {
  const { store, bucket } = await opened()
  const bytes = randomBytes(3_000_000)
  await bucket.put('pillarbox/a b+c.eml', bytes)
  expect([...store.objects.values()][0]!.equals(bytes)).toBe(true)
  expect((await bucket.get('pillarbox/a b+c.eml', bytes.length)).equals(bytes)).toBe(true)
  await bucket.delete('pillarbox/a b+c.eml')
  await bucket.delete('pillarbox/a b+c.eml')
  expect(store.objects.size).toBe(0)
})

test('the bucket is in the host name where the store wants it there', async () => {
  const { store } = await opened()
  const { port } = new URL(store.settings.endpoint)
  const bucket = new Bucket({ ...store.settings, endpoint: `http://localhost:${port}`, path_style: false })
  // names below localhost are this machine (RFC 6761 6.3), for resolvers that know them
  const failure = await bucket.put('a', Buffer.from('x')).catch((one: Error) => one.message)
  if (failure === undefined) expect(store.seen).toEqual(['PUT /a'])
  else expect(failure).toContain('mail.localhost')
})

test('what the store could not do, or whose connection was cut, is attempted again', async () => {
  const { store, bucket } = await opened()
  const bytes = randomBytes(1000)
  store.next.push(refuse(503, 'SlowDown'), cut)
  await bucket.put('a', bytes)
  store.next.push(half, refuse(500, 'InternalError'))
  expect((await bucket.get('a', 1000)).equals(bytes)).toBe(true)
  expect(store.seen).toEqual(['PUT /mail/a', 'PUT /mail/a', 'PUT /mail/a', 'GET /mail/a', 'GET /mail/a', 'GET /mail/a'])
})

test('an object is taken for deleted only where the store says that there is none', async () => {
  const { store, bucket } = await opened()
  store.next.push(refuse(404, 'NoSuchBucket'), refuse(404, ''), refuse(404, 'NoSuchKey'))
  await expect(bucket.delete('a')).rejects.toMatchObject({ kind: 'no_bucket' })
  await expect(bucket.delete('a')).rejects.toMatchObject({ kind: 'other' })
  await bucket.delete('a')
})

test('after three attempts it is a failure that says what the store said', async () => {
  const { store, bucket } = await opened()
  store.next.push(...Array.from({ length: 3 }, () => refuse(503, 'SlowDown')))
  await expect(bucket.put('a', randomBytes(1000))).rejects.toMatchObject({
    kind: 'busy',
    message: 'The store of objects could not do it (SlowDown, status 503).',
  })
  expect(store.seen).toHaveLength(3)
})

test('what does not end by itself is attempted once, and has its kind', async () => {
  const { store, bucket } = await opened()
  const cases: [Misbehaviour, string][] = [
    [refuse(403, 'InvalidAccessKeyId'), 'wrong_key'],
    [refuse(403, 'SignatureDoesNotMatch'), 'wrong_key'],
    [refuse(403, 'AccessDenied'), 'denied'],
    [refuse(403, 'RequestTimeTooSkewed'), 'clock'],
    [refuse(404, 'NoSuchBucket'), 'no_bucket'],
    [refuse(301, 'PermanentRedirect'), 'region'],
    [refuse(400, 'AuthorizationHeaderMalformed'), 'region'],
    [refuse(403, ''), 'denied'],
    [refuse(418, 'Teapot'), 'other'],
    // not a store that says so: a proxy in between
    [refuse(404, ''), 'other'],
  ]
  for (const [misbehaviour, kind] of cases) {
    store.next.push(misbehaviour)
    await expect(bucket.put('a', randomBytes(10))).rejects.toMatchObject({ kind })
  }
  expect(store.seen).toHaveLength(cases.length)
})

test('a store that hangs ends each request in time, and others do not wait for it until it answers', async () => {
  const { store, bucket } = await opened({ timeout: 300 })
  store.next.push(hang, hang)
  await expect(bucket.put('a', randomBytes(10))).rejects.toMatchObject({
    kind: 'unreachable',
    message: 'The store of objects did not answer within 0.3 s.',
  })
  const trying = bucket.put('a', randomBytes(10)).catch((failure: Error) => failure.message)
  await expect(bucket.put('b', randomBytes(10))).rejects.toMatchObject({ message: 'The store of objects does not answer.' })
  expect(await trying).toBe('The store of objects did not answer within 0.3 s.')
  expect(store.seen).toEqual(['PUT /mail/a', 'PUT /mail/a'])
  await bucket.put('c', randomBytes(10))
  await Promise.all([bucket.put('d', randomBytes(10)), bucket.put('e', randomBytes(10))])
  expect(store.objects.size).toBe(3)
})

test('an answer that is longer than the object was is not read to its end', async () => {
  const { store, bucket } = await opened()
  store.objects.set('/mail/a', Buffer.alloc(1_000_000))
  await expect(bucket.get('a', 1000)).rejects.toThrow(/the response is larger than 65536 bytes/)
})
