import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, rmdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const root = join(import.meta.dirname, '..', '..')
const sources = join(root, 'src', 'web', 'browser')
const lock = join(root, 'node_modules', '.page-building')

/** Builds the page when what is built is older than what it is built of; of test files that run at once, one does. */
export async function builtPage(): Promise<void> {
  const held = await locked()
  try {
    if (builtAt() < changedAt()) {
      await promisify(execFile)(process.execPath, [join(sources, 'build.ts')])
    }
  } finally {
    if (held) rmdirSync(lock)
  }
}

function builtAt(): number {
  return statSync(join(root, 'dist', 'page', 'index.html'), { throwIfNoEntry: false })?.mtimeMs ?? 0
}

function changedAt(): number {
  const names = readdirSync(sources, { recursive: true, encoding: 'utf8' })
  const files = [...names.map((name) => join(sources, name)), join(root, 'src', 'cards', 'money.ts')]
  return Math.max(...files.map((file) => statSync(file).mtimeMs))
}

/** Waits for at most 20 s: one that was killed leaves the lock behind. */
async function locked(): Promise<boolean> {
  for (let tries = 0; tries < 200; tries++) {
    try {
      mkdirSync(lock)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    await sleep(100)
  }
  return true
}
