import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, openSync, readdirSync, readFileSync, readSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { beside } from '../../src/http/manual/manual.ts'
import { placesOf } from '../../src/install/places.ts'
import { packaged, unitFiles } from '../../src/install/units.ts'
import { entriesOf } from '../../src/release/archive.ts'
import { isNeeded } from '../../src/release/packages.ts'
import { version } from '../../src/version.ts'
import { deliver, message } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { peer } from '../support/peer.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { run, succeed } from '../support/program.ts'
import { checkoutIn, makeRelease, release } from '../support/release.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

let made = ''
let place = ''

/** The tree of one tarball. */
const tree = (processor: string): string => join(place, `pillarbox-${version}-linux-${processor}`)

beforeAll(async () => {
  made = await release()
  place = mkdtempSync(join(tmpdir(), 'pillarbox-release-'))
  for (const processor of ['x64', 'arm64']) {
    execFileSync('tar', ['-xzf', join(made, `pillarbox-${version}-linux-${processor}.tar.gz`), '-C', place])
  }
})

afterAll(() => {
  if (place !== '') rmSync(place, { recursive: true, force: true })
})

/** The machine that an ELF file is for (elf(5), e_machine): 62 is x86-64, 183 is AArch64. */
function machineOf(file: string): number {
  const head = Buffer.alloc(20)
  readSync(openSync(file, 'r'), head, 0, 20, 0)
  expect(head.subarray(0, 4).toString('latin1')).toBe('\u007FELF')
  return head.readUInt16LE(18)
}

test('a command line that cannot be read is answered with what would be right', async () => {
  const { code, errors } = await run('bin/with-node', ['node', 'src/release/run.ts', '--outptu', made])
  expect(code).toBe(2)
  expect(errors).toContain("Unknown option '--outptu'")
  expect(errors.trimEnd().split('\n').at(-1)).toBe('Usage: npm run release -- [--output DIRECTORY]')
})

test('made again, in another directory, time zone, language and umask, it is the same to the byte', async () => {
  const directory = folder()
  const checkout = join(directory, 'another', 'checkout')
  await checkoutIn(checkout)
  const former = process.umask(0o077)
  try {
    await makeRelease(checkout, join(directory, 'made'), {
      TZ: 'Asia/Tokyo',
      LC_ALL: 'C',
      HOME: process.env['HOME'] ?? directory,
    })
  } finally {
    process.umask(former)
  }
  const sums = readFileSync(join(directory, 'made', 'SHA256SUMS'), 'utf8')
  expect(sums).toBe(readFileSync(join(made, 'SHA256SUMS'), 'utf8'))
  await succeed('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: join(directory, 'made') })
})

test.each([
  ['x64', 62],
  ['arm64', 183],
])('the tarball for %s has everything for that processor, and nothing that only builds', async (processor, machine) => {
  const root = tree(processor)
  await succeed('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: root })
  const entries = entriesOf(root)
  const files = new Set(entries.map(({ path }) => path))
  for (const name of [
    'LICENSE',
    'bin/pillarbox',
    'config/pillarbox.example.yaml',
    'dist/page/index.html',
    'docker/compose.yaml',
    'docs/install.md',
    'share/bash-completion/completions/pillarbox',
    'share/man/man1/pillarbox.1',
    'share/zsh/site-functions/_pillarbox',
    'src/main.ts',
    'systemd/pillarbox.service',
    `node_modules/node-linux-${processor}/LICENSE`,
    ...beside,
  ]) {
    expect(files).toContain(name)
  }
  expect(machineOf(join(root, 'node_modules', '.bin', 'node'))).toBe(machine)
  expect(readdirSync(join(root, 'node_modules')).filter((name) => name.startsWith('node-linux-'))).toEqual([
    `node-linux-${processor}`,
  ])
  const strange =
    /(?:^|\/)(?:vite|vitest|esbuild|typescript|\.cache|\.git|package-lock\.json)(?:\/|$)|\.map$|^(?:test|bench|src\/release|src\/web\/browser)\/|\.d\.ts$/
  // the pages of the clients alone, of which one is for that language
  const clients = new Set(['clients', 'clients/typescript', 'clients/python', 'clients/examples'])
  expect([...files].filter((name) => /^clients(?:\/|$)/.test(name) && !clients.has(name) && !beside.includes(name))).toEqual([])
  expect([...files].filter((name) => strange.test(name) && !name.startsWith('clients/'))).toEqual([])
  expect(entries.reduce((sum, { size }) => sum + Math.ceil(size / 4096) * 4096, 0)).toBeLessThan(250e6)
})

test('every package keeps its licence, and the bill of materials names each of them, and those that are in the page', () => {
  const root = tree('x64')
  const packages = entriesOf(join(root, 'node_modules')).filter(({ path }) =>
    /(?:^|\/node_modules\/)(?:@[^/]+\/)?[^/@]+\/package\.json$/.test(path),
  )
  expect(packages.length).toBeGreaterThan(100)
  const named = packages.map(({ path }) => {
    const { name, version: one } = JSON.parse(readFileSync(join(root, 'node_modules', path), 'utf8')) as Record<string, string>
    return `${name}@${one}`
  })
  const { components } = JSON.parse(readFileSync(join(root, 'sbom.cdx.json'), 'utf8')) as {
    components: { name: string; version: string; licenses: unknown[]; hashes: unknown[] }[]
  }
  const listed = components.map(({ name, version: one }) => `${name}@${one}`)
  expect(listed).toEqual(expect.arrayContaining([...named, 'preact@11.2.0', '@preact/signals@2.11.4']))
  expect(listed.filter((name) => !named.includes(name) && !name.includes('preact'))).toEqual([])
  expect(components.filter(({ licenses, hashes }) => licenses.length === 0 || hashes.length === 0)).toEqual([])
})

test('unpacked, with no Node.js and no npm on the machine, it runs a box with its page', async () => {
  const directory = folder()
  // as it is installed: under a link that an upgrade switches
  const link = join(place, 'pillarbox')
  symlinkSync(`pillarbox-${version}-linux-x64`, link)
  const program = join(link, 'bin', 'pillarbox')
  const nothing = { PATH: '/usr/bin:/bin' }
  const env = { ...testBox, ...nothing, PILLARBOX_HTTP__LISTEN: '127.0.0.1:0', PILLARBOX_SMTP__LISTEN: '127.0.0.1:0' }
  const names = ['--domain', 'agents.test', '--hostname', 'mx.agents.test']
  const data = { PILLARBOX_DATA_DIR: join(directory, 'data') }
  const said = await succeed(program, ['init', '--yes', '--json', '--offline', ...names], {
    env: { ...nothing, ...data },
    cwd: directory,
  })
  const { first_key } = JSON.parse(said.toString()) as { first_key: string }
  const unit = readFileSync(join(directory, 'data', 'systemd', 'pillarbox.service'), 'utf8')
  expect(unit).toContain(`ExecStart=${link}/bin/pillarbox serve\n`)
  const box = boxProcess({ ...env, ...data }, ['serve'], directory, program)
  const { api, smtp } = (await box.said('started')) as unknown as { api: string; smtp: { host: string; port: number }[] }
  const page = await (await fetch(`${api}/`)).text()
  const script = /src="([^"]+\.js)"/.exec(page)![1]!
  expect((await fetch(new URL(script, api))).status).toBe(200)
  for (const path of [
    '/llms.txt',
    '/docs/README.md',
    '/docs/README',
    '/docs',
    '/docs/swagger-ui-bundle.js',
    '/docs/swagger-ui.css',
    '/v1/openapi.json',
  ]) {
    expect([path, (await fetch(`${api}${path}`)).status]).toEqual([path, 200])
  }
  const headers = { Authorization: `Bearer ${first_key}`, 'Content-Type': 'application/json' }
  const answer = await fetch(`${api}/v1/identities`, { method: 'POST', headers, body: '{"name":"Ada"}' })
  const { email } = (await answer.json()) as { email: string }
  expect(await deliver(smtp[0]!, { to: email, raw: message({ To: email, Subject: 'Unpacked' }, 'Hello.') })).toMatch(/^250 /)
  expect(await box.end('SIGTERM')).toBe(0)
})

test('what it does not use at once can be loaded, too: every package it depends on', async () => {
  const root = tree('x64')
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  // one has no main module, but modules that are loaded above; and what builds the page is not shipped
  const names = Object.keys(dependencies).filter((name) => name !== '@noble/hashes' && isNeeded(`${name}/package.json`))
  const code = `for (const name of ${JSON.stringify(names)}) await import(name); process.stdout.write('loaded')`
  const node = join(root, 'node_modules', '.bin', 'node')
  expect((await succeed(node, ['--input-type=module', '-e', code], { cwd: root })).toString()).toBe('loaded')
})

test.each([
  ['amd64', 'x64'],
  ['arm64', 'arm64'],
])(
  'the Debian package for %s needs the C library only, and has the units where Debian has them',
  async (architecture, processor) => {
    const dpkg = peer('dpkg-deb', 'apt-get install dpkg')
    if (dpkg === undefined) return
    const file = join(made, `pillarbox_${version}_${architecture}.deb`)
    const field = async (name: string): Promise<string> => (await succeed(dpkg, ['--field', file, name])).toString().trim()
    expect(await field('Architecture')).toBe(architecture)
    // the last two are the compiler's part of it, and in every Debian
    expect(await field('Depends')).toBe('libc6 (>= 2.28), libgcc-s1, libstdc++6')
    const root = folder()
    await succeed(dpkg, ['--raw-extract', file, root])
    await succeed('md5sum', ['--check', '--quiet', 'DEBIAN/md5sums'], { cwd: root })
    for (const script of ['postinst', 'prerm', 'postrm']) await succeed('sh', ['-n', join(root, 'DEBIAN', script)])
    const units = unitFiles({ ...placesOf({}, { root: true, cwd: '/' }), ...packaged }, '/usr/lib/pillarbox')
    for (const [path, text] of units) {
      expect(text).not.toContain('/opt/')
      expect(readFileSync(join(root, path), 'utf8')).toBe(text)
    }
    for (const path of ['bin/pillarbox', 'share/man/man1/pillarbox.1.gz', 'share/zsh/vendor-completions/_pillarbox']) {
      expect([path, existsSync(join(root, 'usr', path))]).toEqual([path, true])
    }
    expect(machineOf(join(root, 'usr/lib/pillarbox/node_modules/.bin/node'))).toBe(processor === 'x64' ? 62 : 183)
    // owners as well
    const listing = (await succeed(dpkg, ['--contents', file])).toString().trim().split('\n')
    expect(listing.filter((line) => !line.includes(' root/root '))).toEqual([])
  },
)
