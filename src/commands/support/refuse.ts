import { DatabaseAway, Fault } from '../../core/fault.ts'
import type { Command } from 'commander'
import { visible } from '../../core/log.ts'
import { nearest } from '../../core/text.ts'
import { json, remark } from './say.ts'

/** Exit statuses: 1, the command failed; 2, the command line is wrong; 78, the configuration or the data directory is wrong (EX_CONFIG). */
export const exits = { failed: 1, usage: 2, config: 78 }

/** Prints an error as sentences, or as JSON on request, and ends the process. */
export function refuse(error: unknown, status = mayPass(error) ? exits.failed : exits.config): never {
  const message = error instanceof Error ? error.message : String(error)
  const { code, param } = isForeseen(error) ? error : {}
  remark(`${wantsJson() ? json({ error: { message, code, param } }, 0) : message}\n`)
  process.exit(status)
}

/** Commander's error about a command line, as JSON on request. */
export function usageError(text: string): string {
  if (!wantsJson()) return visible(text)
  const message = text
    .replace(/^error: /, '')
    .trim()
    .replaceAll('\n', ' ')
  return `${json({ error: { message, code: 'invalid_request' } }, 0)}\n`
}

/** True if the command may succeed later, or with other words, without a change of settings or data. */
function mayPass(error: unknown): boolean {
  return isForeseen(error) || error instanceof DatabaseAway
}

function isForeseen(error: unknown): error is Failure | Fault {
  return error instanceof Failure || error instanceof Fault
}

function wantsJson(): boolean {
  return process.argv.includes('--json')
}

/** Why a command failed: a sentence with a remedy. */
export class Failure extends Error {
  /** A stable error code for programs. */
  readonly code: string | undefined
  /** The wrong argument or field. */
  readonly param: string | undefined

  constructor(message: string, code?: string, param?: string) {
    super(message)
    this.name = 'Failure'
    this.code = code
    this.param = param
  }
}

/** Ends the process for an unknown command: `serve` is the default command, and would accept any word as its argument. */
export function mustBeKnown(program: Command, words: readonly string[]): void {
  if (words.some((word) => ['-h', '--help', '-V', '--version'].includes(word))) return
  const first = words.findIndex((word, index) => !word.startsWith('-') && !['-c', '--config'].includes(words[index - 1] ?? ''))
  const asked = words[first] === 'help' ? words[first + 1] : words[first]
  if (asked === undefined) return
  const names = ['help', ...program.commands.map((command) => command.name())]
  if (!names.includes(asked)) {
    const near = nearest(asked, names)
    const meant = near === undefined ? 'List the commands: pillarbox --help' : `(Did you mean ${near}?)`
    program.error(`error: unknown command '${asked}'\n${meant}`, { exitCode: exits.usage })
  }
  if (first > 0) {
    const right = ['pillarbox', asked, ...words.toSpliced(first, 1)].join(' ')
    program.error(`error: the command comes before its options: ${right}`, { exitCode: exits.usage })
  }
}

/**
 * The reader of the output may close it before its end (`| head`), or its disk may be full: this sets the exit status, without a stack
 * trace.
 */
export function unread(output: NodeJS.WriteStream): void {
  output.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    process.exitCode = exits.failed
    if (code !== 'EPIPE') process.stderr.write(`The output could not be written: ${message}.\n`)
  })
}
