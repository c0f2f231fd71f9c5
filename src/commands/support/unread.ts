import { exits } from './refuse.ts'

/** Whoever reads the answer may go away before its end (`| head`), or keep it where there is no room: told by the exit status, not by a stack. */
export function unread(output: NodeJS.WriteStream): void {
  output.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    process.exitCode = exits.failed
    if (code !== 'EPIPE') process.stderr.write(`The answer could not be written: ${message}.\n`)
  })
}
