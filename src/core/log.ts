import { destination, pino, stdTimeFunctions } from 'pino'
import type { DestinationStream, Logger } from 'pino'

/** One JSON object a line. Never a secret, never a message body: the paths below are the last guard, not the first. */
export type Log = Logger

const redact = ['authorization', 'cookie', 'secret', 'password', 'key', 'token', 'body', 'raw', 'encrypted_data']

/** Octets of log that wait to be written together, how long they wait at most, in milliseconds, and how many wait while nothing can be written. */
const buffer = { minLength: 4096, pause: 200, maxLength: 4 * 1024 * 1024 }

/**
 * A logger for the whole box; parts take `log.child({ part: 'smtp' })`. Lines go to standard output a few at a time, as one write a
 * line costs more than many calls do; what is buffered is written when the process ends.
 */
export function createLog(level: string, sink: DestinationStream = standardOutput()): Log {
  const options = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: redact.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
  }
  return pino(options, sink)
}

function standardOutput(): DestinationStream {
  const { minLength, maxLength, pause } = buffer
  const output = destination({ dest: 1, sync: false, minLength, maxLength })
  let failing = false
  // a log that finds no room must not end the box: it is written once there is some
  output.on('error', () => (failing = true)).on('write', () => (failing = false))
  setInterval(() => output.flush(), pause).unref()
  // before pino's own look at the end, which would try for ever
  process.prependListener('exit', () => (failing ? output.destroy() : output.flushSync()))
  return output
}
