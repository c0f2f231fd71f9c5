import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

const told = new Set<string>()

/**
 * The path of a program we did not write and test against. Where it is not installed: in CI (`CI=true`) throws, so that no promise
 * goes untested there; elsewhere says so loudly, once, and answers undefined, and the test passes without having shown anything.
 */
export function peer(name: string, install: string = `apt-get install ${name}`): string | undefined {
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter),
    '/usr/sbin',
    '/sbin',
    '/usr/local/sbin',
    '/usr/lib/postfix/sbin',
  ]
  const path = folders
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find((candidate) => isProgram(candidate))
  if (path === undefined) absent(name, `${name} is not installed (${install})`)
  return path
}

/** For what a machine may lack without it being a program (rights, a kernel's feature): like `peer`, but the caller found out. */
export function absent(name: string, reason: string): undefined {
  if (process.env['CI'] === 'true') throw new Error(`${reason}, and CI must not pass without it.`)
  if (told.has(name)) return undefined
  told.add(name)
  process.stderr.write(`\n*** NOT TESTED: ${reason}. The tests that need it pass without having shown anything. ***\n\n`)
  return undefined
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
