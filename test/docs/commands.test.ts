import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Config } from '../../src/config.ts'
import { besidePath, sections, settingsOf } from '../../src/config/settings.ts'
import { callsIn, commands, wrongWith } from './commands.ts'
import { codeOf, pages, read, root } from './pages.ts'

test('every command that a page names is there, and so is every flag it is given', () => {
  const calls = [...pages].flatMap(([path, page]) =>
    codeOf(page).flatMap((code) => callsIn(code).map((call) => [path, call] as const)),
  )
  expect(commands.size).toBeGreaterThan(40)
  expect(calls.length).toBeGreaterThan(70)
  expect(calls.flatMap(([path, call]) => (wrongWith(call) === null ? [] : [`${path}: ${call}: ${wrongWith(call)}`]))).toEqual([])
})

test('a command that is none, or a flag, would be found', () => {
  expect(callsIn('cd /opt && sudo -u pillarbox pillarbox restore box.tar --data DIR')).toEqual(['restore box.tar --data DIR'])
  expect(callsIn('systemctl restart pillarbox')).toEqual([])
  expect(wrongWith('restor box.tar')).toContain('no command')
  expect(wrongWith('queue purge')).toContain('no command')
  expect(wrongWith('queue list --kinds email')).toContain('--kinds')
  expect(wrongWith('queue list --kind email')).toBeNull()
})

/** Units of other programs that pages and fixes speak of. */
const foreign = new Set(['postfix', 'exim4', 'nginx', 'systemd-timesyncd', 'haproxy', 'etcd', 'patroni'])

const ours = new Set(readdirSync(`${root}systemd`))

test('units that a page names are there', () => {
  const named = [...pages].flatMap(([path, page]) => unitsIn(codeOf(page).join('\n')).map((unit) => [path, unit] as const))
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter(([, unit]) => !isUnit(unit))).toEqual([])
})

test('what the doctor says mends a line can be done: its commands and units are there, and so are its settings', () => {
  const files = readdirSync(`${root}src/ops/doctor`, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => `src/ops/doctor/${file}`)
  const texts = [...files, 'src/unopened.ts', 'src/commands/doctor.ts'].flatMap((file) =>
    [...read(file).matchAll(/'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`/g)].map(([, plain, template]) => plain ?? template!),
  )
  const page = codeOf(pages.get('docs/troubleshooting.md')!)
  const calls = [...texts, ...page].flatMap(loose)
  expect(calls.length).toBeGreaterThan(8)
  expect(calls.flatMap((call) => wrongWith(call) ?? [])).toEqual([])
  const units = [...texts, ...page].flatMap(unitsIn)
  expect(units.length).toBeGreaterThan(2)
  expect(units.filter((unit) => !isUnit(unit))).toEqual([])
})

test('settings that a page names are there', () => {
  const all = settingsOf(sections(Config))
  const known = new Set(all.flatMap((one) => [one.name, ...(one.secret ? [besidePath(one).join('.')] : [])]))
  const groups = new Set([...known].flatMap((name) => name.split('.').map((_, index, path) => path.slice(0, index).join('.'))))
  const heads = new Set([...groups].filter((name) => name !== '' && !name.includes('.')))
  const named = [...pages].flatMap(([path, page]) =>
    codeOf(page).flatMap((code) => {
      const [, name] = /^([a-z]\w*(?:\.[a-z_]\w*)+)(?:: .*)?$/.exec(code) ?? []
      return name !== undefined && heads.has(name.split('.')[0]!) ? [[path, name] as const] : []
    }),
  )
  expect(named.length).toBeGreaterThan(100)
  expect(named.filter(([, name]) => !known.has(name) && !groups.has(name) && !notSettings.has(name))).toEqual([])
})

/** What reads like a setting and is none: events, actions of the audit log, and a file. */
const notSettings = new Set([
  'account.stopped',
  'account.resumed',
  'sms.received',
  'sms.sent',
  'sms.delivered',
  'sms.failed',
  'sms.held',
  'sms.approved',
  'sms.rejected',
  'sms.expired',
  'doctor.changed',
  'sms.read',
  'sms.listed',
  'sms.deleted',
  'sms.restored',
  'backup.started',
  'account.created',
  'sms.jsonl',
])

/** Commands of ours in a sentence: up to a word that is none of theirs. */
function loose(text: string): string[] {
  return [...text.matchAll(/(?:^|[ (:#'])pillarbox ([a-z-]+(?: [a-z-]+)?(?: --[a-z-]+| [A-Z]+)*)/g)]
    .map(([, call]) => call!)
    .filter((call) => commands.has(call.split(' ')[0]!))
    .map((call) => (commands.has(call.split(' ').slice(0, 2).join(' ')) ? call : call.replace(/^(\S+) [a-z-]+$/, '$1')))
}

function unitsIn(text: string): string[] {
  return [
    ...text.matchAll(
      /systemctl (?:start|stop|restart|reload|status|edit|enable --now|disable --now) ([\w@.-]+(?: [\w@-]+\.(?:service|timer))*)/g,
    ),
  ].flatMap(([, names]) => names!.split(' '))
}

function isUnit(unit: string): boolean {
  return foreign.has(unit) || ours.has(unit) || ours.has(`${unit}.service`)
}
