import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { read } from '../docs/pages.ts'
import { absent, peer } from '../support/peer.ts'
import { release } from '../support/release.ts'
import { answers, expectMail, expectPage, expectRead, expectRights, expectRootLeavesNothing, madeBy } from './bare-debian/box.ts'
import { Machine } from './bare-debian/machine.ts'
import { printedWith } from './bare-debian/printed.ts'
import { limit } from './bare-debian/programs.ts'
import {
  bareDebian,
  cacheInside,
  fetchPackages,
  makePlace,
  makeRepository,
  removePlace,
  type System,
} from './bare-debian/system.ts'

// machines wait more than they work, each in a network of its own
vi.setConfig({ testTimeout: limit, hookTimeout: limit, maxConcurrency: 3 })

const page = 'docs/install.md'

/** A way to install that the page prints: its section, and what has to lie where before its commands can be run. */
interface Way {
  name: string
  section: string
  /** Puts there what the commands take, and answers the commands with what stands for the reader's own. */
  provide(system: System, commands: string[]): Promise<string[]>
  /**
   * The section of the upgrade of this way, and what makes a version 0.1.1 to be had by its commands: a broken download, which is mended
   * later. `stops`: the box is stopped before that is noticed, and started again.
   */
  upgrade: { section: string; publish: string; mend?: string; stops?: boolean }
}

/** Puts a file of the release where root begins, and answers the commands with its version. */
async function provideRelease(system: System, commands: string[], file: string): Promise<string[]> {
  system.put(`/root/${file}`, readFileSync(join(await release(), file)))
  return commands.map((line) => line.replaceAll('<version>', '0.1.0'))
}

const next = `sed -i '/"version":/s/0\\.1\\.0/0.1.1/'`

const routing: Way[] = [
  {
    name: 'from the tarball',
    section: 'From the tarball',
    provide: (system, commands) => provideRelease(system, commands, 'pillarbox-0.1.0-linux-x64.tar.gz'),
    upgrade: {
      section: 'An installation from the tarball',
      publish: `mkdir /var/tmp/next && tar -xzf pillarbox-0.1.0-linux-x64.tar.gz -C /var/tmp/next && cd /var/tmp/next &&
        mv pillarbox-0.1.0-linux-x64 pillarbox-0.1.1-linux-x64 && ${next} pillarbox-0.1.1-linux-x64/package.json &&
        tar -cf - pillarbox-0.1.1-linux-x64 | gzip -1 >/root/whole &&
        head -c 30000000 /root/whole >/root/pillarbox-0.1.1-linux-x64.tar.gz`,
      mend: 'mv whole pillarbox-0.1.1-linux-x64.tar.gz',
    },
  },
  {
    name: 'from the Debian package',
    section: 'From the Debian package',
    provide: (system, commands) => provideRelease(system, commands, 'pillarbox_0.1.0_amd64.deb'),
    upgrade: {
      section: 'An installation from the Debian package',
      publish: `dpkg-deb --raw-extract pillarbox_0.1.0_amd64.deb /var/tmp/next && cd /var/tmp/next &&
        sed -i 's/^Version: .*/Version: 0.1.1/' DEBIAN/control && ${next} usr/lib/pillarbox/package.json &&
        dpkg-deb -Zgzip -z1 --build . /root/whole && head -c 30000000 /root/whole >/root/pillarbox_0.1.1_amd64.deb`,
      mend: 'mv whole pillarbox_0.1.1_amd64.deb',
      stops: true,
    },
  },
  {
    name: 'from git',
    section: 'From git',
    async provide(system, commands) {
      const repository = await makeRepository(system)
      await fetchPackages(system, repository)
      return commands.map((line) => line.replace(/<where [^>]+>/, repository))
    },
    upgrade: {
      section: 'An installation from git',
      publish: `git clone -q /srv/pillarbox.git /var/tmp/next && cd /var/tmp/next &&
        sed -i '/"version":/s/0\\.1\\.0/0.1.1/' package.json &&
        git -c user.name=Ada -c user.email=ada@sender.test commit -qam 'The next version' && git push -q`,
    },
  },
]

const isApt = (line: string): boolean => line.startsWith('apt-get ')

let place = ''

beforeAll(() => {
  if (process.getuid?.() !== 0) {
    absent('a bare Debian', 'only root can make a bare Debian')
    return
  }
  const programs = [
    peer('debootstrap'),
    peer('unshare', 'apt-get install util-linux'),
    peer('ip', 'apt-get install iproute2'),
    peer('git'),
  ]
  if (!programs.includes(undefined)) place = makePlace()
})

afterAll(async () => {
  if (place !== '') await removePlace(place)
})

/** A bare Debian with npm and git, as the page has them installed, and a repository to clone. */
async function withRepository(name: string): Promise<{ system: System; repository: string }> {
  const system = await bareDebian(place, name, printedWith(page, 'From git', 'init').filter(isApt))
  const repository = await makeRepository(system)
  await fetchPackages(system, repository)
  return { system, repository }
}

/** The process of the box with this data, by the numbers inside. */
async function pidOf(machine: Machine, data: string): Promise<string> {
  return /\d+/.exec(await machine.must(`cat ${data}/lock.pid`))![0]
}

/** Waits until a program has written this; answers all that it wrote. Throws when it ends before. */
function said(child: ChildProcess, wanted: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.setEncoding('utf8').on('data', (piece: string) => {
        text += piece
        if (wanted.test(text)) resolve(text)
      })
    }
    child.once('close', (code) => reject(new Error(`It ended with ${code}:\n${text}`)))
  })
}

/** A bare Debian with what one way needs, and the commands of the page that are still to be run in it. */
async function prepared(way: Way, name = way.name.replaceAll(' ', '-')): Promise<{ system: System; commands: string[] }> {
  const block = printedWith(page, way.section, 'init')
  const system = await bareDebian(place, name, block.filter(isApt))
  const commands = await way.provide(
    system,
    block.filter((line) => !isApt(line)),
  )
  return { system, commands: commands.map((line) => line.replace(/\binit$/, `init ${answers}`)) }
}

for (const way of routing) {
  test.concurrent(`${way.name}, as the page prints it, a bare Debian gets a service that receives, and a page that opens`, async ({
    onTestFinished,
  }) => {
    if (place === '' || peer('systemd-nspawn', 'apt-get install systemd-container') === undefined) return
    const { system, commands } = await prepared(way)
    const machine = await Machine.boot(system)
    if (machine === undefined) return
    onTestFinished(() => machine.end())
    const { first_key, setup_link } = madeBy(await machine.must(commands))
    await machine.must(printedWith(page, 'Setting up', 'systemctl enable'))
    await expectMail(machine, first_key)
    await expectPage(machine, setup_link)
    await expectRights(machine, await machine.must('systemctl show --property=MainPID --value pillarbox.service | tr -d "\\n"'))
    const exposure = (await machine.run('systemd-analyze security --no-pager pillarbox.service')).text
    expect(Number(/Overall exposure level[^:]*: ([\d.]+)/.exec(exposure)?.[1])).toBeLessThanOrEqual(2)
    await machine.must('systemctl reload pillarbox.service')
    await machine.must('systemctl start pillarbox-backup.service')
    const backup = (await machine.must('find /var/backups/pillarbox -type f')).trim()
    expect(backup).toMatch(/^\/var\/backups\/pillarbox\/pillarbox-\S+\.tar$/)
    expect(await machine.must('stat -c %a:%U:%G /etc/pillarbox/backup.passphrase')).toBe('640:root:pillarbox\n')
    const verify = `pillarbox verify ${backup} --passphrase-file /etc/pillarbox/backup.passphrase`
    expect(await machine.must(verify)).toContain('The master key decrypts all encrypted values')
    expect(await machine.must('journalctl --no-pager -u pillarbox -o cat')).toContain('settings reloaded')
    await machine.must('systemctl stop pillarbox.service')
    await expectRootLeavesNothing(machine)
    // what Node.js compiled is kept for the next start
    expect(await machine.must('stat -c %a:%U:%G /var/cache/pillarbox')).toBe('700:pillarbox:pillarbox\n')
    expect(await machine.must('find /var/cache/pillarbox -type f -user pillarbox | wc -l')).toMatch(/^\d{3,}$/m)
    await machine.must('systemctl start pillarbox.service')
    await expectRead(machine, first_key)
    const backUp = printedWith(page, 'Upgrading', 'pillarbox verify').filter((line) => !line.startsWith('pillarbox doctor'))
    await machine.must(backUp)
    await expectUpgrade(machine, way, first_key)
    await expectWayBack(machine, way, first_key)
  })
}

test.concurrent("the README's two lines bring up a box, with its page, and run the tests, for an ordinary user with Debian's npm", async ({
  onTestFinished,
}) => {
  if (place === '') return
  const { system, repository } = await withRepository('ordinary')
  const machine = await Machine.plain(system)
  if (machine === undefined) return
  onTestFinished(() => machine.end())
  // npm sets the mode of what it finds in its cache, which only the owner may
  await machine.must(`useradd --create-home --shell /bin/sh ada && chown -R ada: ${cacheInside}`)
  const [, start, tests] = /^ {4}(npm ci && npm start) .*\n {4}(npm ci && npm test) /m.exec(read('README.md'))!
  const user = { user: 'ada' }
  await machine.must(`git clone ${repository} pillarbox`, user)
  const box = machine.start(`cd pillarbox\n${start}`, user)
  const ended = once(box, 'exit')
  const output = await said(box, /# 3\./)
  await expectMail(machine, /\bpbx_\w+/.exec(output)![0], 2525)
  await expectPage(machine, /http\S+\/setup#\S+/.exec(output)![0])
  await machine.must(`kill -TERM ${await pidOf(machine, '/home/ada/pillarbox/data')}`, user)
  expect(await ended).toEqual([0, null])
  // one file stands for all, and both lines begin with the same npm ci: what runs them is looked at here
  const run = `cd pillarbox\n${tests!.replace('npm ci && ', '')} -- test/core/cursor.test.ts`
  expect(await machine.must(run, { ...user, env: { NO_COLOR: '1' } })).toMatch(/Tests +\d+ passed/)
  expect(await machine.must('find pillarbox ! -user ada', user)).toBe('')
})

test.concurrent('without systemd it comes to the same, by setpriv and useradd', async ({ onTestFinished }) => {
  if (place === '') return
  const { system, commands } = await prepared(routing[0]!, 'plain')
  // nothing makes users but useradd
  await system.hide('/usr/bin/systemd-sysusers')
  const machine = await Machine.plain(system)
  if (machine === undefined) return
  onTestFinished(() => machine.end())
  const { first_key } = madeBy(await machine.must(commands))
  expect(await machine.must('find /opt/pillarbox/ ! -user root')).toBe('')
  const serve = `exec setpriv --reuid=pillarbox --regid=pillarbox --clear-groups --inh-caps=-all,+net_bind_service \\
    --ambient-caps=-all,+net_bind_service --no-new-privs pillarbox serve`
  const box = machine.start(serve)
  const ended = once(box, 'exit')
  await said(box, /"msg":"started"/)
  await expectMail(machine, first_key)
  const pid = await pidOf(machine, '/var/lib/pillarbox')
  await expectRights(machine, pid)
  await machine.must(`kill -TERM ${pid}`)
  expect(await ended).toEqual([0, null])
  await expectRootLeavesNothing(machine)
})

/** The commands of an upgrade, as they are printed: where they fail the service goes on as before, else it is the new version. */
async function expectUpgrade(machine: Machine, { upgrade }: Way, key: string): Promise<void> {
  const process = (): Promise<string> => machine.must('systemctl show --property=MainPID --value pillarbox.service')
  const before = await process()
  const printed = printedWith('docs/install.md', upgrade.section, upgrade.stops === true ? 'dpkg' : 'systemctl')
  const commands = printed.map((line) => line.replaceAll('<version>', '0.1.1'))
  await machine.must(upgrade.publish)
  const failed = await machine.run(commands, { env: { npm_config_cache: '/var/empty' } })
  expect(failed.code).not.toBe(0)
  expect((await process()) === before).toBe(upgrade.stops !== true)
  expect(await machine.must('pillarbox --version')).toBe('0.1.0\n')
  await expectMail(machine, key)
  if (upgrade.mend !== undefined) await machine.must(upgrade.mend)
  await machine.must(commands)
  expect(await process()).not.toBe(before)
  expect(await machine.must('pillarbox --version')).toBe('0.1.1\n')
  await expectMail(machine, key)
  const { text: answer } = await machine.reach('curl', ['-sS', '-o', '/dev/null', '-w', '%{http_code}', 'http://127.0.0.1:8080/'])
  expect(answer).toBe('200')
}

/** Going back, as it is printed: the older program has the box as it was in the backup from before. */
async function expectWayBack(machine: Machine, { name }: Way, key: string): Promise<void> {
  const older = new RegExp(`^\\| ${name.replace(/^from (?:the )?/, '')} \\| \`(.+)\` \\|$`, 'm').exec(read(page))![1]!
  await machine.must('pillarbox identity create Late')
  await machine.must('systemctl stop pillarbox')
  await machine.must(older.replaceAll('<older version>', '0.1.0'))
  await machine.must(printedWith(page, 'Going back', 'pillarbox restore'))
  await machine.must('systemctl start pillarbox')
  expect(await machine.must('pillarbox --version')).toBe('0.1.0\n')
  await expectRead(machine, key)
  expect(await machine.must('pillarbox identity list')).not.toContain('Late')
}
