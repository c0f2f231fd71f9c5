import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { prepare } from '../../src/store/migrate.ts'

let made: string | undefined

/** As `prepare`, but a new database is the copy of one that was migrated before in this process. */
export function prepareByCopy(file: string, expected: boolean): void {
  if (expected || existsSync(file)) prepare(file, expected)
  else copyFileSync((made ??= make()), file)
}

function make(): string {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-new-'))
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  const file = join(directory, 'pillarbox.db')
  prepare(file, false)
  return file
}
