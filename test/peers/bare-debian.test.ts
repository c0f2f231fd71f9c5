import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { absent, peer } from '../support/peer.ts'
import { spawn } from 'node:child_process'
import { once } from 'node:events'

const program = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const suite = 'bookworm'
/** The bare system, packed: it is the same each time, and takes a minute to make. */
const store = `/var/cache/pillarbox-test/${suite}.tar`
/** A quiet machine needs a quarter of it. */
const patience = 600_000

let place = ''

/** As `run`, for what takes minutes; both outputs together. */
async function long(command: string, parameters: string[]): Promise<{ code: number | null; text: string }> {
  const child = spawn(command, parameters, { stdio: ['ignore', 'pipe', 'pipe'], timeout: patience, killSignal: 'SIGKILL' })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, text }
}

async function must(command: string, parameters: string[]): Promise<void> {
  const { code, text } = await long(command, parameters)
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${text.slice(-2000)}`)
}

beforeAll(async () => {
  if (process.getuid?.() !== 0) {
    absent('a bare Debian', 'only root can make a bare Debian')
    return
  }
  const debootstrap = peer('debootstrap')
  if (debootstrap === undefined) return
  place = mkdtempSync(join(tmpdir(), 'pillarbox-bare-'))
  if (!existsSync(store)) {
    const made = join(place, 'made')
    await must(debootstrap, ['--variant=minbase', '--include=systemd,systemd-sysv', suite, made])
    mkdirSync('/var/cache/pillarbox-test', { recursive: true, mode: 0o700 })
    await must('tar', ['-C', made, '-cf', `${store}.part`, '.'])
    await must('mv', [`${store}.part`, store])
    rmSync(made, { recursive: true })
  }
}, patience)

afterAll(() => {
  if (place !== '') rmSync(place, { recursive: true, force: true })
})

/** A bare Debian of its own, where the program is to be seen at /opt/pillarbox. */
async function bare(name: string): Promise<string> {
  const root = join(place, name)
  mkdirSync(root)
  await must('tar', ['-C', root, '-xf', store])
  mkdirSync(join(root, 'opt', 'pillarbox'))
  return root
}

/** What happened inside. */
function result(root: string, file: string): string {
  return readFileSync(join(root, 'result', file), 'utf8')
}

/** Whatever brought it up: it runs as a user with one right, took a message at port 25, and left nothing to anybody else. */
function expectBox(root: string): void {
  expect(
    `${result(root, 'status')}${result(root, 'status') === '0\n' ? '' : result(root, 'log') + result(root, 'journal')}`,
  ).toBe('0\n')
  const outcome = JSON.parse(result(root, 'init.json'))
  expect(outcome).toMatchObject({ data: '/var/lib/pillarbox', config: '/etc/pillarbox/pillarbox.yaml', domain: 'agents.test' })
  const status = new Map(
    result(root, 'process')
      .split('\n')
      .map((line) => line.split(':\t') as [string, string]),
  )
  const user = new RegExp(`^pillarbox:[^:]*:${status.get('Uid')!.split('\t')[0]}:`, 'm')
  expect(readFileSync(join(root, 'etc', 'passwd'), 'utf8')).toMatch(user)
  // capabilities(7): bit 10 is CAP_NET_BIND_SERVICE
  expect([status.get('CapEff'), status.get('NoNewPrivs')]).toEqual(['0000000000000400', '1'])
  expect(result(root, 'delivered')).toMatch(/^250 /)
  for (const file of ['read', 'read-again']) {
    expect(JSON.parse(result(root, file))).toMatchObject({ data: [{ subject: 'From nothing', codes: ['493817'] }] })
  }
  for (const file of ['domains', 'domains-stopped']) expect(result(root, file)).toMatch(/^agents\.test +pending +default$/m)
  expect(result(root, 'strangers')).toBe('')
  expect(result(root, 'refused')).toContain('There is a box in /var/lib/pillarbox already.')
}

test(
  'booted, a bare Debian comes from nothing to a service that receives, reloads and makes its backup',
  { timeout: patience },
  async () => {
    if (place === '') return
    const nspawn = peer('systemd-nspawn', 'apt-get install systemd-container')
    if (nspawn === undefined) return
    const root = await bare('booted')
    const options = ['-q', '-D', root, '--register=no', '--keep-unit', '--private-network', `--bind-ro=${program}:/opt/pillarbox`]
    const trial = await long(nspawn, [...options, 'true'])
    if (trial.code !== 0) {
      absent('systemd-nspawn', `systemd-nspawn does not run here (${trial.text.trim()})`)
      return
    }
    const units = join(root, 'etc', 'systemd', 'system')
    const start = '/opt/pillarbox/test/peers/bare-debian/inside.sh systemd'
    writeFileSync(join(units, 'visit.service'), `[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nExecStart=${start}\n`)
    mkdirSync(join(units, 'multi-user.target.wants'), { recursive: true })
    symlinkSync('../visit.service', join(units, 'multi-user.target.wants', 'visit.service'))
    await long(nspawn, [...options, '-b'])
    expectBox(root)
    expect(Number(/Overall exposure level[^:]*: ([\d.]+)/.exec(result(root, 'exposure'))?.[1])).toBeLessThanOrEqual(2)
    expect(result(root, 'journal')).toContain('settings were read again')
    expect(result(root, 'backups')).toMatch(/^\/var\/backups\/pillarbox\/pillarbox-\S+\.tar$/m)
  },
)

// oxlint-disable-next-line vitest/expect-expect -- expectBox expects
test('in a bare Debian without systemd it comes to the same, by setpriv and useradd', { timeout: patience }, async () => {
  if (place === '') return
  if (peer('unshare', 'apt-get install util-linux') === undefined || peer('ip', 'apt-get install iproute2') === undefined) return
  const root = await bare('plain')
  rmSync(join(root, 'usr', 'bin', 'systemd-sysusers'), { force: true })
  const steps = [
    'set -e',
    'ip link set lo up',
    `mount --bind '${program}' '${root}/opt/pillarbox'`,
    `mount -t proc proc '${root}/proc'`,
    `mount --rbind /dev '${root}/dev'`,
    `exec chroot '${root}' /opt/pillarbox/test/peers/bare-debian/inside.sh plain`,
  ]
  const { text } = await long('unshare', ['--mount', '--pid', '--net', '--fork', 'sh', '-c', steps.join('\n')])
  if (!existsSync(join(root, 'result'))) {
    absent('unshare', `no namespaces can be made here (${text.trim()})`)
    return
  }
  expectBox(root)
})
