import { exits } from './refuse.ts'

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
