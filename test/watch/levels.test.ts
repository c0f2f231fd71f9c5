import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/config.ts'
import { createLog, loggable, modules, setLevels } from '../../src/core/log.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { Dialogue } from '../support/smtp.ts'

const program = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

function directory(): string {
  const made = mkdtempSync(join(tmpdir(), 'pillarbox-levels-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

test('a level is of one module, of what is made of its logger, and changes while they live', () => {
  const written: string[] = []
  const log = createLog({ level: 'info', levels: { smtp: 'debug' } }, { write: (line) => void written.push(line) })
  const smtp = log.child({ part: 'smtp' })
  const journal = smtp.child({}, { redact: [] })
  const store = log.child({ part: 'store' })
  const say = (): string[] => {
    written.length = 0
    for (const [name, one] of Object.entries({ log, smtp, journal, store })) one.debug(name)
    return written.map((line) => (JSON.parse(line) as { msg: string }).msg)
  }
  expect(say()).toEqual(['smtp', 'journal'])
  setLevels(log, { level: 'info', levels: { store: 'trace' } })
  expect(say()).toEqual(['store'])
  setLevels(log, { level: 'debug', levels: { smtp: 'warn' } })
  expect(say()).toEqual(['log', 'store'])
})

test('HUP changes the level of one module', async () => {
  const home = directory()
  const file = join(home, 'pillarbox.yaml')
  writeFileSync(file, 'log:\n  level: info\n')
  const box = boxProcess({ ...testBox, PILLARBOX_DATA_DIR: join(home, 'data') }, ['serve', '--config', file])
  const { smtp } = await box.said('started')
  const greeted = async (): Promise<void> => {
    const client = await Dialogue.hello(smtp[0].port as number)
    await client.say('QUIT')
    await client.end()
  }
  await greeted()
  writeFileSync(file, 'log:\n  level: info\n  levels:\n    smtp: debug\n')
  box.child.kill('SIGHUP')
  await box.said('settings reloaded')
  expect(box.output()).not.toContain('SMTP command')
  await greeted()
  expect(await box.said('SMTP command')).toMatchObject({ level: 'debug', part: 'smtp', command: 'EHLO client.test' })
  const levels = box.output().match(/"level":"debug".*/g)!
  expect(levels.filter((line) => !line.includes('"part":"smtp"'))).toEqual([])
  expect(await box.end('SIGTERM')).toBe(0)
})

test('a module that there is not is refused with all that there are', async () => {
  const home = directory()
  const file = join(home, 'pillarbox.yaml')
  writeFileSync(file, 'log:\n  levels:\n    stmp: debug\n')
  const refused = loadConfig({ file, env: {}, cwd: home })
  await expect(refused).rejects.toThrow(`${file}:3:5 log.levels.stmp: is not a setting, must be one of account, audit, backup, `)
  await expect(refused).rejects.toThrow(modules.join(', '))
  writeFileSync(file, 'log:\n  levels:\n    smtp: loud\n')
  await expect(loadConfig({ file, env: {}, cwd: home })).rejects.toThrow(/log\.levels\.smtp: must be one of trace, debug, info/)
  const set = await loadConfig({ env: { PILLARBOX_LOG__LEVELS__SMTP: 'debug' }, cwd: directory() })
  expect(set.log.levels).toEqual({ smtp: 'debug' })
})

test('each line has its priority before it where the journal reads, and only there', async () => {
  const home = directory()
  const file = join(home, 'pillarbox.yaml')
  writeFileSync(file, 'log:\n  level: debug\n')
  const env = { ...testBox, PILLARBOX_DATA_DIR: join(home, 'data') }
  // as systemd does it: the device and inode of what the lines go to
  const script = `exec 3>&1; export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/3); exec "${process.execPath}" "${program}" serve --config "${file}" 3>&-`
  const box = boxProcess(env, ['-c', script], home, 'sh')
  const lines = (): string[] =>
    box
      .output()
      .split('\n')
      .filter((line) => line.includes('"msg"'))
  await expect.poll(() => box.output()).toContain('"msg":"started"')
  writeFileSync(file, 'log:\n  level: debug\nhostname: other.test\n')
  box.child.kill('SIGHUP')
  await expect.poll(() => box.output()).toContain('require a restart')
  writeFileSync(file, 'nonsense: true\n')
  box.child.kill('SIGHUP')
  await expect.poll(() => box.output()).toContain('could not be reloaded')
  await box.end('SIGTERM')
  const priorities = { debug: '<7>', info: '<6>', warn: '<4>', error: '<3>' }
  const seen = new Set<string>()
  for (const line of lines()) {
    const { level } = JSON.parse(line.slice(3)) as { level: keyof typeof priorities }
    expect(line.slice(0, 3)).toBe(priorities[level])
    seen.add(level)
  }
  expect(seen.size).toBeGreaterThanOrEqual(3)
  // the variable of another stream, as in a shell under a service
  const elsewhere = boxProcess({ ...env, JOURNAL_STREAM: '1:1' })
  expect(await elsewhere.said('started')).toMatchObject({ level: 'info' })
  await elsewhere.end('SIGTERM')
})

test('what a stranger writes is bounded, and shows itself in place of being obeyed', () => {
  expect(loggable('ada@far.test', 320)).toBe('ada@far.test')
  expect(loggable('x'.repeat(10), 4)).toBe('xxxx…')
  expect(loggable('a\u001b[31m\u009b\r\n\u2028\u202eb', 100)).toBe(String.raw`a\u{1b}[31m\u{9b}\u{d}\u{a}\u{2028}\u{202e}b`)
  expect(loggable('a\u061c\u200b\ufeff\u00ad\u{e0041}b', 100)).toBe(String.raw`a\u{61c}\u{200b}\u{feff}\u{ad}\u{e0041}b`)
  expect(loggable('josé@例え.test', 100)).toBe('josé@例え.test')
})

test('no line has a character that is not seen, in whatever field and of whatever module', () => {
  const written: string[] = []
  const log = createLog('info', { write: (line) => void written.push(line) })
  const unseen = '\u202e\u2066\u200f\u0085\u009b\u007f\u061c\u200b\u2028\u00ad\u{e0041}'
  const shown = String.raw`\u{202e}\u{2066}\u{200f}\u{85}\u{9b}\u{7f}\u{61c}\u{200b}\u{2028}\u{ad}\u{e0041}`
  const error = new Error(`no ${unseen}`)
  log
    .child({ part: 'smtp', [`of${unseen}`]: unseen })
    .warn({ message_id: `<${unseen}>`, to: [{ name: unseen }], err: error }, unseen)
  expect(written[0]).not.toMatch(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/u)
  const { err, ...line } = JSON.parse(written[0]!) as Record<string, { stack: string }>
  expect(line).toMatchObject({ [`of${shown}`]: shown, message_id: `<${shown}>`, to: [{ name: shown }], msg: shown })
  // a stack has its lines
  expect(err!.stack).toContain(`no ${shown}\n    at `)
  log.info({ name: 'josé@例え.test', path: String.raw`C:\u{202e}` }, 'x')
  expect(JSON.parse(written[1]!)).toMatchObject({ name: 'josé@例え.test', path: String.raw`C:\u{202e}` })
})
