import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { AwsClient } from 'aws4fetch'
import { freePort } from './free-port.ts'
import { absent } from './peer.ts'
import { succeed } from './program.ts'

/** A store of objects that speaks the protocol of Amazon S3. */
export interface ObjectServer {
  endpoint: string
  access_key_id: string
  secret_access_key: string
  /** Makes a new bucket; returns its name. */
  bucket(): Promise<string>
  /** The names of all objects of a bucket. */
  names(bucket: string): Promise<string[]>
  /** The bytes of an object. */
  bytes(bucket: string, name: string): Promise<Buffer>
  remove(bucket: string, name: string): Promise<void>
  close(): Promise<void>
}

/** The Python that Debian's packages are for. */
const python = '/usr/bin/python3'

/** True where the packages are installed that `startObjectServer` needs, or `TEST_S3_URL` names a store: http://key:secret@host:port. */
export function hasObjectServer(): boolean {
  const there =
    process.env['TEST_S3_URL'] !== undefined ||
    ['account', 'container', 'object', 'proxy'].every((name) => existsSync(`/usr/bin/swift-${name}-server`))
  if (!there)
    absent('swift', 'OpenStack Swift is not installed (apt-get install swift-proxy swift-account swift-container swift-object)')
  return there
}

/** Starts OpenStack Swift with its interface for S3, on loopback; `TEST_S3_URL` names another store. */
export async function startObjectServer(): Promise<ObjectServer> {
  const given = process.env['TEST_S3_URL']
  if (given === undefined) return startSwift()
  const url = new URL(given)
  return clientOf(url.origin, decodeURIComponent(url.username), url.password, async () => {})
}

async function startSwift(): Promise<ObjectServer> {
  // its metadata are extended attributes, which a file system in memory may not have
  const directory = mkdtempSync('/var/tmp/pillarbox-swift-')
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort()
    await configure(directory, port)
    const program = fileURLToPath(new URL('swift-server.py', import.meta.url))
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', python, program, directory, String(port)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const close = async (): Promise<void> => {
      await ended(child)
      rmSync(directory, { recursive: true, force: true })
    }
    const said = await ready(child)
    if (said === undefined) return clientOf(`http://127.0.0.1:${port}`, 'test:tester', 'testing', close)
    await close()
    if (attempt === 5) throw new Error(`Swift did not start:\n${said}`)
  }
}

async function configure(directory: string, port: number): Promise<void> {
  mkdirSync(join(directory, 'devices', 'one'), { recursive: true })
  const write = (name: string, text: string): void => writeFileSync(join(directory, name), text)
  write('swift.conf', '[swift-hash]\nswift_hash_path_prefix = test\nswift_hash_path_suffix = test\n')
  write(
    'proxy.conf',
    `[DEFAULT]
swift_dir = ${directory}
[pipeline:main]
pipeline = catch_errors s3api tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
`,
  )
  for (const [index, name] of ['account', 'container', 'object'].entries()) {
    write(
      `${name}.conf`,
      `[DEFAULT]
swift_dir = ${directory}
devices = ${join(directory, 'devices')}
mount_check = false
fallocate_reserve = 0
[pipeline:main]
pipeline = ${name}-server
[app:${name}-server]
use = egg:swift#${name}
`,
    )
    const ring = [`${name}.builder`]
    const words = [['create', '0', '1', '1'], ['add', `r1z1-127.0.0.1:${port + 1 + index}/one`, '1'], ['rebalance']]
    for (const word of words) await succeed(python, ['/usr/bin/swift-ring-builder', ...ring, ...word], { cwd: directory })
  }
}

/** Resolves when it serves, or with what it said when it ended. */
async function ready(child: ChildProcess): Promise<string | undefined> {
  let said = ''
  const out = { text: '' }
  child.stdout!.setEncoding('utf8').on('data', (text: string) => (out.text += text))
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (said = `${said}${text}`.slice(-4000)))
  while (!out.text.includes('ready')) {
    if (child.exitCode !== null || child.signalCode !== null) return said
    await sleep(50)
  }
  return undefined
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const end = once(child, 'exit')
  child.kill('SIGKILL')
  await end
}

let buckets = 0

function clientOf(endpoint: string, access_key_id: string, secret_access_key: string, close: () => Promise<void>): ObjectServer {
  const client = new AwsClient({
    accessKeyId: access_key_id,
    secretAccessKey: secret_access_key,
    service: 's3',
    region: 'us-east-1',
  })
  const call = async (method: string, path: string): Promise<Response> => {
    const response = await client.fetch(`${endpoint}/${path}`, { method })
    if (!response.ok && response.status !== 404) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return response
  }
  return {
    endpoint,
    access_key_id,
    secret_access_key,
    async bucket() {
      const name = `pillarbox-${process.pid}-${(buckets += 1)}-${Date.now()}`
      await call('PUT', name)
      return name
    },
    async names(bucket) {
      const text = await (await call('GET', `${bucket}?list-type=2`)).text()
      return [...text.matchAll(/<Key>([^<]+)<\/Key>/g)].map(([, name]) => name!)
    },
    bytes: async (bucket, name) => Buffer.from(await (await call('GET', `${bucket}/${name}`)).arrayBuffer()),
    async remove(bucket, name) {
      await call('DELETE', `${bucket}/${name}`)
    },
    close,
  }
}
