import { pino, stdTimeFunctions } from 'pino'
import type { DestinationStream, Logger } from 'pino'

/** One JSON object a line. Never a secret, never a message body: the paths below are the last guard, not the first. */
export type Log = Logger

const redact = ['authorization', 'cookie', 'secret', 'password', 'key', 'token', 'body', 'raw', 'encrypted_data']

/** A logger for the whole box; parts take `log.child({ part: 'smtp' })`. */
export function createLog(level: string, destination?: DestinationStream): Log {
  const options = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: redact.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
  }
  return destination ? pino(options, destination) : pino(options)
}
