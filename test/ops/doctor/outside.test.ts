import { once } from 'node:events'
import { chmodSync, chownSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer as createWebServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { basename, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Line } from '../../../src/ops/doctor/model.ts'
import { placesOf } from '../../../src/install/places.ts'
import { unitFiles } from '../../../src/install/units.ts'
import { certificatePair } from '../../support/certificate-pair.ts'
import { succeed } from '../../support/program.ts'
import { commandsOf, owner, stoppedBox, type StoppedBox } from '../../support/stopped-box.ts'

// each test runs the program some times, and a busy machine takes its time to load it
const day = 86_400_000
const askers = ['root', 'user'] as const

async function made(settings: Record<string, string> = {}): Promise<StoppedBox> {
  const box = await stoppedBox(settings)
  onTestFinished(() => box.close())
  return box
}

/** The unit of this box, in the directory that systemd reads, of its own mount namespace only. */
async function installUnit(box: StoppedBox): Promise<void> {
  const units = join(box.directory, 'units')
  mkdirSync(units)
  const places = placesOf({ data: box.data, keys: box.keys, units }, { root: true, cwd: '/' })
  for (const [file, text] of unitFiles(places)) {
    // the user of the test is in no list of users
    if (file.endsWith('.service'))
      writeFileSync(join(units, basename(file)), text.replace(/^User=.*$/m, 'User=nobody-of-this-name'))
  }
  await box.shell(`mount --bind ${units} /etc/systemd/system`)
}

test('a port in use, a missing record, a clock that is off and an expired certificate are named, and gone once mended', async () => {
  let behind = 90_000
  const clock = createWebServer((_, response) => response.setHeader('Date', new Date(Date.now() - behind).toUTCString()).end())
  clock.listen(0, '127.0.0.1')
  await once(clock, 'listening')
  onTestFinished(() => void clock.close())
  const files = await certificatePair('mx.box.test', { from: -90 * day, to: -day })
  const renewed = await certificatePair('mx.box.test')
  const place = (): void => {
    chmodSync(files.directory, 0o755)
    for (const file of [files.cert, files.key]) chownSync(file, owner.uid, owner.gid)
  }
  place()
  const box = await made({
    PILLARBOX_SMTP__TLS__CERT: files.cert,
    PILLARBOX_SMTP__TLS__KEY: files.key,
    PILLARBOX_DOCTOR__TIME_URL: `http://127.0.0.1:${(clock.address() as AddressInfo).port}`,
  })
  const other = createServer().listen(box.httpPort, '127.0.0.1')
  await once(other, 'listening')
  const seen = async (): Promise<Record<'ports' | 'mx' | 'clock' | 'tls', Line>[]> => {
    const reports = []
    for (const as of askers) reports.push(await box.doctor(as))
    return reports.map(({ line }) => ({
      ports: line('ports', String(box.httpPort)),
      mx: line('mx'),
      clock: line('clock'),
      tls: line('tls', files.cert),
    }))
  }
  const [first, second] = await seen()
  for (const lines of [first!, second!]) {
    expect(lines.ports).toMatchObject({
      status: 'fail',
      message: 'Another program uses the port.',
      fix: expect.stringMatching(/^Stop it/),
    })
    expect(lines.mx).toMatchObject({ status: 'fail', fix: 'Publish: box.test. 3600 IN MX 10 mx.box.test.' })
    expect(lines.clock).toMatchObject({ status: 'fail', message: expect.stringMatching(/^It is \d+\.\d s ahead of http/) })
    expect(commandsOf(lines.clock.fix!)).toBe('apt-get install -y chrony')
    expect(lines.tls).toMatchObject({
      status: 'fail',
      message: expect.stringMatching(/^It expired on/),
      fix: expect.stringMatching(/^Renew it, replace the files/),
    })
  }
  other.close()
  const [, name, preference, exchange] = /^Publish: (\S+)\. 3600 IN MX (\d+) (\S+)\.$/.exec(first!.mx.fix!)!
  box.dns.mx(name!, `${preference} ${exchange}`)
  behind = 0
  for (const file of ['cert.pem', 'key.pem']) copyFileSync(join(renewed.directory, file), join(files.directory, file))
  place()
  for (const lines of await seen()) {
    expect(Object.values(lines).map(({ name: one, status }) => [one, status])).toEqual([
      ['ports', 'pass'],
      ['mx', 'pass'],
      ['clock', 'pass'],
      ['tls', 'pass'],
    ])
  }
})

test('a port below 1024 is refused to a user without the right, and not to a service whose unit gives it', async () => {
  const box = await made({ PILLARBOX_SMTP__LISTEN: '127.0.0.1:867', PILLARBOX_DNS__TIMEOUT: '50 ms' })
  /** In a network of its own, where what may be had and what is taken is this test's alone. */
  const port = async (before = ''): Promise<Line> => {
    const doctor = `setpriv --reuid=${owner.uid} --regid=${owner.gid} --clear-groups pillarbox doctor --json > ${box.directory}/report || true`
    await box.shell(`unshare --net sh -ec "ip link set lo up; ${before} ${doctor}"`)
    const { lines } = JSON.parse((await box.read('report')).toString()) as { lines: Line[] }
    return lines.find(({ subject }) => subject.endsWith(':867'))!
  }
  const refused = await port()
  expect(refused).toMatchObject({ status: 'fail', message: 'This user may not open a port below 1024.' })
  expect(await port(`${commandsOf(refused.fix!)};`)).toMatchObject({ status: 'pass', message: 'The port is free.' })
  await installUnit(box)
  expect(await port()).toMatchObject({
    status: 'pass',
    message: expect.stringContaining('the service can open it (/etc/systemd/system/pillarbox.service)'),
  })
  const listen = 'net.createServer().listen(867, String.fromCharCode(49,50,55,46,48,46,48,46,49))'
  // 867 in hexadecimal, of a socket that listens (proc_pid_net(5))
  const taken = `timeout 60 '${process.execPath}' -e '${listen}' > /dev/null 2>&1 & until grep -q ':0363 .* 0A ' /proc/net/tcp; do :; done;`
  expect(await port(taken)).toMatchObject({ status: 'fail', message: 'Another program uses the port.' })
})

test('config check as root reads what the settings name as the user of the box, and names a missing master key as systemd does', async () => {
  const files = await certificatePair('mx.box.test')
  const passphrase = join(files.directory, 'passphrase')
  writeFileSync(passphrase, 'a long enough passphrase\n', { mode: 0o600 })
  chmodSync(files.directory, 0o755)
  const box = await made({ PILLARBOX_BACKUP__PASSPHRASE_FILE: passphrase })
  const refused = await box.command('root', 'config', 'check')
  expect(refused).toMatchObject({ code: 78, errors: expect.stringContaining(`${passphrase} cannot be read: permission denied`) })
  expect(refused.errors).toContain(`For user ${owner.uid}`)
  const told = await box.doctor('root')
  expect(told.line('config', 'PASSPHRASE_FILE')).toMatchObject({
    status: 'fail',
    fix: expect.stringContaining(`Make it readable for user ${owner.uid}`),
  })
  chownSync(passphrase, owner.uid, owner.gid)
  expect(await box.command('root', 'config', 'check')).toMatchObject({
    code: 0,
    output: expect.stringContaining(`user ${owner.uid}`),
  })
  await installUnit(box)
  await box.shell(`rm ${box.keys}/master.key`)
  const missing = (await box.doctor('root')).line('data', 'master.key')
  expect(missing.message).toMatch(
    /the service cannot be started \(status=243\/CREDENTIALS: \/etc\/systemd\/system\/pillarbox\.service/,
  )
  await box.shell(commandsOf(missing.fix!, { COPY: box.key }))
  expect((await box.doctor('root')).line('data', 'master.key')).toMatchObject({ status: 'pass' })
})

test('a listener at all addresses is asked also where the machine has no IPv6, as in a container', async () => {
  const program = `
    import { createServer } from 'node:net'
    import { answerOf, within } from '${new URL('../../../src/ops/doctor/conversation.ts', import.meta.url).href}'
    const server = createServer((socket) => socket.end('220 ready\\r\\n')).listen({ host: '::', port: 0 })
    server.once('listening', async () => {
      process.stdout.write(await answerOf(within({ host: '::', port: server.address().port })))
      server.close()
    })`
  const apart = 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; ip link set lo up; exec "$@"'
  const words = ['--net', 'sh', '-ec', apart, 'sh', process.execPath, '--input-type=module', '--eval', program]
  expect((await succeed('unshare', words)).toString()).toBe('220 ready')
})
