import { cpSync, existsSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { folder } from '../support/folder.ts'
import { succeed } from '../support/program.ts'

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

test("the image takes the README's own steps", () => {
  const [install, start] = /^ {4}(npm ci) && (npm start) /m.exec(read('README.md'))!.slice(1)
  expect(all('RUN')[0]).toBe(`${install} --omit=dev`)
  expect(start).toBe('npm start')
  const words = [...JSON.parse(all('ENTRYPOINT')[0]!), ...JSON.parse(all('CMD')[0]!)]
  expect(`exec ${words.join(' ')}`).toBe(JSON.parse(read('package.json')).scripts.start)
})

test('it runs without rights, says how it is, and ends by itself when told to', () => {
  expect(all('USER')).toEqual(['pillarbox'])
  expect(all('STOPSIGNAL')).toEqual(['SIGTERM'])
  expect(all('HEALTHCHECK')[0]).toContain('CMD ["bin/pillarbox", "ready"]')
  expect(JSON.parse(all('VOLUME')[0]!)).toEqual(['/var/lib/pillarbox', '/var/lib/pillarbox-keys'])
})

test('what is copied is there, and is not ignored', () => {
  const copied = all('COPY')
    .filter((words) => !words.startsWith('--from'))
    .flatMap((words) => words.split(' ').slice(0, -1))
  const ignore = read('docker/Dockerfile.dockerignore').split('\n')
  expect(ignore[0]).toBe('*')
  for (const name of copied) expect(ignore).toContain(`!${name}`)
})

test('what the image builds the page of is enough to build it', async () => {
  const stage = read('docker/Dockerfile')
    .split(/^FROM /m)
    .find((text) => text.startsWith('packages AS page'))!
  const place = folder()
  const copied = [...stage.matchAll(/^COPY (\S+) /gm)].map(([, name]) => name!)
  for (const name of [...copied, 'package.json']) cpSync(join(root, name), join(place, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'))
  await succeed('npm', ['run', 'prepare'], { cwd: place, env: { HOME: place } })
  expect(existsSync(join(place, 'dist', 'page', 'index.html'))).toBe(true)
  expect(all('COPY')).toContain('--from=page /opt/pillarbox/dist dist')
})

test('compose.yaml builds it, keeps data and keys apart, and shows the API to this machine only', () => {
  const { services, volumes } = parse(read('docker/compose.yaml'))
  const { build, ports, volumes: mounts, read_only, cap_drop } = services.pillarbox
  expect(read(join('docker', build.context, build.dockerfile))).toBe(read('docker/Dockerfile'))
  const settings = all('ENV')[0]!
  expect(settings).toContain('PILLARBOX_SMTP__LISTEN=:2525')
  expect(settings).toContain('PILLARBOX_HTTP__LISTEN=:8080')
  expect(ports).toEqual(['25:2525', '127.0.0.1:8080:8080'])
  expect(mounts.map((mount: string) => mount.split(':')[1])).toEqual(JSON.parse(all('VOLUME')[0]!))
  expect(mounts.map((mount: string) => mount.split(':')[0])).toEqual(Object.keys(volumes))
  expect([read_only, cap_drop]).toEqual([true, ['ALL']])
})
