import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { checksums, entriesOf, execute, normalize } from './archive.ts'
import { installPackages, type Processor } from './packages.ts'
import { bill, closure, type LockFile } from './sbom.ts'

interface Source {
  /** The checkout, with its packages installed. */
  checkout: string
  /** Files under version control, relative to it. */
  files: string[]
  page: string
  /** The time of every file, in seconds since 1970. */
  time: number
}

/** Directories and files of the checkout in a release, without build tools. */
const shipped =
  /^(?:bin|config|docker|docs|src|systemd)\/|^clients\/(?:\w+\/README\.md|examples\/[\w-]+\.mjs)$|^(?:CHANGELOG\.md|CONTRIBUTING\.md|LICENSE|README\.md|package\.json)$/
const building = /^src\/(?:release|web\/browser)\//

/** Files under version control, and new ones that are not ignored. Throws without git or a checkout. */
export async function trackedFiles(checkout: string): Promise<string[]> {
  const listed = await execute('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: checkout })
  return listed.split('\0').filter((name) => name !== '' && existsSync(join(checkout, name)))
}

/** Builds the page from the files under version control alone; returns its directory, in `work`. */
export async function buildPage(checkout: string, files: readonly string[], work: string): Promise<string> {
  for (const file of files.filter((name) => /^(?:bin|src)\/|^(?:package|tsconfig)[^/]*\.json$/.test(name)))
    copy(checkout, work, file)
  // sources are copied, as asset names depend on their paths
  const modules = join(work, 'node_modules')
  mkdirSync(modules)
  for (const name of readdirSync(join(checkout, 'node_modules'))) {
    const from = join(checkout, 'node_modules', name)
    if (/^@?preact$/.test(name)) cpSync(from, join(modules, name), { recursive: true })
    else symlinkSync(from, join(modules, name))
  }
  await execute('npm', ['run', '--silent', 'prepare'], { cwd: work })
  const page = join(work, 'dist', 'page')
  if (!existsSync(join(page, 'index.html'))) throw new Error('The page was not built: run npm ci first.')
  return page
}

/** Creates the tree of a release for one architecture in an empty directory. */
export async function makeTree({ checkout, files, page, time }: Source, processor: Processor, tree: string): Promise<void> {
  for (const file of files.filter((name) => shipped.test(name) && !building.test(name))) copy(checkout, tree, file)
  cpSync(page, join(tree, 'dist', 'page'), { recursive: true })
  const lockFile = join(tree, 'package-lock.json')
  copyFileSync(join(checkout, 'package-lock.json'), lockFile)
  await installPackages(tree, processor)
  const lock = JSON.parse(readFileSync(lockFile, 'utf8')) as LockFile
  rmSync(lockFile)
  const places = Object.keys(lock.packages).filter((place) => place !== '' && existsSync(join(tree, place)))
  // parts of these are in the page
  const inPage = closure(lock, ['@preact/signals', 'preact'])
  writeFileSync(join(tree, 'sbom.cdx.json'), bill(lock, [...new Set([...places, ...inPage])].toSorted(), time))
  await addShared(checkout, tree)
  const regular = entriesOf(tree).filter(({ kind }) => kind === 'file')
  writeFileSync(
    join(tree, 'SHA256SUMS'),
    await checksums(
      tree,
      regular.map(({ path }) => path),
    ),
  )
  normalize(tree, time)
}

/** The manual page and the shell completions, in their directories below a prefix. */
async function addShared(checkout: string, tree: string): Promise<void> {
  const shared = join(tree, 'share')
  mkdirSync(join(shared, 'man', 'man1'), { recursive: true })
  copyFileSync(join(checkout, 'docs', 'pillarbox.1'), join(shared, 'man', 'man1', 'pillarbox.1'))
  const completions = {
    bash: 'bash-completion/completions/pillarbox',
    zsh: 'zsh/site-functions/_pillarbox',
    fish: 'fish/vendor_completions.d/pillarbox.fish',
  }
  for (const [shell, path] of Object.entries(completions)) {
    mkdirSync(join(shared, dirname(path)), { recursive: true })
    writeFileSync(join(shared, path), await execute(join(checkout, 'bin', 'pillarbox'), ['completion', shell]))
  }
}

function copy(from: string, to: string, file: string): void {
  mkdirSync(join(to, dirname(file)), { recursive: true })
  cpSync(join(from, file), join(to, file), { verbatimSymlinks: true })
}
