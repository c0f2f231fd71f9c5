import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { trackedFiles } from '../../src/release/tree.ts'
import { ambient } from './ambient.ts'
import { stored } from './store.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Of whoever stands between this machine and the registry: npm leaves out in silence an optional package that it could not fetch. */
const certificates =
  process.env['NODE_EXTRA_CA_CERTS'] === undefined ? {} : { NODE_EXTRA_CA_CERTS: process.env['NODE_EXTRA_CA_CERTS'] }

/** The time that the releases of tests have. */
const time = '1767225600'

/**
 * The directory of a release of this tree, as `npm run release` makes it. It is made once for all test files, and again when a file
 * that it is made of has changed.
 */
export async function release(): Promise<string> {
  const place = stored('release', await fingerprint())
  const lock = `${place}.lock`
  while (!existsSync(place)) {
    if (!taken(lock)) {
      await sleep(500)
      continue
    }
    try {
      await makeRelease(root, `${place}.part`)
      renameSync(`${place}.part`, place)
    } finally {
      rmSync(lock, { force: true })
    }
  }
  return place
}

/** Makes a release of a checkout in a directory that is not there yet. */
export async function makeRelease(checkout: string, output: string, env: Record<string, string> = {}): Promise<void> {
  await promisify(execFile)('npm', ['run', 'release', '--', '--output', output], {
    cwd: checkout,
    env: { ...ambient, ...certificates, SOURCE_DATE_EPOCH: time, ...env },
    maxBuffer: 16 * 1024 * 1024,
  })
}

/** A second checkout of this tree, as it is now. */
export async function checkoutIn(directory: string): Promise<void> {
  for (const file of await trackedFiles(root)) {
    mkdirSync(dirname(join(directory, file)), { recursive: true })
    cpSync(join(root, file), join(directory, file))
  }
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  await promisify(execFile)('git', ['init', '--quiet'], { cwd: directory })
}

/** Of what a release is made of: the files under version control but those of tests. */
async function fingerprint(): Promise<string> {
  const hash = createHash('sha256').update(process.version)
  for (const file of await trackedFiles(root)) {
    if (!/^(?:test|bench)\//.test(file)) hash.update(`${file}\0`).update(readFileSync(join(root, file)))
  }
  return hash.digest('hex').slice(0, 16)
}

/** Whether this process may make it; one that was killed over it leaves a lock that holds nobody up. */
function taken(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    const holder = existsSync(lock) ? readFileSync(lock, 'utf8') : ''
    if (holder !== '' && !existsSync(`/proc/${holder}`)) rmSync(lock, { force: true })
    return false
  }
}
