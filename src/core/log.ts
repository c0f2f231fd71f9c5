import { fstatSync } from 'node:fs'
import { destination, type DestinationStream, type Logger, pino, symbols } from 'pino'
import { iso } from './clock.ts'

/** One JSON object a line. No line may hold a secret or a message body; the redacted paths below are only the last protection. */
export type Log = Logger

/** The values of the field `part` of log lines; `log.levels` can set a level for each. */
export const modules = [
  'account',
  'audit',
  'backup',
  'certificates',
  'cron',
  'delivery',
  'doctor',
  'domains',
  'figures',
  'http',
  'jobs',
  'mcp',
  'outbound',
  'policy',
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

/** The minimum level of lines that are written: the default, and by module. */
interface Levels {
  level: string
  levels?: { [module in LogModule]?: string | undefined } | undefined
}

const redact = ['authorization', 'cookie', 'secret', 'password', 'key', 'token', 'body', 'raw', 'encrypted_data']

/** Bytes that are written at once, the longest delay in milliseconds, and the bytes that are buffered while standard output cannot be written. */
const buffer = { minLength: 12 * 1024, pause: 200, maxLength: 4 * 1024 * 1024 }

/** The children of each root logger; their levels change together. */
const families = new WeakMap<Log, { levels: Levels; children: Set<WeakRef<Log>> }>()

/**
 * A logger for the whole box; modules take `log.child({ part: 'smtp' })`. Lines are written to standard output in groups, because
 * one write a line costs more than many calls do. Buffered lines are written when the process ends.
 */
export function createLog(levels: Levels | string, sink: DestinationStream = standardOutput()): Log {
  const family = { levels: typeof levels === 'string' ? { level: levels } : levels, children: new Set<WeakRef<Log>>() }
  const options = {
    level: family.levels.level,
    base: null,
    timestamp: timeField(),
    formatters: { level: (label: string) => ({ level: label }) },
    hooks: { streamWrite: printable },
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

/** Changes the levels of a logger made by `createLog`, and of its children. */
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

/** The field with the time of a line, which is written once for all lines of one millisecond. */
function timeField(): () => string {
  let last = 0
  let field = ''
  return () => {
    const now = Date.now()
    if (now !== last) {
      last = now
      field = `,"time":"${iso(now)}"`
    }
    return field
  }
}

function levelFor(child: Log, { level, levels }: Levels): string {
  const part: unknown = child.bindings()['part']
  return levels?.[part as LogModule] ?? level
}

/** True if the journal of systemd reads standard output; `stream` is `$JOURNAL_STREAM`, the device and inode of what it reads (systemd.exec(5)). */
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
  // a full disk must not end the box: the lines are written once there is space again
  output.on('error', () => (failing = true)).on('write', () => (failing = false))
  setInterval(() => output.flush(), pause).unref()
  // before pino's own handler, which would retry for ever
  process.prependListener('exit', () => (failing ? output.destroy() : output.flushSync()))
  return journal ? withPriorities(output) : output
}

function withPriorities(output: ReturnType<typeof destination>): DestinationStream {
  const sink = {
    // makes pino set `lastLevel` before each line
    [symbols.needsMetadataGsym]: true,
    lastLevel: 30,
    write: (line: string): void => void output.write(`${priorities[sink.lastLevel] ?? '<6>'}${line}`),
    flush: (done: (error?: Error) => void): void => output.flush(done),
  }
  return sink
}

/** Milliseconds. */
const writeTimeout = 1000

/** Resolves when all lines are written, or cannot be. What is left when the process ends is tried for ever, also where nobody reads it any more. */
export function written(log: Log): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, writeTimeout)
    log.flush(() => resolve())
  })
}

const ignore = (): void => undefined

/** A logger for a library that passes on the level debug only. */
export function debugOnly(debug: (data?: unknown, ...texts: (string | undefined)[]) => void) {
  return { trace: ignore, debug, info: ignore, warn: ignore, error: ignore, fatal: ignore }
}

/** Untrusted text for a log line: truncated to `max` characters; control and format characters, such as those of bidirectional text, are escaped. */
export function loggable(text: string, max: number): string {
  const short = text.length > max ? `${text.slice(0, max)}…` : text
  return short.replaceAll(unsafe, escaped)
}

/** A line of JSON whose strings have the same characters escaped, but for those that JSON escapes itself. */
export function printable(line: string): string {
  if (!beyondAscii.test(line)) return line
  return line.replaceAll(unsafeInJson, (character) => `\\${escaped(character)}`)
}

/** A text of several lines for a terminal: the same characters are escaped, but for line ends and tabs. */
export function visible(text: string): string {
  return text.replaceAll(unsafe, (character) => (character === '\n' || character === '\t' ? character : escaped(character)))
}

/** JSON of the same value, with these characters as its own escapes. */
export function escapedJson(json: string): string {
  return json.replaceAll(unsafeInJson, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}

const beyondAscii = /[^\n -~]/
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu
const unsafeInJson = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu

function escaped(character: string): string {
  return `\\u{${character.codePointAt(0)!.toString(16)}}`
}
