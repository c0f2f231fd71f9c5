import { chmodSync, existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { entriesOf, execute } from './archive.ts'

/** The architectures of releases, as Node.js names them. */
export const processors = ['x64', 'arm64'] as const
export type Processor = (typeof processors)[number]

/**
 * Installs the production packages of the package.json and package-lock.json in `tree` for another machine, and removes files that are not
 * needed at run time: types, source maps, tests, documentation. Runs no scripts of packages.
 */
export async function installPackages(tree: string, processor: Processor): Promise<void> {
  const platform = ['--os=linux', `--cpu=${processor}`, '--libc=glibc']
  const network = ['--prefer-offline', '--fetch-retries=4', '--fetch-retry-factor=2']
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error']
  const modules = join(tree, 'node_modules')
  const node = join(modules, `node-linux-${processor}`, 'bin', 'node')
  // npm skips an optional package that it could not fetch, and succeeds: Node.js is one, and the largest of all
  for (let attempt = 0; attempt < 3 && !existsSync(node); attempt++) {
    await execute('npm', ['ci', '--omit=dev', '--ignore-scripts', ...platform, ...network, ...quiet], { cwd: tree })
  }
  if (!existsSync(node)) throw new Error(`npm did not install node-linux-${processor}: see the newest file in ~/.npm/_logs.`)
  for (const { path, kind } of entriesOf(modules)) {
    if (kind === 'directory') continue
    if (!isNeeded(path)) rmSync(join(modules, path))
    // no other file of a package is executed as a program
    else chmodSync(join(modules, path), path.endsWith('/bin/node') ? 0o755 : 0o644)
  }
  for (const { path, kind } of entriesOf(modules).toReversed()) {
    if (kind === 'directory' && readdirSync(join(modules, path)).length === 0) rmdirSync(join(modules, path))
  }
  // npm links the executables of packages itself, except those for another architecture
  mkdirSync(join(modules, '.bin'))
  symlinkSync(relative(join(modules, '.bin'), node), join(modules, '.bin', 'node'))
}

/** Packages with types only, or only for building the page. */
const unneeded = /^(?:@types\/|@esbuild\/|(?:esbuild|vite|rolldown|preact|@preact\/.+)$)/

/** Files of one package that are not loaded: the used parts of Swagger UI are named in http/openapi/docs-page.ts. */
const unneededOf: Record<string, RegExp> = {
  'swagger-ui-dist': /^swagger-ui(?:-es-bundle.*|-standalone-preset)?\.js|\.txt$|^index\.(?:css|html)$|^oauth2/,
  'libphonenumber-js': /^(?:bundle|es6-modern)\//,
}

/** True if a file below node_modules is needed at run time. Licences are kept, whatever their extension. */
export function isNeeded(path: string): boolean {
  const { name, file } = locate(path)
  if (name === '.bin' || name === '.package-lock.json' || unneeded.test(name)) return false
  if (/^(?:licen[cs]e|copying|notice)/i.test(basename(file))) return !unneededOf[name]?.test(dirname(file) + '/')
  if (name.startsWith('node-linux-')) return file === 'bin/node' || file === 'package.json'
  if (unneededOf[name]?.test(file)) return false
  // Node.js runs no TypeScript below node_modules
  if (/\.(?:map|[cm]?tsx?|md|markdown|flow|tsbuildinfo)$/i.test(file) || basename(file).startsWith('.')) return false
  return !/^(?:tests?|__tests__|examples?|bench(?:mark)?s?|docs|coverage)\/|^(?:readme|changelog|history)\b/i.test(file)
}

/** The package of a path below node_modules, and the path inside of it. */
function locate(path: string): { name: string; file: string } {
  const words = path.split('/')
  const start = words.lastIndexOf('node_modules') + 1
  const end = start + (words[start]!.startsWith('@') ? 2 : 1)
  return { name: words.slice(start, end).join('/'), file: words.slice(end).join('/') }
}
