import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Asker, commandsOf, owner, stoppedBox, type StoppedBox } from '../../support/stopped-box.ts'

// each test runs the program some times, and a busy machine takes its time to load it
let box: StoppedBox

beforeAll(async () => void (box = await stoppedBox()))
afterAll(() => box.close())

interface Fault {
  what: string
  /** Breaks it, as root beside the box. */
  harm: () => string
  /** The line that names it. */
  name: string
  subject: () => string
  message: RegExp
  /** What the operator puts for a word of the remedy. */
  given?: () => Record<string, string>
}

const faults: Fault[] = [
  {
    what: 'a data directory that others can read',
    harm: () => `chmod 755 ${box.data}`,
    name: 'permissions',
    subject: () => box.data,
    message: /can be used by everyone/,
  },
  {
    what: 'a database of root',
    harm: () => `chown 0:0 ${box.data}/pillarbox.db`,
    name: 'data',
    subject: () => box.data,
    message: /pillarbox\.db/,
  },
  {
    what: 'a master key that others can read',
    harm: () => `chmod 644 ${box.keys}/master.key`,
    name: 'data',
    subject: () => box.data,
    message: /can be read by users other than its owner/,
  },
  {
    what: 'a keys directory of root',
    harm: () => `chown -R 0:0 ${box.keys}`,
    name: 'data',
    subject: () => box.data,
    message: /EACCES|permission|belongs to/,
  },
  {
    what: 'a database that may only be read',
    harm: () => `chmod 400 ${box.data}/pillarbox.db`,
    name: 'data',
    subject: () => box.data,
    message: /permission denied.*pillarbox\.db/,
  },
  {
    what: 'a wrong master key',
    harm: () => `head -c 32 /dev/urandom | base64 > ${box.keys}/master.key`,
    name: 'data',
    subject: () => box.data,
    message: /is not the master key/,
    given: () => ({ COPY: box.key }),
  },
  {
    what: 'a master key that is none',
    harm: () => `echo garbage > ${box.keys}/master.key`,
    name: 'data',
    subject: () => box.data,
    message: /is not a master key/,
    given: () => ({ COPY: box.key }),
  },
  {
    what: 'a missing master key',
    harm: () => `rm ${box.keys}/master.key`,
    name: 'data',
    subject: () => 'master.key',
    message: /The master key is missing: the box cannot be started/,
    given: () => ({ COPY: box.key }),
  },
  {
    what: 'a corrupt database',
    harm: () => `dd if=/dev/zero of=${box.data}/pillarbox.db bs=4096 seek=2 count=20 conv=notrunc status=none`,
    name: 'data',
    subject: () => box.data,
    message: /pillarbox\.db is damaged/,
    given: () => ({ FILE: box.backup }),
  },
  {
    what: 'a truncated database',
    harm: () => `truncate -s 20000 ${box.data}/pillarbox.db`,
    name: 'data',
    subject: () => box.data,
    message: /pillarbox\.db is damaged/,
    given: () => ({ FILE: box.backup }),
  },
  {
    what: 'a deleted database',
    harm: () => `rm ${box.data}/pillarbox.db`,
    name: 'data',
    subject: () => box.data,
    message: /pillarbox\.db is missing/,
    given: () => ({ FILE: box.backup }),
  },
  {
    what: 'a broken state.json',
    harm: () => `cp -p ${box.data}/state.json ${box.data}/state.json.previous && echo '{' > ${box.data}/state.json`,
    name: 'data',
    subject: () => box.data,
    message: /state\.json is damaged/,
  },
  {
    what: 'a deleted state.json',
    harm: () => `cp -p ${box.data}/state.json ${box.data}/state.json.previous && rm ${box.data}/state.json`,
    name: 'data',
    subject: () => box.data,
    message: /state\.json is missing/,
  },
  {
    what: 'data that can only be read',
    harm: () => `mount -o remount,ro ${box.directory}/home`,
    name: 'data',
    subject: () => box.data,
    message: /read-only|EROFS|readonly/i,
  },
  {
    what: 'a full disk',
    harm: () => `head -c 62M /dev/zero > ${box.directory}/home/ballast || true`,
    name: 'disk',
    subject: () => box.data,
    message: /less than min_free/,
  },
]

test('a box that is as it should be is opened, by root as by its own user, and belongs to its user afterwards', async () => {
  for (const as of ['root', 'user'] as const) {
    const { lines } = await box.doctor(as)
    expect(lines.filter(({ name }) => ['data', 'permissions', 'disk', 'store'].includes(name))).not.toContainEqual(
      expect.objectContaining({ status: 'fail' }),
    )
    expect(lines.map(({ name }) => name)).toContain('queue')
  }
  await box.shell(`test -z "$(find ${box.data} ${box.keys} ! -user ${owner.uid})"`)
})

describe.each(faults)('$what', ({ harm, name, subject, message, given }) => {
  test('is named to root and to the user of the box, and gone once the remedy is applied as printed', async () => {
    await box.reset()
    await box.shell(harm())
    const fixes: string[] = []
    for (const as of ['root', 'user'] satisfies Asker[]) {
      const seen = await box.doctor(as)
      const line = seen.line(name, subject())
      expect([seen.code, line.status, line.message]).toEqual([1, 'fail', expect.stringMatching(message)])
      fixes.push(line.fix ?? '')
      expect(JSON.stringify(seen.lines)).not.toMatch(/\bsudo\b/)
    }
    expect(fixes[1]).toBe(fixes[0])
    if (name === 'disk') await box.shell(`rm ${box.directory}/home/ballast`)
    else await box.shell(commandsOf(fixes[0]!, given?.()))
    // what its own user can read root can
    const { lines } = await box.doctor('user')
    const wrong = lines.filter((line) => ['data', 'permissions', 'disk', 'store'].includes(line.name) && line.status === 'fail')
    expect(wrong).toEqual([])
  })
})

test('data of root beside keys of the user are named to root, and gone once the remedy is applied as printed', async () => {
  await box.reset()
  await box.shell(`chown -R 0:0 ${box.data}`)
  const line = (await box.doctor('root')).line('data', box.data)
  expect(line).toMatchObject({ status: 'fail', message: expect.stringContaining('belongs to another user') })
  await box.shell(commandsOf(line.fix ?? ''))
  for (const as of ['root', 'user'] satisfies Asker[]) {
    const { lines } = await box.doctor(as)
    expect(lines.filter(({ name, status }) => name === 'data' && status === 'fail')).toEqual([])
  }
})
