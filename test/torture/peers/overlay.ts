import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { ambient } from '../../support/ambient.ts'
import { stored } from '../../support/store.ts'

/** What is seen over the root of the machine. */
export interface Layer {
  /** Packages of Debian, unpacked. */
  packages: string[]
  /** Users that they would add. */
  users: string[]
  files: Record<string, string>
}

/**
 * Runs a program of packages that cannot be installed beside those that are. It sees the root of the machine below its layer, and this directory,
 * in which the layer is made, as it is; all that it starts ends with it.
 */
export async function spawnOver({ packages, users, files }: Layer, directory: string, command: string[]): Promise<ChildProcess> {
  const archives = await downloaded(packages)
  const [layer, root] = [join(directory, 'layer'), join(directory, 'root')]
  const numbered = users.map((name, index) => ({ name, id: 990 - index }))
  const all = {
    ...files,
    'etc/passwd': extended('/etc/passwd', ({ name, id }) => `${name}:x:${id}:${id}::/nonexistent:/usr/sbin/nologin\n`, numbered),
    'etc/group': extended('/etc/group', ({ name, id }) => `${name}:x:${id}:\n`, numbered),
  }
  for (const [path, content] of Object.entries(all)) {
    mkdirSync(dirname(join(layer, path)), { recursive: true })
    writeFileSync(join(layer, path), content)
  }
  mkdirSync(root)
  // the upper layer must be on a file system of its own
  const script = `set -e
mount -t tmpfs tmpfs "${root}"
mkdir "${root}/upper" "${root}/work" "${root}/whole"
for archive in "${archives}"/*.deb; do dpkg --extract "$archive" "${root}/upper"; done
# the root has links with these names
for name in bin sbin lib lib64; do
  [ ! -d "${root}/upper/$name" ] || { mkdir -p "${root}/upper/usr"; cp -a "${root}/upper/$name" "${root}/upper/usr/"; rm -r "${root}/upper/$name"; }
done
cp -r "${layer}/." "${root}/upper/"
mount -t overlay overlay -o "lowerdir=/,upperdir=${root}/upper,workdir=${root}/work" "${root}/whole"
for seen in /dev /proc "${directory}"; do mkdir -p "${root}/whole$seen"; mount --bind "$seen" "${root}/whole$seen"; done
# this shell stays, which ends with its parent: a program that changes its user does not
chroot "${root}/whole" "$@"
exit $?`
  const words = ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', script, 'sh', ...command]
  return spawn('unshare', words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...ambient, PATH: `${ambient['PATH']}:/usr/sbin:/sbin` },
  })
}

interface User {
  name: string
  id: number
}

function extended(path: string, line: (user: User) => string, users: User[]): string {
  return readFileSync(path, 'utf8') + users.map(line).join('')
}

/** A directory with the archives of packages of Debian, which stay from run to run. */
export async function downloaded(packages: string[]): Promise<string> {
  const place = stored('archives', createHash('sha256').update(packages.join(' ')).digest('hex').slice(0, 16))
  if (existsSync(place)) return place
  const part = `${place}.part`
  rmSync(part, { recursive: true, force: true })
  mkdirSync(part)
  await promisify(execFile)('apt-get', ['download', ...packages], { cwd: part })
  renameSync(part, place)
  return place
}
