import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { AwsV4Signer } from 'aws4fetch'
import type { BucketSettings } from '../../src/objects/bucket.ts'

/** What the stub does with the next requests, in place of what is right. */
export type Misbehaviour = (request: IncomingMessage, response: ServerResponse) => void

/** A store of objects for what a real one cannot be made to do; it verifies signatures and checksums of bodies (Signature Version 4). */
export interface StoreStub {
  settings: BucketSettings
  objects: Map<string, Buffer>
  /** Each is used for one request. */
  next: Misbehaviour[]
  /** Requests that came, as `PUT /bucket/name`. */
  seen: string[]
  close(): Promise<void>
}

export async function storeStub(changes: Partial<BucketSettings> = {}): Promise<StoreStub> {
  const objects = new Map<string, Buffer>()
  const next: Misbehaviour[] = []
  const seen: string[] = []
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`)
    const misbehave = next.shift()
    if (misbehave) return misbehave(request, response)
    void answer(request, response).catch(() => response.destroy())
  })
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request)
    const refuse = (status: number, code: string): void => void response.writeHead(status).end(error(code))
    if (createHash('sha256').update(body).digest('hex') !== request.headers['x-amz-content-sha256'])
      return refuse(400, 'XAmzContentSHA256Mismatch')
    if (!(await isSigned(request, settings))) return refuse(403, 'SignatureDoesNotMatch')
    const name = request.url!
    if (request.method === 'PUT') objects.set(name, body)
    const found = objects.get(name)
    if (request.method === 'DELETE') objects.delete(name)
    if (request.method !== 'GET') return void response.writeHead(request.method === 'PUT' ? 200 : 204).end()
    if (!found) return refuse(404, 'NoSuchKey')
    response.writeHead(200).end(found)
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const settings: BucketSettings = {
    endpoint: `http://127.0.0.1:${port}`,
    bucket: 'mail',
    region: 'eu-central-1',
    access_key_id: 'key',
    secret_access_key: 'secret',
    prefix: 'pillarbox/',
    path_style: true,
    timeout: 10_000,
    ...changes,
  }
  return {
    settings,
    objects,
    next,
    seen,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** The body of an error. */
export function error(code: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>no</Message></Error>`
}

async function isSigned({ method, url, headers }: IncomingMessage, settings: BucketSettings): Promise<boolean> {
  const names = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? '')?.[1]?.split(';') ?? []
  const signer = new AwsV4Signer({
    method: method!,
    url: `http://${headers.host}${url}`,
    headers: Object.fromEntries(names.filter((name) => name !== 'host').map((name) => [name, String(headers[name])])),
    datetime: String(headers['x-amz-date']),
    accessKeyId: settings.access_key_id,
    secretAccessKey: settings.secret_access_key,
    service: 's3',
    region: settings.region,
  })
  return (await signer.authHeader()) === headers.authorization
}
