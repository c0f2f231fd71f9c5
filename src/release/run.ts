import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { checksums, entriesOf, execute, packTarball } from './archive.ts'
import { architectures, buildPackage } from './debian.ts'
import { buildPage, makeTree, trackedFiles } from './tree.ts'
import { processors } from './packages.ts'

// npm run release: tarballs and Debian packages of this checkout, in dist/release (src/README.md)

const checkout = resolve(import.meta.dirname, '..', '..')
const output = resolve(outputArgument())
const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { version: string }
const time = await sourceTime()
// for dpkg-deb
process.env['SOURCE_DATE_EPOCH'] = String(time)
const withPackages = (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, 'dpkg-deb')))
mkdirSync(dirname(output), { recursive: true })
// beside the output, to be renamed
const made = mkdtempSync(`${output}.`)
const work = mkdtempSync(join(tmpdir(), 'pillarbox-release-'))
try {
  const files = await trackedFiles(checkout)
  const page = await buildPage(checkout, files, join(work, 'page'))
  const results = await Promise.all(
    processors.map(async (processor) => {
      const name = `pillarbox-${version}-linux-${processor}`
      const tree = join(work, processor, name)
      await makeTree({ checkout, files, page, time }, processor, tree)
      const tarball = `${name}.tar.gz`
      await packTarball(join(work, processor), name, join(made, tarball), time)
      const size = entriesOf(tree).reduce((sum, entry) => sum + entry.size, 0)
      process.stderr.write(`${tarball}: ${megabytes(statSync(join(made, tarball)).size)}, unpacked ${megabytes(size)}\n`)
      if (!withPackages) return [tarball]
      const archive = `pillarbox_${version}_${architectures[processor]}.deb`
      const root = join(work, processor, 'debian')
      mkdirSync(root)
      await buildPackage({ tree, processor, version, time }, root, join(made, archive))
      process.stderr.write(`${archive}: ${megabytes(statSync(join(made, archive)).size)}\n`)
      return [tarball, archive]
    }),
  )
  writeFileSync(join(made, 'SHA256SUMS'), await checksums(made, results.flat().toSorted()))
  chmodSync(made, 0o755)
  rmSync(output, { recursive: true, force: true })
  renameSync(made, output)
  if (!withPackages) process.stderr.write('No Debian packages were built: dpkg-deb is not installed.\n')
  process.stderr.write(`The release is in ${output}.\n`)
} finally {
  for (const directory of [work, made]) rmSync(directory, { recursive: true, force: true })
}

/** The output directory. A wrong command line ends the process with 2 and a message. */
function outputArgument(): string {
  try {
    return parseArgs({ options: { output: { type: 'string', default: join(checkout, 'dist', 'release') } } }).values.output
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\nUsage: npm run release -- [--output DIRECTORY]\n`)
    return process.exit(2)
  }
}

/** SOURCE_DATE_EPOCH (reproducible-builds.org), else the time of the commit. */
async function sourceTime(): Promise<number> {
  const given = process.env['SOURCE_DATE_EPOCH']
  const text = given ?? (await execute('git', ['log', '-1', '--format=%ct'], { cwd: checkout }))
  if (!/^\d+\s*$/.test(text)) throw new Error(`SOURCE_DATE_EPOCH must be seconds since 1970, not "${text}".`)
  return Number(text)
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
