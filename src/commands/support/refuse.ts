import { Fault } from '../../core/fault.ts'
import type { Command } from 'commander'
import { nearest } from '../../core/nearest.ts'

/** Exit statuses: 1, it could not be done; 2, the command line is wrong; 78, the configuration or the data directory forbids it (EX_CONFIG). */
export const exits = { failed: 1, usage: 2, config: 78 }

/** Says in sentences why a command cannot go on, and ends the process; as JSON to those who asked for that. */
export function refuse(error: unknown, status = isForeseen(error) ? exits.failed : exits.config): never {
  const message = error instanceof Error ? error.message : String(error)
  const { code, param } = isForeseen(error) ? error : {}
  const text = wantsJson() ? JSON.stringify({ error: { message, code, param } }) : message
  process.stderr.write(`${text}\n`)
  process.exit(status)
}

/** What commander says of a wrong command line, as JSON to those who asked for that. */
export function usageError(text: string): string {
  if (!wantsJson()) return text
  const message = text
    .replace(/^error: /, '')
    .trim()
    .replaceAll('\n', ' ')
  return `${JSON.stringify({ error: { message, code: 'invalid_request' } })}\n`
}

function isForeseen(error: unknown): error is Failure | Fault {
  return error instanceof Failure || error instanceof Fault
}

function wantsJson(): boolean {
  return process.argv.includes('--json')
}

/** Why a command could not do what it was asked: a sentence that says what is wrong and what would be right. */
export class Failure extends Error {
  /** A stable word for programs. */
  readonly code: string | undefined
  /** Which argument or field is wrong. */
  readonly param: string | undefined

  constructor(message: string, code?: string, param?: string) {
    super(message)
    this.name = 'Failure'
    this.code = code
    this.param = param
  }
}

/** Ends the process when the words of a command line name no command: `serve` is what runs without one, and would take any word for its own. */
export function mustBeKnown(program: Command, words: readonly string[]): void {
  if (words.some((word) => ['-h', '--help', '-V', '--version'].includes(word))) return
  const first = words.findIndex((word, index) => !word.startsWith('-') && !['-c', '--config'].includes(words[index - 1] ?? ''))
  const asked = words[first] === 'help' ? words[first + 1] : words[first]
  if (asked === undefined) return
  const names = ['help', ...program.commands.map((command) => command.name())]
  if (!names.includes(asked)) {
    const near = nearest(asked, names)
    const meant = near === undefined ? 'Those there are: pillarbox --help' : `(Did you mean ${near}?)`
    program.error(`error: unknown command '${asked}'\n${meant}`, { exitCode: exits.usage })
  }
  if (first > 0) {
    const right = ['pillarbox', asked, ...words.toSpliced(first, 1)].join(' ')
    program.error(`error: the command comes before its options: ${right}`, { exitCode: exits.usage })
  }
}
