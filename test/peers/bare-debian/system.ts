import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stored } from '../../support/store.ts'
import { long, must } from './programs.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const suite = 'bookworm'
/** Where the commands inside find what npm fetched before. */
export const cacheInside = '/var/cache/npm'
/** What npm fetched for this lock file and by the script that ends an install, on this machine; never written to once it is whole, as a failed npm damages its cache. */
const npmStore = stored(
  'npm',
  digest(['package-lock.json', 'bin/prepare'].map((file) => readFileSync(join(root, file), 'utf8')).join('\n')),
)
const certificates = '/usr/local/share/registry.crt'

/**
 * A bare Debian that is not changed where it is kept: what is written lies in a layer of its own. Mounted it is only where it runs, in
 * a mount namespace that ends with it.
 */
export class System {
  /** Of files that are put there before it runs. */
  readonly layer: string
  readonly #place: string
  readonly #below: readonly string[]

  constructor(place: string, below: readonly string[]) {
    this.#place = place
    this.#below = below
    this.layer = join(place, 'layer')
    for (const folder of [this.layer, join(place, 'work'), this.mounted]) mkdirSync(folder, { recursive: true })
  }

  /** Where `mounting` mounts it. */
  get mounted(): string {
    return join(this.#place, 'system')
  }

  /** The line of a shell that mounts it, with the packages that were fetched before. */
  get mounting(): string {
    const options = `lowerdir=${this.#below.join(':')},upperdir=${this.layer},workdir=${join(this.#place, 'work')}`
    const cache = join(this.mounted, cacheInside)
    const mounts = [`mount -t overlay overlay -o '${options}' '${this.mounted}'`, `mkdir -p '${cache}'`]
    if (existsSync(npmStore)) {
      const [upper, work] = [join(this.#place, 'npm'), join(this.#place, 'npm-work')]
      mounts.push(`mkdir -p '${upper}' '${work}'`)
      mounts.push(`mount -t overlay overlay -o 'lowerdir=${npmStore},upperdir=${upper},workdir=${work}' '${cache}'`)
    }
    return mounts.join(' && ')
  }

  /** Takes a file away before it runs: a character device 0/0 in the layer stands for none (overlayfs, "whiteouts"). */
  async hide(path: string): Promise<void> {
    mkdirSync(dirname(join(this.layer, path)), { recursive: true })
    await must('mknod', [join(this.layer, path), 'c', '0', '0'])
  }

  /** Puts a file there before it runs. */
  put(path: string, text: string | Buffer): void {
    mkdirSync(dirname(join(this.layer, path)), { recursive: true })
    writeFileSync(join(this.layer, path), text)
  }
}

/** A directory for systems; removed by `removePlace`. */
export function makePlace(): string {
  return mkdtempSync(join(tmpdir(), 'pillarbox-bare-'))
}

export async function removePlace(place: string): Promise<void> {
  await must('rm', ['-rf', place])
}

/**
 * A bare Debian below `place` in which root ran these commands (of apt, as the pages print them). What the commands made is kept from
 * run to run; they have the network of this machine, and its mirrors and proxies.
 */
export async function bareDebian(place: string, name: string, commands: readonly string[] = []): Promise<System> {
  return new System(join(place, name), await layers(commands))
}

const making = new Map<string, Promise<unknown>>()

/** Makes something once for all tests that ask for it. */
function once<Made>(name: string, make: () => Promise<Made>): Promise<Made> {
  const made = (making.get(name) as Promise<Made> | undefined) ?? make()
  making.set(name, made)
  return made
}

/** The layers of a system, the uppermost first. */
function layers(commands: readonly string[]): Promise<string[]> {
  return once(commands.join('\n'), () => makeLayers(commands))
}

async function makeLayers(commands: readonly string[]): Promise<string[]> {
  const kept = stored(suite, commands.length === 0 ? undefined : digest(commands.join('\n')))
  const below = commands.length === 0 ? [] : await layers([])
  if (existsSync(kept)) return [kept, ...below]
  const made = mkdtempSync(`${kept}.part-`)
  let layer = made
  if (commands.length === 0) {
    const mirror = await mirrorOfThisMachine()
    await must('debootstrap', ['--variant=minbase', '--include=systemd,systemd-sysv', suite, made, ...mirror])
  } else {
    const system = new System(made, below)
    layer = system.layer
    system.put('/etc/apt/apt.conf.d/00proxy', await proxiesOfApt())
    const clean = 'apt-get clean && rm -rf /var/lib/apt/lists/* /etc/apt/apt.conf.d/00proxy'
    await inHostNetwork(system, [...commands, clean].join('\n'))
  }
  // where another run was faster, its layer is as good
  if (!existsSync(kept)) renameSync(layer, kept)
  if (layer !== made || existsSync(made)) rmSync(made, { recursive: true, force: true })
  chmodSync(kept, 0o755)
  return [kept, ...below]
}

/** The first one that apt of this machine would ask for the suite; nothing where it knows none, and debootstrap has its own. */
async function mirrorOfThisMachine(): Promise<string[]> {
  const wanted = ['Created-By: Packages', `Codename: ${suite}`, 'Component: main']
  const { code, text } = await long('apt-get', ['indextargets', '--format', '$(REPO_URI)', ...wanted])
  const first = text.split('\n').find((line) => /^https?:\/\//.test(line))
  return code === 0 && first !== undefined ? [first] : []
}

async function proxiesOfApt(): Promise<string> {
  const { text } = await long('apt-config', ['dump'])
  return text
    .split('\n')
    .filter((line) => /^Acquire::https?::Proxy/i.test(line))
    .map((line) => `${line}\n`)
    .join('')
}

/** Runs a script of root's in a system that is not booted, with the network of this machine; npm fills the cache. */
async function inHostNetwork(system: System, script: string, cache?: string): Promise<void> {
  const env = await environment(system, 'online')
  const at = system.mounted
  const steps = [
    'set -e',
    system.mounting,
    ...(cache === undefined ? [] : [`mkdir -p '${at}${cacheInside}' && mount --bind '${cache}' '${at}${cacheInside}'`]),
    `mount -t proc proc '${at}/proc'`,
    `mount --rbind /dev '${at}/dev'`,
    `cp -L /etc/resolv.conf '${at}/etc/resolv.conf'`,
    `exec chroot '${at}' /bin/sh -ec "$SCRIPT"`,
  ]
  const words = ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', steps.join('\n')]
  await must('unshare', words, { ...env, SCRIPT: script })
}

/**
 * The environment of commands inside, for npm too: of this machine it takes the registry, its certificates and the proxies. Offline,
 * npm installs from what was fetched before, and never asks anybody.
 */
export async function environment(system: System, network: 'online' | 'offline'): Promise<Record<string, string>> {
  const [registry, cafile] = [
    await npmSetting('registry'),
    (await npmSetting('cafile')) || (process.env['NODE_EXTRA_CA_CERTS'] ?? ''),
  ]
  if (cafile !== '') system.put(certificates, readFileSync(cafile))
  const proxies = Object.entries(process.env).filter(([name]) => /^(https?|no)_proxy$/i.test(name)) as [string, string][]
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: '/root',
    LANG: 'C.UTF-8',
    DEBIAN_FRONTEND: 'noninteractive',
    npm_config_cache: cacheInside,
    npm_config_progress: 'false',
    npm_config_update_notifier: 'false',
    ...(registry === '' ? {} : { npm_config_registry: registry }),
    ...(cafile === '' ? {} : { npm_config_cafile: certificates }),
    ...(network === 'offline' ? { npm_config_offline: 'true' } : Object.fromEntries(proxies)),
  }
}

/** Of npm of this machine; empty where it is not set. */
async function npmSetting(name: string): Promise<string> {
  const { code, text } = await long('npm', ['config', 'get', name, '--loglevel=silent'])
  const value = text.trim()
  return code !== 0 || value === 'null' || value === 'undefined' ? '' : value
}

/** Has everything that the lock file names fetched, by the npm of a system with a repository; once for each lock file. */
export function fetchPackages(system: System, repository: string): Promise<void> {
  return once(npmStore, () => fetchAll(system, repository))
}

async function fetchAll(system: System, repository: string): Promise<void> {
  if (existsSync(npmStore)) return
  const made = mkdtempSync(`${npmStore}.part-`)
  const script = `git clone -q ${repository} /var/tmp/fetch\ncd /var/tmp/fetch\nnpm ci\nrm -r /var/tmp/fetch`
  await inHostNetwork(system, script, made)
  if (existsSync(npmStore)) rmSync(made, { recursive: true })
  else renameSync(made, npmStore)
}

/** The tree as it is here, committed or not, as the repository of a system; answers its path there. */
export async function makeRepository(system: System): Promise<string> {
  const inside = '/srv/pillarbox.git'
  const git = (...words: string[]): Promise<string> =>
    must('git', ['--git-dir', join(system.layer, inside), '--work-tree', root, ...words])
  mkdirSync(join(system.layer, 'srv'))
  await git('init', '-q', '-b', 'main')
  await git('config', 'core.bare', 'true')
  // it stands for one that lies elsewhere, where it is no matter who owns it
  system.put('/etc/gitconfig', '[safe]\n\tdirectory = *\n')
  await git('add', '-A')
  await git('-c', 'user.name=Ada', '-c', 'user.email=ada@sender.test', 'commit', '-q', '-m', 'The tree as it is')
  return inside
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}
