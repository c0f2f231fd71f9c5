import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { prepared } from '../../support/prepared.ts'

const source = fileURLToPath(new URL('../../../clients/examples', import.meta.url))
const directory = fileURLToPath(new URL('../../../node_modules/.cache/examples', import.meta.url))

/** The examples with what they need, installed from their own lock file at the first use. */
export function examples(): string {
  mkdirSync(directory, { recursive: true })
  cpSync(source, directory, { recursive: true, filter: (path) => !path.includes('/node_modules', source.length) })
  // a change of the lock file is a change of the script
  const locked = createHash('sha256')
    .update(readFileSync(`${source}/package-lock.json`))
    .digest('hex')
  return prepared(directory, `npm ci --no-audit --no-fund # ${locked}`)
}
