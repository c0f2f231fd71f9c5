import { fstatSync } from 'node:fs'
import { destination, type DestinationStream, type Logger, pino, stdTimeFunctions, symbols } from 'pino'

/** One JSON object a line. Never a secret, never a message body: the paths below are the last guard, not the first. */
export type Log = Logger

/** What the box logs as, in the field `part` of each line; `log.levels` has a level for each. */
export const modules = [
  'account',
  'backup',
  'certificates',
  'cron',
  'delivery',
  'doctor',
  'domains',
  'figures',
  'http',
  'jobs',
  'outbound',
  'realtime',
  'reporting',
  'retention',
  'sms',
  'smtp',
  'store',
  'submission',
  'tokens',
  'trust',
  'webhooks',
] as const
export type LogModule = (typeof modules)[number]

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** The least important line that is still written: in general, and of single modules. */
export interface Levels {
  level: string
  levels?: { [module in LogModule]?: string | undefined } | undefined
}

const redact = ['authorization', 'cookie', 'secret', 'password', 'key', 'token', 'body', 'raw', 'encrypted_data']

/** Octets of log that wait to be written together, how long they wait at most, in milliseconds, and how many wait while nothing can be written. */
const buffer = { minLength: 4096, pause: 200, maxLength: 4 * 1024 * 1024 }

/** The loggers that were made of one logger, whose levels change together. */
const families = new WeakMap<Log, { levels: Levels; children: Set<WeakRef<Log>> }>()

/**
 * A logger for the whole box; modules take `log.child({ part: 'smtp' })`. Lines go to standard output a few at a time, as one write a
 * line costs more than many calls do; what is buffered is written when the process ends.
 */
export function createLog(levels: Levels | string, sink: DestinationStream = standardOutput()): Log {
  const family = { levels: typeof levels === 'string' ? { level: levels } : levels, children: new Set<WeakRef<Log>>() }
  const options = {
    level: family.levels.level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: redact.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
    onChild: (child: Log) => {
      family.children.add(new WeakRef(child))
      child.level = levelFor(child, family.levels)
    },
  }
  const log = pino(options, sink)
  families.set(log, family)
  return log
}

/** Changes the levels of a logger that `createLog` made, and of all that were made of it. */
export function setLevels(log: Log, levels: Levels): void {
  log.level = levels.level
  const family = families.get(log)
  if (!family) return
  family.levels = levels
  for (const reference of family.children) {
    const child = reference.deref()
    if (child) child.level = levelFor(child, levels)
    else family.children.delete(reference)
  }
}

function levelFor(child: Log, { level, levels }: Levels): string {
  const part: unknown = child.bindings()['part']
  return levels?.[part as LogModule] ?? level
}

/** Whether the journal of systemd reads standard output; `stream` is `$JOURNAL_STREAM`, the device and inode of what it reads (systemd.exec(5)). */
export function isReadByJournal(stream: string | undefined): boolean {
  if (!stream) return false
  try {
    const { dev, ino } = fstatSync(1, { bigint: true })
    return stream === `${dev}:${ino}`
  } catch {
    return false
  }
}

/** The priorities of syslog by pino's levels, as sd-daemon(3) writes them before a line. */
const priorities: Record<number, string> = { 10: '<7>', 20: '<7>', 30: '<6>', 40: '<4>', 50: '<3>', 60: '<2>' }

/** Lines for standard output; the journal gets the priority of each before it, which it takes off. */
export function standardOutput({ journal = false } = {}): DestinationStream {
  const { minLength, maxLength, pause } = buffer
  const output = destination({ dest: 1, sync: false, minLength, maxLength })
  let failing = false
  // a log that finds no room must not end the box: it is written once there is some
  output.on('error', () => (failing = true)).on('write', () => (failing = false))
  setInterval(() => output.flush(), pause).unref()
  // before pino's own look at the end, which would try for ever
  process.prependListener('exit', () => (failing ? output.destroy() : output.flushSync()))
  return journal ? withPriorities(output) : output
}

function withPriorities(output: DestinationStream): DestinationStream {
  const sink = {
    // pino then says the level of each line before it writes it
    [symbols.needsMetadataGsym]: true,
    lastLevel: 30,
    write: (line: string): void => output.write(`${priorities[sink.lastLevel] ?? '<6>'}${line}`),
  }
  return sink
}

const silence = (): void => undefined

/** A logger for a library, of which only the level debug is heard. */
export function debugOnly(debug: (data?: unknown, ...texts: (string | undefined)[]) => void) {
  return { trace: silence, debug, info: silence, warn: silence, error: silence, fatal: silence }
}

/** Text of a stranger's for a line: at most so many characters, and none that a terminal obeys or that turns the order of the others. */
export function loggable(text: string, most: number): string {
  const short = text.length > most ? `${text.slice(0, most)}…` : text
  return short.replaceAll(unsafe, (sign) => `\\u{${sign.codePointAt(0)!.toString(16)}}`)
}

const unsafe = /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
