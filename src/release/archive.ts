import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createHash } from 'node:crypto'
import { chmodSync, createReadStream, lstatSync, lutimesSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** A regular file, a symbolic link or a directory of a tree. */
interface Entry {
  /** Relative to the tree. */
  path: string
  kind: 'file' | 'link' | 'directory'
  size: number
}

/** The entries of a tree, sorted by path, each directory before its contents. */
export function entriesOf(tree: string, below = ''): Entry[] {
  return readdirSync(join(tree, below))
    .toSorted()
    .flatMap((name): Entry[] => {
      const path = join(below, name)
      const stat = lstatSync(join(tree, path))
      if (stat.isDirectory()) return [{ path, kind: 'directory', size: 0 }, ...entriesOf(tree, path)]
      return [{ path, kind: stat.isSymbolicLink() ? 'link' : 'file', size: stat.size }]
    })
}

/** Sets the modes and times of a tree: 0755 or 0644, and one time for all, in seconds since 1970. */
export function normalize(tree: string, time: number): void {
  for (const { path, kind } of entriesOf(tree).toReversed()) {
    const file = join(tree, path)
    if (kind !== 'link') chmodSync(file, kind === 'directory' || (lstatSync(file).mode & 0o100) !== 0 ? 0o755 : 0o644)
    lutimesSync(file, time, time)
  }
  chmodSync(tree, 0o755)
  lutimesSync(tree, time, time)
}

/**
 * Packs the directory `name` of `parent` as `file`, reproducibly: GNU tar with sorted names, root as the owner and one time, and gzip
 * without a timestamp. (The zlib of Node.js compresses differently on different processors; gzip does not.)
 */
export async function packTarball(parent: string, name: string, file: string, time: number): Promise<void> {
  const tar = `tar --create --format=gnu --sort=name --owner=root:0 --group=root:0 --mtime=@${time} -- "$1"`
  await execute('bash', ['-c', `set -o pipefail; ${tar} | gzip --no-name >"$2"`, 'bash', name, file], { cwd: parent })
}

/** A line for each file, in the format of sha256sum(1) and md5sum(1). */
export async function checksums(
  directory: string,
  files: readonly string[],
  algorithm: 'sha256' | 'md5' = 'sha256',
): Promise<string> {
  const lines: string[] = []
  for (const file of files) {
    const hash = createHash(algorithm)
    await pipeline(createReadStream(join(directory, file)), hash)
    lines.push(`${hash.digest('hex')}  ${file}\n`)
  }
  return lines.join('')
}

/** Runs a program and returns its standard output. Throws an Error with its standard error when it fails or cannot be started. */
export async function execute(
  program: string,
  parameters: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, parameters, { ...options, maxBuffer: 64 * 1024 * 1024 })
    return stdout
  } catch (error) {
    const { code, stdout = '', stderr = '' } = error as { code: number | string; stdout?: string; stderr?: string }
    throw new Error(`${program} ${parameters.join(' ')} failed (${code}):\n${stderr}${stdout}`, { cause: error })
  }
}
