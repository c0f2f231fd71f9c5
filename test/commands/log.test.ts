import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ambient } from '../support/ambient.ts'
import { folder } from '../support/folder.ts'
import { pillarbox, type Said } from '../support/pillarbox.ts'

const at = (second: number): string => new Date(Date.UTC(2026, 10, 22, 10, 0, second)).toISOString()
const line = (second: number, msg: string, fields: object): string =>
  JSON.stringify({ level: 'info', time: at(second), part: 'smtp', ...fields, msg })

const box = [
  line(1, 'recipient refused', { session: 'a.1', ip: '192.0.2.1', from: 'eve@far.test', to: 'nobody@box.test', code: 550 }),
  line(2, 'recipient refused', { session: 'b.1', ip: '192.0.2.2', from: 'sam@far.test', to: 'nobody@box.test', code: 550 }),
  line(3, 'message taken', {
    session: 'a.1',
    queue_id: 'a.1',
    ip: '192.0.2.1',
    from: 'eve@far.test',
    to: ['ada@box.test'],
    message_id: '<1@far.test>',
  }),
  line(4, 'request', { part: 'http', route: '/v1/emails' }),
  line(5, 'webhook attempt', { part: 'webhooks', queue_id: 'dlv_1', event: 'email.received', message_id: '<1@far.test>' }),
]

async function log(input: string, ...words: string[]): Promise<Said> {
  return pillarbox({ env: {}, directory: folder() }, ['log', '--file', '-', ...words], input)
}

/** The times of the lines that were shown. */
function seconds({ output }: Said): number[] {
  const lines = output.split('\n').filter((text) => text !== '')
  return lines.map((text) => new Date((JSON.parse(text) as { time: string }).time).getUTCSeconds())
}

test.each([
  [
    ['--message-id', '1@far.test'],
    [1, 3, 5],
  ],
  [
    ['--message-id', '<1@far.test>'],
    [1, 3, 5],
  ],
  [
    ['--to', 'Ada@Box.test'],
    [1, 3, 5],
  ],
  [
    ['--from', '@far.test'],
    [1, 2, 3, 5],
  ],
  [['--ip', '192.0.2.2'], [2]],
  [
    ['--to', 'nobody@box.test', '--ip', '192.0.2.1'],
    [1, 3, 5],
  ],
  [
    ['--ip', '192.0.2.1', '--since', at(2)],
    [3, 5],
  ],
])('%j finds the lines of the message, those before it too', async (words, found) => {
  const said = await log(`${box.join('\n')}\n`, '--json', ...words)
  expect([said.status, seconds(said)]).toEqual([0, found])
})

test('of a connection with several messages, only the lines of the connection and those of the message are shown', async () => {
  const connection = [
    line(1, 'command refused', { session: 'a', ip: '192.0.2.1', code: 500 }),
    line(2, 'message taken', { session: 'a.1', queue_id: 'a.1', to: ['ada@box.test'], message_id: '<1@far.test>' }),
    line(3, 'message taken', { session: 'a.2', queue_id: 'a.2', to: ['bob@box.test'], message_id: '<2@far.test>' }),
    line(4, 'webhook attempt', { part: 'webhooks', queue_id: 'dlv_2', message_id: '<2@far.test>' }),
    line(5, 'webhook attempt', { part: 'webhooks', queue_id: 'dlv_1', message_id: '<1@far.test>' }),
    line(6, 'session closed', { session: 'a', ip: '192.0.2.1', code: 421 }),
  ].join('\n')
  expect(seconds(await log(connection, '--json', '--to', 'ada@box.test'))).toEqual([1, 2, 5, 6])
  expect(seconds(await log(connection, '--json', '--message-id', '2@far.test'))).toEqual([1, 3, 4, 6])
  expect(seconds(await log(connection, '--json', '--ip', '192.0.2.1'))).toEqual([1, 6])
})

test('characters that are not seen are written out, also those that an older version put into the log', async () => {
  const old = line(1, 'webhook attempt', { part: 'webhooks', to: 'ada@box.test', message_id: '<1\u202e\u009b\u200b@far.test>' })
  const shown = String.raw`<1\u{202e}\u{9b}\u{200b}@far.test>`
  const json = await log(old, '--json', '--to', 'ada@box.test')
  expect(JSON.parse(json.output)).toMatchObject({ message_id: shown })
  expect(json.output).not.toMatch(/[^\P{C}\n]/u)
  expect((await log(old, '--to', 'ada@box.test')).output).toContain(shown)
})

test('nothing found is status 1, a log that cannot be read is status 2, and both say so', async () => {
  const nothing = await log(`${box.join('\n')}\n`, '--to', 'carol@box.test')
  expect(nothing).toMatchObject({ status: 1, output: '', errors: 'Nothing was found in 5 lines of the log.\n' })
  const directory = folder()
  const absent = await pillarbox({ env: {}, directory }, ['log', '--file', 'none.log', '--to', 'ada@box.test'])
  expect(absent).toMatchObject({ status: 2, output: '', errors: 'none.log cannot be read: it does not exist.\n' })
  const unasked = await log('')
  expect(unasked).toMatchObject({ status: 2, errors: 'Specify the message: --message-id, --to, --from or --ip.\n' })
  const untimely = await log('', '--to', 'ada@box.test', '--since', 'yesterday')
  expect(untimely).toMatchObject({ status: 2, errors: expect.stringContaining('--since must be a time such as') })
})

test('a log that others kept is read as well: with priorities, with what they wrote before, as JSON of the journal', async () => {
  const [first, , taken] = box
  const kept = [
    `<6>${first}`,
    `Nov 22 10:00:03 vm pillarbox[12]: ${taken}`,
    `pillarbox-1  | ${box[4]}`,
    JSON.stringify({ PRIORITY: '6', MESSAGE: line(6, 'webhook attempt', { message_id: '<1@far.test>' }) }),
    JSON.stringify({ PRIORITY: '6', MESSAGE: [1, 2] }),
    'Pillarbox is running.',
    '{"half":',
    `{"a":"${'x'.repeat(2 * 1024 * 1024)}"}`,
  ]
  const said = await log(kept.join('\n'), '--json', '--message-id', '1@far.test')
  expect([said.status, seconds(said)]).toEqual([0, [1, 3, 5, 6]])
  expect(said.errors).toMatch(/^\d lines were not from the box, and skipped\.\n$/)
})

test('what a stranger wrote into the log does nothing to the terminal', async () => {
  const hostile = {
    from: 'eve@far.test',
    to: ['ada@box.test'],
    reply: '\u001b]0;owned\u0007\u009b31m\r\nforged line',
    helo: '\u202egnp.exe',
  }
  const { output } = await log(`${line(1, 'message taken', { ...hostile, ip: '192.0.2.1' })}\n`, '--from', 'eve@far.test')
  // eslint-disable-next-line no-control-regex -- the signs that terminals obey
  expect(output.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/)
  expect(output).toContain(String.raw`\u{1b}]0;owned`)
})

/** Runs the command with a journalctl of ours in front of the machine's. */
async function withJournal(script: string, ...words: string[]): Promise<Said & { asked: string }> {
  const directory = folder()
  mkdirSync(join(directory, 'bin'))
  writeFileSync(join(directory, 'bin', 'journalctl'), `#!/bin/sh\necho "$@" >> ${directory}/asked\n${script}\n`)
  chmodSync(join(directory, 'bin', 'journalctl'), 0o755)
  const env = { PATH: `${join(directory, 'bin')}:${ambient['PATH']}` }
  const said = await pillarbox({ env, directory }, ['log', ...words])
  return { ...said, asked: readFileSync(join(directory, 'asked'), 'utf8') }
}

test('without a file the journal of the unit is read, and whoever may not read it is told what to do', async () => {
  const read = await withJournal(`cat <<'EOF'\n${box.join('\n')}\nEOF`, '--json', '--to', 'ada@box.test', '--since', at(2))
  expect([read.status, seconds(read)]).toEqual([0, [3, 5]])
  expect(read.asked).toBe(`--unit pillarbox --output cat --all --no-pager --quiet --since @${Date.parse(at(2)) / 1000}\n`)
  const forbidden = await withJournal(
    'echo "No journal files were opened due to insufficient permissions." >&2; exit 1',
    '--to',
    'a@b.test',
  )
  expect(forbidden).toMatchObject({ status: 2, errors: expect.stringContaining('usermod -aG systemd-journal') })
  const quiet = await withJournal(
    'case "$*" in *--quiet*) ;; *) echo "Hint: You are currently not seeing messages from other users and the system." >&2;; esac',
    '--to',
    'a@b.test',
  )
  expect(quiet).toMatchObject({ status: 2, errors: expect.stringContaining('may not read the journal of pillarbox') })
  const none = await withJournal(
    'case "$*" in *--quiet*) ;; *) echo "No journal files were found." >&2;; esac',
    '--to',
    'a@b.test',
  )
  expect(none).toMatchObject({
    status: 2,
    errors: expect.stringMatching(/No journal files were found\. Pass the log as a file: pillarbox log --file/),
  })
  const empty = await withJournal('exit 0', '--to', 'a@b.test')
  expect(empty).toMatchObject({
    status: 1,
    errors: expect.stringMatching(/^Nothing was found in 0 lines of the log\. Does the box run as another unit \(--unit\)/),
  })
  const directory = folder()
  const without = await pillarbox({ env: { PATH: directory }, directory }, ['log', '--to', 'a@b.test'])
  expect(without).toMatchObject({
    status: 2,
    errors: expect.stringContaining('journalctl is not installed. Pass the log as a file'),
  })
})
