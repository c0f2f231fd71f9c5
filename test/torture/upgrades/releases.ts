import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ambient } from '../../support/ambient.ts'
import { stored } from '../../support/store.ts'
import { checkout } from '../builds.ts'

/** The program as it was: the last commit of the main line that had these migrations. */
export interface Release {
  commit: string
  /** The number of its migrations. */
  version: number
}

const migrations = 'src/store/migrations/'
const run = promisify(execFile)

/** Why no release can be made; undefined where the history of the program is there. */
export function noHistory(): string | undefined {
  try {
    if (git('rev-parse', '--is-shallow-repository') === 'false') return undefined
  } catch {
    // no checkout, as in a tarball
  }
  return 'the history of the program, from which releases are made, is not here (git fetch --unshallow)'
}

/** All whose migrations are the first of those of now, without a word changed, oldest first. */
export function releases(): Release[] {
  const now = migrationsOf('HEAD')
  const found = new Map<number, Release>()
  for (const line of git('log', '--first-parent', '--format=%P', '--', migrations).split('\n')) {
    const commit = line.split(' ')[0]!
    if (commit === '') continue
    const then = migrationsOf(commit)
    const version = then.length
    const known = then.every((one, index) => one === now[index])
    if (version > 0 && version < now.length && known && !found.has(version) && hasCommand(commit))
      found.set(version, { commit, version })
  }
  return [...found.values()].toSorted((one, other) => one.version - other.version)
}

/** The versions before that of now that are no release, and why, in a sentence each. */
export function leftOut(known: Release[]): string[] {
  const versions = new Set(known.map(({ version }) => version))
  const now = migrationsOf('HEAD')
  const others = new Map<string, number[]>()
  const seen = new Map<number, string>()
  for (const line of git('log', '--first-parent', '--format=%P', '--', migrations).split('\n')) {
    const commit = line.split(' ')[0]!
    if (commit === '') continue
    const then = migrationsOf(commit)
    if (seen.has(then.length)) continue
    const isBegin = then.every((one, index) => one === now[index])
    seen.set(then.length, isBegin ? 'there was no bin/pillarbox yet' : 'a migration of it was changed later')
  }
  for (let version = 1; version < now.length; version += 1) {
    if (versions.has(version)) continue
    const why = seen.get(version) ?? 'the main line never had it, as several migrations came at once'
    others.set(why, [...(others.get(why) ?? []), version])
  }
  return [...others].map(([why, left]) => `${left.length === 1 ? 'version' : 'versions'} ${left.join(', ')}: ${why}`)
}

/** Unpacks a release into a directory that is not there yet, with the packages of its time. */
export async function unpack({ commit }: Release, directory: string): Promise<void> {
  const packages = await packagesOf(commit)
  mkdirSync(directory, { recursive: true })
  const archive = `${directory}.tar`
  const content = ['.', ':(exclude)test', ':(exclude)bench']
  await run('git', ['archive', '--output', archive, commit, '--', ...content], { cwd: checkout })
  await run('tar', ['--extract', '--file', archive, '--directory', directory])
  rmSync(archive)
  symlinkSync(packages, join(directory, 'node_modules'))
}

/** Fetches the packages of all releases. */
export async function fetchPackages(): Promise<void> {
  for (const { commit } of releases()) await packagesOf(commit)
}

/** The packages that a release was locked to, which stay from run to run. */
async function packagesOf(commit: string): Promise<string> {
  const lock = git('rev-parse', `${commit}:package-lock.json`)
  if (lock === git('hash-object', 'package-lock.json')) return join(checkout, 'node_modules')
  const place = stored('release-packages', lock.slice(0, 16))
  const packages = join(place, 'node_modules')
  if (existsSync(packages)) return packages
  // another run may fetch the same meanwhile
  const part = mkdtempSync(`${place}.part-`)
  for (const name of ['package.json', 'package-lock.json']) writeFileSync(join(part, name), show(commit, name))
  const certificates = process.env['NODE_EXTRA_CA_CERTS']
  const env = { ...ambient, ...(certificates === undefined ? {} : { NODE_EXTRA_CA_CERTS: certificates }) }
  await run('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: part, env })
  if (existsSync(packages)) rmSync(part, { recursive: true, force: true })
  else renameSync(part, place)
  return packages
}

/** Name and content of each, in order. */
function migrationsOf(commit: string): string[] {
  return git('ls-tree', commit, migrations)
    .split('\n')
    .filter((line) => line.endsWith('.sql'))
    .map((line) => line.slice(line.indexOf(' ')))
}

function hasCommand(commit: string): boolean {
  return git('ls-tree', '--name-only', commit, 'bin/pillarbox') !== ''
}

function show(commit: string, path: string): string {
  return execFileSync('git', ['show', `${commit}:${path}`], { cwd: checkout, encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 })
}

function git(...words: string[]): string {
  return execFileSync('git', words, { cwd: checkout, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
}
