import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { loadConfig } from '../../src/config.ts'
import { version } from '../../src/version.ts'
import { folder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { run, succeed } from '../support/program.ts'
import { release } from '../support/release.ts'

vi.setConfig({ testTimeout: 600_000 })

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string): string => readFileSync(join(root, file), 'utf8')

/** The instructions of a Dockerfile, lines that go on joined. */
function instructions(): [string, string][] {
  return read('docker/Dockerfile')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => [line.split(' ', 1)[0]!, line.slice(line.indexOf(' ') + 1)])
}

const all = (name: string): string[] => instructions().flatMap(([one, rest]) => (one === name ? [rest] : []))

test('the image is an unpacked release on a base that is pinned: every file of it, and nothing else', async () => {
  expect(all('FROM')).toEqual([expect.stringMatching(/^debian:bookworm-slim@sha256:[0-9a-f]{64}$/)])
  expect(all('COPY')).toEqual(['. .'])
  // as Docker does it: what is not ignored is copied, and then checked
  const directory = folder()
  const file = join(await release(), `pillarbox-${version}-linux-x64.tar.gz`)
  await succeed('tar', ['-xzf', file, '-C', directory, '--strip-components=1'])
  const [first, ...named] = read('docker/Dockerfile.dockerignore').trim().split('\n')
  expect(first).toBe('*')
  const kept = named.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  expect(readdirSync(directory).toSorted()).toEqual(kept.toSorted())
  const { PATH = '' } = process.env
  const check = (): Promise<unknown> => succeed('sh', ['-ec', all('RUN').at(-1)!], { cwd: directory, env: { PATH } })
  await check()
  // these are edited for a box of one's own; the program is as it was released
  for (const name of ['docker/compose.yaml', 'docker/compose-several.yaml', 'config/haproxy.cfg.example'])
    appendFileSync(join(directory, name), '# with names of my own\n')
  await check()
  appendFileSync(join(directory, 'src/main.ts'), '\n')
  await expect(check()).rejects.toThrow('src/main.ts: FAILED')
})

test('the image starts the box as npm start does, without rights, and ends it by itself when told to', () => {
  const words = [...JSON.parse(all('ENTRYPOINT')[0]!), ...JSON.parse(all('CMD')[0]!)]
  expect(`exec ${words.join(' ')}`).toBe(JSON.parse(read('package.json')).scripts.start)
  expect(all('USER')).toEqual(['pillarbox'])
  expect(all('STOPSIGNAL')).toEqual(['SIGTERM'])
  expect(JSON.parse(all('VOLUME')[0]!)).toEqual(['/var/lib/pillarbox', '/var/lib/pillarbox-keys', '/var/backups/pillarbox'])
})

test('its health is asked without Node.js, and is what the box says', async () => {
  expect(all('HEALTHCHECK')[0]).toContain('CMD ["docker/health"]')
  const program = join(root, 'docker', 'health')
  const port = await freePort()
  const directory = folder()
  const env = { PILLARBOX_HTTP__LISTEN: `127.0.0.1:${port}`, PILLARBOX_DATA_DIR: join(directory, 'data') }
  expect((await run(program, [], { env })).code).toBe(1)
  const box = boxProcess({ ...testBox, ...env })
  await box.said('started')
  // a PATH without node: the command itself is not reached
  const trace = await run('strace', ['-f', '-e', 'trace=execve', program], { env })
  expect(trace.code).toBe(0)
  expect(trace.errors).not.toContain('bin/pillarbox')
  expect(await box.end('SIGTERM')).toBe(0)
  expect((await run(program, [], { env })).code).toBe(1)
})

test('where the API is at another place, health is what the command says', async () => {
  const directory = folder()
  const env = { PILLARBOX_DATA_DIR: join(directory, 'data') }
  const box = boxProcess({ ...testBox, ...env })
  await box.said('started')
  const wrong = `127.0.0.1:${await freePort()}`
  const { code, output } = await run(join(root, 'docker', 'health'), [], { env: { ...env, PILLARBOX_HTTP__LISTEN: wrong } })
  expect([code, output.toString()]).toEqual([0, 'The box is ready.\n'])
  expect(await box.end('SIGTERM')).toBe(0)
})

test('the nightly service runs its command at the time of day, also after a failure, and ends when told to', async () => {
  const directory = folder()
  const waits = join(directory, 'waits')
  // a clock of its own: two days pass at once, the third never ends
  const sleep = `#!/bin/sh\necho "$1" >>'${waits}'\n[ "$(wc -l <'${waits}')" -le 2 ] || exec /bin/sleep 1000\n`
  writeFileSync(join(directory, 'sleep'), sleep, { mode: 0o755 })
  const begun = Math.floor(Date.now() / 1000)
  const child = spawn(join(root, 'docker', 'nightly'), ['03:17', 'sh', '-c', 'echo run; exit 3'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PATH: `${directory}:${process.env['PATH']}` },
  })
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  await vi.waitFor(() => expect(readFileSync(waits, 'utf8').match(/\n/g)).toHaveLength(3), { timeout: 100_000 })
  const ended = Math.ceil(Date.now() / 1000)
  expect(output).toBe('run\nrun\n')
  expect(errors.match(/ended with 3; it is run again in 24 hours\./g)).toHaveLength(2)
  for (const wait of readFileSync(waits, 'utf8').trim().split('\n').map(Number)) {
    expect(wait).toBeGreaterThan(0)
    expect(wait).toBeLessThanOrEqual(86_400)
    // whenever it looked at the clock in between, it waits until 03:17 UTC
    const early = (begun + wait - (3 * 60 + 17) * 60) % 86_400
    expect(Math.min(early, Math.abs(early - 86_400))).toBeLessThanOrEqual(ended - begun)
  }
  child.kill('SIGTERM')
  expect(await once(child, 'close')).toEqual([0, null])
})

test('compose.yaml builds it, keeps data and keys apart, and shows the API to this machine only', () => {
  const { name, services, volumes } = parse(read('docker/compose.yaml'), { merge: true })
  const { build, ports, volumes: mounts, read_only, cap_drop } = services.pillarbox
  expect(read(join('docker', build.context, build.dockerfile))).toBe(read('docker/Dockerfile'))
  const settings = all('ENV')[0]!
  expect(settings).toContain('PILLARBOX_SMTP__LISTEN=:2525')
  expect(settings).toContain('PILLARBOX_HTTP__LISTEN=:8080')
  expect(ports).toEqual(['25:2525', '127.0.0.1:8080:8080'])
  expect(mounts.map((mount: string) => mount.split(':')[1])).toEqual(JSON.parse(all('VOLUME')[0]!))
  expect(mounts.map((mount: string) => mount.split(':')[0])).toEqual(Object.keys(volumes))
  expect(mounts).toEqual(services.backup.volumes)
  expect(name).toBe('pillarbox')
  expect(services.backup.command).toEqual(['bin/pillarbox', 'backup', '--auto'])
  expect(services.backup.entrypoint[0]).toBe('docker/nightly')
  for (const { logging, image } of [services.pillarbox, services.backup]) {
    expect([image, logging.options]).toEqual(['pillarbox', { 'max-size': '50m', 'max-file': '5' }])
  }
  expect([read_only, cap_drop]).toEqual([true, ['ALL']])
})

test('compose-several.yaml has the addresses and ports of the example of HAProxy, and settings that a box takes', async () => {
  const { services, networks, secrets } = parse(read('docker/compose-several.yaml'), { merge: true })
  const example = read('config/haproxy.cfg.example')
  const addressOf = (name: string): string => services[name].networks.inside.ipv4_address
  expect(networks.inside.ipam.config).toEqual([{ subnet: '10.0.0.0/24' }])
  const ports = [...example.matchAll(/bind :::(\d+) v4v6/g)].map(([, port]) => `${port}:${port}`)
  expect(services.haproxy.ports.toSorted()).toEqual(ports.toSorted())
  expect(services.haproxy.volumes[0]).toMatch(/^\.\.\/config\/haproxy\.cfg\.example:/)
  const { one, backup } = services
  expect([backup.volumes, backup.entrypoint[0]]).toEqual([one.volumes, 'docker/nightly'])
  for (const { logging } of Object.values<typeof one>(services)) expect(logging.options['max-size']).toBe('50m')
  for (const name of ['one', 'two']) {
    expect(example).toContain(`server ${name} ${addressOf(name)}:25 `)
    const { environment, volumes, build, hostname } = services[name]
    // by which the boxes know each other, whatever container they are in
    expect(hostname).toBe(name)
    expect(read(join('docker', build.context, build.dockerfile))).toBe(read('docker/Dockerfile'))
    expect(volumes.map((mount: string) => mount.split(':')[1])).toEqual(JSON.parse(all('VOLUME')[0]!))
    const directory = folder()
    const made = join(directory, 'made')
    // the block of the page, in a folder of the test, as no user of it is the container's
    const [, block] = /### In containers\n[^]*?```sh\n([^]*?)```/.exec(read('docs/several-boxes.md'))!
    await succeed('sh', ['-ec', block!.replace('chown 10025 master-key database-url && ', '')], { cwd: directory })
    const file = (secret: string): string => join(directory, 'docker', secrets[secret].file)
    const env = Object.fromEntries(
      Object.entries<string>(environment).map(([key, value]) => [
        key,
        value.replace(/^\/run\/secrets\/(.*)$/, (_, secret: string) => file(secret)),
      ]),
    )
    const config = await loadConfig({ env: { ...env, PILLARBOX_DATA_DIR: made }, cwd: directory })
    expect(config.http.proxy_protocol).toEqual([`${addressOf('haproxy')}/32`])
    expect(config.smtp.proxy_protocol).toEqual([`${addressOf('haproxy')}/32`])
    expect(config.database).toMatchObject({
      several: true,
      url: { host: addressOf('postgresql'), user: services.postgresql.environment.POSTGRES_USER },
    })
    expect(Buffer.from(readFileSync(config.master_key_file!, 'utf8'), 'base64')).toHaveLength(32)
    expect(config.database.url!.password).toBe(readFileSync(file('database-password'), 'utf8').trim())
    expect([config.smtp.listen, config.submission.listen, config.submission.listen_tls].flat().map(({ port }) => port)).toEqual([
      25, 587, 465,
    ])
  }
})
