import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { placesOf } from '../../src/install/places.ts'
import { nameable, unitFiles } from '../../src/install/units.ts'
import { folder } from '../support/folder.ts'
import { peer } from '../support/peer.ts'
import { run } from '../support/program.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const elsewhere = { data: '/srv/box/data', units: '/srv/box/units' }

/** Writes the units of a box and answers their directory. */
function written(input: { data?: string; units?: string }): string {
  const directory = folder()
  for (const [file, text] of unitFiles(placesOf(input, { root: true, cwd: '/' }))) {
    writeFileSync(join(directory, basename(file)), text)
  }
  return directory
}

test.each([
  ['a service of the machine', {}],
  ['a box in a directory', elsewhere],
])('systemd finds nothing to say about the units of %s', async (_, input) => {
  const program = peer('systemd-analyze', 'apt-get install systemd')
  if (program === undefined) return
  const directory = written(input)
  const units = readdirSync(directory).filter((name) => !name.endsWith('.conf'))
  expect(units.toSorted()).toEqual(['pillarbox-backup.service', 'pillarbox-backup.timer', 'pillarbox.service'])
  const { code, output, errors } = await run(program, ['verify', '--man=no', ...units.map((name) => join(directory, name))])
  // what it says of other units of this machine is not ours
  const ours = `${output.toString()}${errors}`.split('\n').filter((line) => line.includes('pillarbox'))
  expect([code, ours]).toEqual([0, []])
})

test.each([
  ['pillarbox.service', {}, 2],
  ['pillarbox-backup.service', {}, 2],
  ['pillarbox.service', elsewhere, 2],
  ['pillarbox.service', { data: '/home/ada/box' }, 2.2],
])('%s of %o is exposed to no more than %d', async (name, input, most) => {
  const program = peer('systemd-analyze', 'apt-get install systemd')
  if (program === undefined) return
  const { output } = await run(program, ['security', '--offline=yes', '--no-pager', join(written(input), name)])
  const figure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(output.toString())?.[1])
  expect(figure).toBeGreaterThan(0)
  expect(figure).toBeLessThanOrEqual(most)
})

test('the units name the places of the box, and no others', () => {
  const text = readFileSync(join(written(elsewhere), 'pillarbox.service'), 'utf8')
  expect(text).toContain(`ExecStart=${root}bin/pillarbox serve\n`)
  expect(text).toContain('Environment=PILLARBOX_CONFIG=/srv/box/data/pillarbox.yaml\n')
  expect(text).toContain('LoadCredential=master.key:/srv/box/data-keys/master.key\n')
  expect(text).toContain('ReadWritePaths=/srv/box/data /srv/box/data-keys\n')
  expect(text).not.toMatch(/\/var\/lib|\/etc\/pillarbox|StateDirectory/)
  expect(nameable(placesOf({ data: '/srv/my box' }, { root: true, cwd: '/' }))).toBe(false)
})

test('what a service may not do is what its settings need not', () => {
  const text = readFileSync(join(root, 'systemd', 'pillarbox.service'), 'utf8')
  expect(text).toMatch(/^AmbientCapabilities=CAP_NET_BIND_SERVICE$/m)
  expect(text).toMatch(/^CapabilityBoundingSet=CAP_NET_BIND_SERVICE$/m)
  expect(text).toMatch(/^RestartPreventExitStatus=78$/m)
})

test('the user that the units name is the one that is made', async () => {
  const directory = written({})
  const user = /^User=(\w+)$/m.exec(readFileSync(join(directory, 'pillarbox.service'), 'utf8'))![1]
  expect(readFileSync(join(directory, 'pillarbox.conf'), 'utf8')).toMatch(new RegExp(`^u ${user} - `, 'm'))
  const program = peer('systemd-sysusers', 'apt-get install systemd')
  if (program === undefined) return
  const machine = folder()
  mkdirSync(join(machine, 'etc'))
  await run(program, [
    `--root=${machine}`,
    '--inline',
    readFileSync(join(directory, 'pillarbox.conf'), 'utf8').split('\n').at(1)!,
  ])
  expect(readFileSync(join(machine, 'etc', 'passwd'), 'utf8')).toMatch(
    /^pillarbox:[^:]*:\d+:\d+:Pillarbox:\/var\/lib\/pillarbox:\/usr\/sbin\/nologin$/m,
  )
})
