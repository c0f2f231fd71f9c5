import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { styleText } from 'node:util'
import type { Command } from 'commander'
import { version } from '../version.ts'
import { ConfigError, controlSocket } from '../config.ts'
import type { Config } from '../config.ts'
import { about, seenFromOutside, summary } from '../unopened.ts'
import type { Line } from '../unopened.ts'
import { answers, ofBox, settingsOf, withBox } from './box.ts'
import type { BoxOptions } from './box.ts'
import { mustBeOpen } from './owner.ts'
import { exits } from './refuse.ts'
import { say, withJson } from './say.ts'

type Options = BoxOptions & { json?: boolean }

/** `pillarbox doctor`: of a box that runs, of one that does not, and of one that cannot. */
export function addDoctorCommand(program: Command): void {
  const command = program
    .command('doctor')
    .description('look at the whole box now, and say what is not well and what mends it; exit status 1 when anything fails')
  withJson(ofBox(command)).action(async (options: Options) => {
    const lines = await examined(options)
    const seen = summary(lines)
    say(options, { ...seen, lines }, told(lines))
    if (seen.status === 'fail') process.exitCode = exits.failed
  })
}

async function examined(options: Options): Promise<Line[]> {
  let config: Config
  try {
    config = await settingsOf(options)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map((problem) => configFault(problem))
  }
  const trouble = await whyNotOpened(config)
  if (trouble) return [...(await seenFromOutside(config, version)), trouble]
  try {
    const { lines } = await withBox(options, (box) => box.call<{ lines: Line[] }>('POST', '/v1/doctor'))
    return lines
  } catch (error) {
    const line = about('data', config.data_dir)
    const message = error instanceof Error ? error.message : String(error)
    const fix = 'Do what the sentence says, or restore a backup: pillarbox restore FILE --data DIRECTORY'
    return [...(await seenFromOutside(config, version)), line.fail(message, fix)]
  }
}

/** `pillarbox.yaml:3:5 http.lisen: …`, or `PILLARBOX_HTTP__LISTEN: …` */
function configFault(problem: string): Line {
  const [, place = 'settings', message = problem] = /^(\S+:\d+:\d+|[\w./-]+):? (.*)$/s.exec(problem) ?? []
  return about('config', place).fail(message, 'Mend it, then: pillarbox config check; every setting: pillarbox config example')
}

async function whyNotOpened(config: Config): Promise<Line | undefined> {
  const { data_dir } = config
  const line = about('data', data_dir)
  try {
    mustBeOpen(data_dir)
  } catch (error) {
    return line.fail((error as Error).message, 'sudo pillarbox doctor')
  }
  if (!existsSync(join(data_dir, 'state.json'))) {
    return line.fail('There is no box here.', 'pillarbox serve makes one; or name its directory: --data, PILLARBOX_DATA_DIR')
  }
  const { uid } = statSync(data_dir)
  const me = process.geteuid?.() ?? uid
  const socket = controlSocket(config)
  if (uid === me || socket === undefined || (await answers(socket))) return undefined
  // what another user opens would be another's: the box could not come up again
  const message = `It belongs to user ${uid}, and this is ${me}: it was only looked at from outside.`
  return line.warn(message, `sudo -u '#${uid}' pillarbox doctor`)
}

const colours = { pass: 'green', warn: 'yellow', fail: 'red' } as const

function told(lines: Line[]): string {
  const coloured = process.stdout.isTTY && !process.env['NO_COLOR']
  const width = Math.max(...lines.map(({ name }) => name.length))
  const text = lines.map(({ name, subject, status, message, fix }) => {
    const word = status.toUpperCase()
    const head = `${coloured ? styleText(colours[status], word) : word}  ${name.padEnd(width)}  ${subject}  ${message}`
    return fix === null ? head : `${head}\n      fix: ${fix.replaceAll('\n', '\n           ')}`
  })
  const { pass, warn, fail } = summary(lines)
  return [...text, '', `${fail} failed, ${warn} to be looked at, ${pass} well`].join('\n')
}
