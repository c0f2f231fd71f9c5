import { statSync } from 'node:fs'
import { styleText } from 'node:util'
import type { Command } from 'commander'
import { version } from '../version.ts'
import { type Config, ConfigError, type ConfigProblem, controlSocket, formatSource } from '../config.ts'
import { about } from '../ops/doctor/check.ts'
import { type Line, summary } from '../ops/doctor/model.ts'
import { asRoot } from '../ops/doctor/remedies.ts'
import { answers, type BoxOptions, holdsBox, ofBox, settingsOf, withBox } from './support/box.ts'
import { actAsBoxUser, mustBeOpen } from './support/owner.ts'
import { exits } from './support/refuse.ts'
import { say } from './support/say.ts'

/** The results; `looked` is false where this user could not open the box. */
interface Findings {
  lines: Line[]
  looked: boolean
}

/** `pillarbox doctor`: for a running box, a stopped one, and one that cannot start. */
export function addDoctorCommand(program: Command): void {
  const command = program
    .command('doctor')
    .description(
      'run all checks now, and print problems with their fixes; exit status 0: nothing failed, 1: something failed, 2: this user may not check the box',
    )
  ofBox(command).action(async (options: BoxOptions) => {
    const { lines, looked } = await examined(options)
    const seen = summary(lines)
    say(options, { ...seen, lines }, formatLines(lines), coloured)
    if (!looked) process.exitCode = exits.usage
    else if (seen.status === 'fail') process.exitCode = exits.failed
  })
}

async function examined(options: BoxOptions): Promise<Findings> {
  let config: Config
  try {
    config = await settingsOf(options)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { lines: error.problems.map((problem) => configFault(problem)), looked: !isDenied(error) }
  }
  const besides = async (line: Line, looked = true): Promise<Findings> => {
    // loaded when needed: the checks of DNS and mail take longer to load than most commands to run
    const { seenFromOutside } = await import('../unopened.ts')
    return { lines: [...(await seenFromOutside(config, version)), line], looked }
  }
  const data = about('data', config.data_dir)
  if (process.geteuid?.() !== 0 && !isOpen(config.data_dir)) {
    return besides(data.fail('This user may not read it: only checks from outside were made.', asRoot), false)
  }
  if (!holdsBox(config.data_dir)) {
    const fix = 'pillarbox serve creates one; or specify its directory: --data, PILLARBOX_DATA_DIR'
    return besides(data.fail('There is no box here.', fix))
  }
  try {
    const socket = controlSocket(config)
    if (socket === undefined || !(await answers(socket))) {
      const other = await asItsUser(options, config)
      if (other !== undefined) return besides(other)
    }
    const { lines } = await withBox(options, (box) => box.call<{ lines: Line[] }>('POST', '/v1/doctor'))
    return { lines, looked: true }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const { openingRemedy } = await import('../unopened.ts')
    return besides(data.fail(message, openingRemedy(error, config)))
  }
}

/**
 * Switches to the user of a stopped box, as root would see no missing permissions, and would create files that the box cannot write.
 * Returns why that user cannot read the settings.
 */
async function asItsUser(options: BoxOptions, config: Config): Promise<Line | undefined> {
  const user = actAsBoxUser(config.data_dir)
  const owner = statSync(config.data_dir).uid
  const me = process.geteuid?.() ?? owner
  if (user === undefined && me !== 0 && owner !== me) {
    return about('data', config.data_dir).fail(`It belongs to user ${owner}, and this command runs as ${me}.`, asRoot)
  }
  try {
    await settingsOf(options)
    return undefined
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const { subject, message } = configFault(error.problems[0]!)
    const fix = `Make it readable for user ${me} (chown, chmod), then: pillarbox config check`
    return about('config', subject).fail(`The box runs as user ${me}, and then: ${message}`, fix)
  }
}

function isOpen(directory: string): boolean {
  try {
    mustBeOpen(directory)
    return true
  } catch {
    return false
  }
}

function isDenied({ cause }: ConfigError): boolean {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return process.geteuid?.() !== 0 && (code === 'EACCES' || code === 'EPERM')
}

function configFault(problem: ConfigProblem): Line {
  const message = problem.path ? `${problem.path}: ${problem.message}` : problem.message
  const fix = 'Correct it, then: pillarbox config check; all settings: pillarbox config example'
  return about('config', formatSource(problem)).fail(message, fix)
}

const colours = { PASS: 'green', WARN: 'yellow', FAIL: 'red' } as const

/** Colours the results on a terminal. */
function coloured(text: string): string {
  if (!process.stdout.isTTY || process.env['NO_COLOR']) return text
  return text.replaceAll(/^(?:PASS|WARN|FAIL)(?= )/gm, (word) => styleText(colours[word as keyof typeof colours], word))
}

function formatLines(lines: Line[]): string {
  const width = Math.max(...lines.map(({ name }) => name.length))
  const text = lines.map(({ name, subject, status, message, fix, box }) => {
    const where = box === undefined ? '' : `${box}: `
    const head = `${status.toUpperCase()}  ${name.padEnd(width)}  ${where}${subject}  ${message}`
    return fix === null ? head : `${head}\n      fix: ${fix.replaceAll('\n', '\n           ')}`
  })
  const { pass, warn, fail } = summary(lines)
  return [...text, '', `${fail} failed, ${warn} warnings, ${pass} passed`].join('\n')
}
