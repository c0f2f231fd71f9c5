import { mkdirSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Of what is slow to make and the same each time: systems, what npm fetched, releases. It stays from run to run. */
const store = process.getuid?.() === 0 ? '/var/cache/pillarbox-test' : join(tmpdir(), `pillarbox-test-${process.getuid?.()}`)
const day = 24 * 3600_000

/**
 * The path in the store of what has this name and the digest of what it was made of (none: of nothing that changes). Others of the name
 * that nobody asked for in a day were made of what is no more, or are what a killed run left: they are removed.
 */
export function stored(name: string, digest?: string): string {
  mkdirSync(store, { recursive: true, mode: 0o700 })
  const path = join(store, digest === undefined ? name : `${name}-${digest}`)
  const now = Date.now()
  for (const entry of readdirSync(store)) {
    const other = join(store, entry)
    if (other === path) utimesSync(path, now / 1000, now / 1000)
    else if (entry.startsWith(`${name}-`) && modified(other) < now - day) rmSync(other, { recursive: true, force: true })
  }
  return path
}

/** When another run removed it meanwhile: now. */
function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()
}
