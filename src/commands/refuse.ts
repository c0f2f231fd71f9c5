import { Fault } from '../core/fault.ts'
import { Failure } from './failure.ts'

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
