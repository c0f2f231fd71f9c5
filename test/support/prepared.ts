import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'

/** Runs a script of the shell in a directory unless it has succeeded there before, also when several test files ask for it at once. */
export function prepared(directory: string, script: string): string {
  mkdirSync(directory, { recursive: true })
  const once = `test "$(cat .prepared 2>/dev/null)" = "$0" || { eval "$0" && printf %s "$0" > .prepared; }`
  execFileSync('flock', [`${directory}/.lock`, 'bash', '-euc', once, script], { cwd: directory })
  return directory
}
