import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

interface Manifest {
  version?: string
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

const manifest: Manifest & { overrides: Record<string, string | Record<string, string>> } = readJson('package.json')

/** What is overridden below one package is as good as what is overridden everywhere. */
const overrides = Object.fromEntries(
  Object.entries(manifest.overrides).flatMap(([name, one]) =>
    typeof one === 'string' ? [[name, one] as const] : Object.entries(one),
  ),
)
const { packages: lock }: { packages: Record<string, Manifest> } = readJson('package-lock.json')

// what only the page is built of is among them: npm ci --omit=dev builds it too
test('every dependency is used by the program, its page, or what builds the page', () => {
  const source = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => readFileSync(join(root, 'src', name), 'utf8'))
    .join('\n')
  const used = (name: string): boolean => source.includes(`'${name}'`) || source.includes(`'${name}/`)
  expect(Object.keys(manifest.dependencies!).filter((name) => !used(name))).toEqual([])
})

test('every version is exact, so that what was tested is what runs', () => {
  const all = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies, ...overrides }
  const loose = Object.entries(all).filter(([name, version]) => !/^\d+\.\d+\.\d+$/.test(exact(version)) && version !== `$${name}`)
  expect(loose).toEqual([])
  for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
    expect([name, lock[`node_modules/${name}`]?.version]).toEqual([name, exact(version)])
  }
})

test('the lock file names the build of every platform, without which a fresh install is refused', () => {
  const kept = Object.keys(lock)
  const missing = Object.entries(lock).flatMap(([path, entry]) =>
    Object.keys(entry.optionalDependencies ?? {})
      .filter((name) => !kept.some((other) => other.endsWith(`node_modules/${name}`)))
      .map((name) => `${path} ${name}`),
  )
  expect(missing).toEqual([])
})

test('one copy of nodemailer reads addresses, for what is shown and what is checked', () => {
  expect(Object.keys(lock).filter((path) => /(?:^|\/)node_modules\/nodemailer$/.test(path))).toEqual(['node_modules/nodemailer'])
  const installed = readdirSync(join(root, 'node_modules'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap((entry) => nested(join('node_modules', entry.name), 'nodemailer'))
  expect(installed).toEqual([])
  expect(readJson('node_modules/nodemailer/package.json').version).toBe(manifest.dependencies!['nodemailer'])
})

/** The version alone, of a package under another name too: `npm:ws@8.23.0`. */
function exact(version: string): string {
  return version.replace(/^npm:.+@/, '')
}

/** Copies of a package that a package of ours (or one of a scope) brought for itself. */
function nested(folder: string, name: string): string[] {
  if (folder.startsWith(join('node_modules', '@'))) {
    return readdirSync(join(root, folder)).flatMap((one) => copies(join(folder, one), name))
  }
  return copies(folder, name)
}

function copies(folder: string, name: string): string[] {
  const path = join(folder, 'node_modules', name, 'package.json')
  try {
    readFileSync(join(root, path))
    return [path]
  } catch {
    return []
  }
}

function readJson(path: string): ReturnType<typeof JSON.parse> {
  return JSON.parse(readFileSync(join(root, path), 'utf8'))
}
