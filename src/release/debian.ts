import { cpSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { placesOf } from '../install/places.ts'
import { commandText, packaged, unitFiles } from '../install/units.ts'
import { checksums, entriesOf, execute, normalize } from './archive.ts'
import type { Processor } from './packages.ts'

/** The path of the program in the package. */
const programPath = '/usr/lib/pillarbox'

/** Debian's names of architectures. */
export const architectures: Record<Processor, string> = { x64: 'amd64', arm64: 'arm64' }

const maintainer = 'Pillarbox contributors <maintainers@pillarbox.invalid>'

interface Release {
  /** The tree of the tarball. */
  tree: string
  processor: Processor
  version: string
  /** In seconds since 1970. */
  time: number
}

/**
 * Builds a Debian package of a release: the program in /usr/lib/pillarbox; units, user, command, manual page and completions in Debian's
 * directories. `work` is an empty directory; the timestamp of the archive is SOURCE_DATE_EPOCH of the environment.
 */
export async function buildPackage(release: Release, work: string, file: string): Promise<void> {
  const { tree, time } = release
  const program = join(work, programPath)
  mkdirSync(dirname(program), { recursive: true })
  await execute('cp', ['--archive', '--link', tree, program])
  for (const [path, text] of systemFiles()) put(work, path, text, path === packaged.command ? 0o755 : 0o644)
  // these lists are dpkg's own
  await execute('rm', ['-r', join(program, 'share'), join(program, 'SHA256SUMS')])
  cpSync(join(tree, 'share'), join(work, 'usr', 'share'), { recursive: true })
  renameSync(join(work, 'usr/share/zsh/site-functions'), join(work, 'usr/share/zsh/vendor-completions'))
  await addDocuments(release, work)
  const installed = entriesOf(work)
  mkdirSync(join(work, 'DEBIAN'))
  for (const script of ['postinst', 'prerm', 'postrm']) {
    put(work, `/DEBIAN/${script}`, readFileSync(join(import.meta.dirname, 'debian', script), 'utf8'), 0o755)
  }
  const files = installed.filter(({ kind }) => kind === 'file').map(({ path }) => path)
  put(work, '/DEBIAN/md5sums', await checksums(work, files, 'md5'))
  const kilobytes = installed.reduce((sum, { size }) => sum + Math.max(1, Math.ceil(size / 1024)), 0)
  put(work, '/DEBIAN/control', control(release, kilobytes))
  normalize(work, time)
  await execute('dpkg-deb', ['--root-owner-group', '-Zgzip', '-z6', '--build', work, file])
}

/** The units, the user and the command, by path: what `init` would write for a program at this path. */
function systemFiles(): [string, string][] {
  const places = { ...placesOf({}, { root: true, cwd: '/' }), ...packaged }
  return [...unitFiles(places, programPath), [packaged.command, commandText(places.config, programPath)]]
}

async function addDocuments({ tree, version, time }: Release, work: string): Promise<void> {
  const documents = '/usr/share/doc/pillarbox'
  put(work, `${documents}/copyright`, copyright(readFileSync(join(tree, 'LICENSE'), 'utf8')))
  const date = new Date(time * 1000).toUTCString().replace('GMT', '+0000')
  const changes = `pillarbox (${version}) stable; urgency=medium\n\n  * ${programPath}/CHANGELOG.md lists the changes.\n\n -- ${maintainer}  ${date}\n`
  put(work, `${documents}/changelog`, changes)
  for (const [name, target] of [
    ['docs', 'docs'],
    ['examples', 'config'],
  ] as const) {
    symlinkSync(relative(documents, join(programPath, target)), join(work, documents, name))
  }
  const man = join(work, 'usr/share/man/man1')
  await execute('gzip', ['-9', '--no-name', join(work, documents, 'changelog'), join(man, 'pillarbox.1')])
}

function control({ version, processor }: Release, kilobytes: number): string {
  // every Debian with apt has those libraries; Node.js 24 is built against glibc 2.28
  return `Package: pillarbox
Version: ${version}
Architecture: ${architectures[processor]}
Maintainer: ${maintainer}
Installed-Size: ${kilobytes}
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6
Section: mail
Priority: optional
Description: mail server and API that gives software agents an identity
 Pillarbox gives software agents e-mail addresses that receive real mail, a REST API to read it, and one event log. It is one process with one data directory, and includes its Node.js.
`
}

function copyright(license: string): string {
  const text = license
    .trimEnd()
    .split('\n')
    .map((line) => (line === '' ? ' .' : ` ${line}`))
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Comment: The licences of the packages in ${programPath}/node_modules lie beside them;
 ${programPath}/sbom.cdx.json lists them all.

Files: *
Copyright: see the licence
License: Expat
${text.join('\n')}
`
}

function put(root: string, path: string, text: string, mode = 0o644): void {
  mkdirSync(join(root, dirname(path)), { recursive: true })
  writeFileSync(join(root, path), text, { mode })
}
