import { chmodSync, chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Line } from '../../src/ops/doctor/model.ts'
import { patient, published } from '../support/checkup.ts'
import { MailSink } from '../support/mail-sink.ts'
import { run } from '../support/program.ts'

// each test runs the program, some twice, and a busy machine takes its time to load it
const program = new URL('../../src/main.ts', import.meta.url).pathname

interface Seen {
  status: string
  fail: number
  lines: Line[]
}

async function doctor(
  env: Record<string, string>,
  cwd: string,
  ...words: string[]
): Promise<{ code: number | null; output: string; errors: string }> {
  const { code, output, errors } = await run(process.execPath, [program, 'doctor', ...words], { env, cwd })
  return { code, output: output.toString(), errors }
}

async function seen(env: Record<string, string>, cwd: string, ...words: string[]): Promise<{ code: number | null; seen: Seen }> {
  const { code, output } = await doctor(env, cwd, '--json', ...words)
  return { code, seen: JSON.parse(output) as Seen }
}

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'pillarbox-doctor-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

test('a box that runs answers for itself; exit status 0 while nothing fails, 1 when something does', async () => {
  const sink = await MailSink.start()
  const { box } = await patient({ PILLARBOX_OUTBOUND__PORT: String(sink.port) })
  await published(box)
  const well = await doctor(box.env, box.directory)
  expect(well).toMatchObject({ code: 0, errors: '' })
  expect(well.output).toMatch(/^PASS {2}ptr +192\.0\.2\.25 {2}It is mx\.box\.test/m)
  expect(well.output).toMatch(/^WARN {2}bootstrap_key +settings {2}.+\n {6}fix: Create another key/m)
  expect(well.output).toMatch(/\n0 failed, \d+ warnings, \d+ passed\n$/)
  // colours are for people
  expect(well.output).not.toContain('\u001B')
  chmodSync(box.env['PILLARBOX_DATA_DIR']!, 0o755)
  const { code, seen: broken } = await seen(box.env, box.directory)
  expect([code, broken.status, broken.fail]).toEqual([1, 'fail', 1])
  expect(broken.lines.find(({ status }) => status === 'fail')).toMatchObject({ name: 'permissions' })
})

test('listeners that expect the PROXY protocol from this machine answer, with their certificates', async () => {
  const { box } = await patient({
    PILLARBOX_HTTP__PROXY_PROTOCOL: '127.0.0.1',
    PILLARBOX_SMTP__PROXY_PROTOCOL: '127.0.0.0/8',
    PILLARBOX_HTTP__TLS__LISTEN: '127.0.0.1:0',
    PILLARBOX_SUBMISSION__LISTEN: '127.0.0.1:0',
    PILLARBOX_SUBMISSION__LISTEN_TLS: '127.0.0.1:0',
  })
  const { seen: found } = await seen(box.env, box.directory)
  const of = (name: string): unknown[] =>
    found.lines.filter((line) => line.name === name).map(({ subject, status }) => [subject.split(' ')[0], status])
  expect(of('ports')).toEqual(['http', 'https', 'smtp', 'submission', 'submissions'].map((protocol) => [protocol, 'pass']))
  expect(of('tls').map((line) => (line as string[])[0])).toEqual(['https', 'smtp', 'submission', 'submissions'])
  expect(found.lines.filter(({ message }) => message.startsWith('TLS is not available'))).toEqual([])
})

test('a box that does not run is opened, and left as it was', async () => {
  const { box } = await patient()
  const { port } = box.smtp
  await box.app.stop()
  const other = createServer().listen(port, '127.0.0.1')
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  const { code, seen: found } = await seen({ ...box.env, PILLARBOX_SMTP__LISTEN: `127.0.0.1:${port}` }, box.directory)
  expect(code).toBe(1)
  expect(found.lines).toContainEqual(expect.objectContaining({ name: 'ports', subject: 'box', status: 'warn' }))
  // another program has its port
  expect(found.lines.find(({ subject }) => subject === `smtp 127.0.0.1:${port}`)).toMatchObject({
    status: 'fail',
    message: 'Another program uses the port.',
  })
  expect(found.lines.map(({ name }) => name)).toEqual(expect.arrayContaining(['store', 'queue', 'mx']))
  other.close()
  await box.restart()
  expect((await box.call('GET', '/v1/doctor')).status).toBe(200)
})

test('a box that cannot be opened is looked at from outside: a wrong master key', async () => {
  const { box } = await patient()
  await box.app.stop()
  const file = join(`${box.env['PILLARBOX_DATA_DIR']!}-keys`, 'master.key')
  const right = readFileSync(file)
  writeFileSync(file, `${randomBytes(32).toString('base64')}\n`)
  const { code, seen: found } = await seen(box.env, box.directory)
  expect(code).toBe(1)
  const fault = found.lines.find(({ name, status }) => name === 'data' && status === 'fail')
  expect(fault).toMatchObject({ status: 'fail', message: expect.stringContaining(`${file} is not the master key`) })
  expect(found.lines.map(({ name }) => name)).toEqual(expect.arrayContaining(['permissions', 'disk', 'ports', 'helo']))
  writeFileSync(file, right)
  await box.restart()
})

test('settings that cannot be read are the fault, each with its place', async () => {
  const home = directory()
  writeFileSync(join(home, 'pillarbox.yaml'), 'hostname: mx.example.com\nhttp:\n  lisen: 127.0.0.1:8080\nmin_free: much\n')
  const { code, seen: found } = await seen({}, home)
  expect(code).toBe(1)
  expect(found.lines).toMatchObject([
    {
      name: 'config',
      subject: 'pillarbox.yaml:3:3',
      status: 'fail',
      message: expect.stringContaining('did you mean http.listen?'),
    },
    { name: 'config', subject: 'pillarbox.yaml:4:11', status: 'fail', message: expect.stringContaining('must be a size') },
  ])
  const words = await doctor({}, home)
  expect(words).toMatchObject({ code: 1, errors: '' })
  expect(words.output).toContain('FAIL  config  pillarbox.yaml:3:3')
})

test('the place of a fault in the settings is whole: a file whose name has a space', async () => {
  const home = directory()
  const file = join(home, 'my box.yaml')
  writeFileSync(file, 'min_free: much\n')
  const { seen: found } = await seen({ PILLARBOX_CONFIG: file }, home)
  expect(found.lines).toMatchObject([{ subject: `${file}:1:11`, message: expect.stringMatching(/^min_free: must be a size/) }])
})

test('where there is no box none is made', async () => {
  const home = directory()
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port } = free.address() as AddressInfo
  free.close()
  const env = {
    PILLARBOX_HTTP__LISTEN: `127.0.0.1:${port}`,
    PILLARBOX_SMTP__LISTEN: '127.0.0.1:0',
    PILLARBOX_DNS__SERVERS: '127.0.0.1:9',
  }
  const { code, seen: found } = await seen(env, home, '--data', join(home, 'nothing'))
  expect(code).toBe(1)
  expect(found.lines.find(({ name }) => name === 'data')).toMatchObject({ status: 'fail', message: 'There is no box here.' })
  expect(found.lines.find(({ subject }) => subject === `http 127.0.0.1:${port}`)).toMatchObject({ status: 'pass' })
  expect(found.lines.find(({ name }) => name === 'disk')).toMatchObject({ status: 'pass' })
  expect(() => readFileSync(join(home, 'nothing', 'state.json'))).toThrow('ENOENT')
})

test('a wrong flag is status 2', async () => {
  expect(await doctor({}, directory(), '--colour')).toMatchObject({ code: 2, output: '' })
})

test('who may not look into a box hears so, with the way to one who may, and exit status 2', async () => {
  // only root can be somebody else
  if (process.geteuid?.() !== 0) return
  const { box } = await patient()
  await box.app.stop()
  const data = box.env['PILLARBOX_DATA_DIR']!
  chmodSync(box.directory, 0o755)
  chownSync(data, 65_534, 65_534)
  const words = ['--reuid=61234', '--regid=61234', '--clear-groups', process.execPath, program, 'doctor', '--json']
  const { code, output } = await run('setpriv', words, { env: box.env, cwd: '/' })
  expect(code).toBe(2)
  const { lines } = JSON.parse(output.toString()) as Seen
  expect(lines.find(({ name }) => name === 'data')).toMatchObject({ status: 'fail', fix: 'As root: pillarbox doctor' })
  expect(lines.map(({ name }) => name)).toContain('disk')
  chownSync(data, 0, 0)
  await box.restart()
})
