import { destination, pino, stdTimeFunctions } from 'pino'
import type { DestinationStream, Logger } from 'pino'

/** One JSON object a line. Never a secret, never a message body: the paths below are the last guard, not the first. */
export type Log = Logger

const redact = ['authorization', 'cookie', 'secret', 'password', 'key', 'token', 'body', 'raw', 'encrypted_data']

/** Octets of log that wait to be written together, and how long they wait at most, in milliseconds. */
const buffer = { minLength: 4096, pause: 200 }

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
  const output = destination({ dest: 1, sync: false, minLength: buffer.minLength })
  setInterval(() => output.flush(), buffer.pause).unref()
  process.on('exit', () => output.flushSync())
  return output
}
