/** In a file; both from 1. */
export interface Position {
  line: number
  column: number
}

/** The place where a setting is given, or would be corrected. */
export interface Place {
  /** A file, or the name of a variable or credential. */
  source: string
  at?: Position
  /** The setting as people write it, unless the source names it. */
  path?: string
}

/** What is wrong at a place; the message follows its name: `must be true or false`. */
export interface ConfigProblem extends Place {
  message: string
  /** No section has this name: which was meant is not known. */
  isUnknownSection?: true
}

/** Configuration that cannot be used; the message lists every problem, one a line, after the heading. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[], { heading, cause }: { heading?: string; cause?: unknown } = {}) {
    super([...(heading === undefined ? [] : [heading]), ...problems.map((problem) => formatProblem(problem))].join('\n'), {
      cause,
    })
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** True if the problems leave open what a section says: one is in it, in a section that there is not, or in a file that cannot be read at all. */
export function concerns(problems: readonly ConfigProblem[], section: string): boolean {
  const variable = `PILLARBOX_${section.toUpperCase()}`
  return problems.some(({ source, path, isUnknownSection }) => {
    if (isUnknownSection) return true
    if (path !== undefined) return path.split(/[.[]/)[0] === section
    return source.startsWith('PILLARBOX_') ? source.startsWith(variable) : true
  })
}

/** `pillarbox.yaml:3:5 http.listen: …`, or `PILLARBOX_HTTP__LISTEN: …` */
export function formatProblem(problem: ConfigProblem): string {
  return `${formatSource(problem)}${problem.path ? ` ${problem.path}` : ''}: ${problem.message}`
}

/** The source of a place, with line and column in a file: `pillarbox.yaml:3:5`. */
export function formatSource({ source, at }: Place): string {
  return at ? `${source}:${at.line}:${at.column}` : source
}

/** A path as people write it: `dns.servers[1]`. */
export function spelled(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`
    return text === '' ? String(step) : `${text}.${String(step)}`
  }, '')
}

/** The given value, short and on one line. */
export function formatValue(value: unknown): string {
  if (value === null) return 'nothing'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'number') return `${value}`
  if (typeof value === 'object') return 'a group of settings'
  // A URL may carry a password.
  const text = (JSON.stringify(value) ?? 'nothing').replace(/\/\/[^/]*@/, '//…@')
  return text.length > 80 ? `${text.slice(0, 76)}…"` : text
}

/** Why a file could not be read, in words. */
export function unreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const reasons: Record<string, string> = {
    ENOENT: 'does not exist',
    ENOTDIR: 'does not exist',
    EISDIR: 'is a directory, must be a file',
    EACCES: 'cannot be read: permission denied',
    EPERM: 'cannot be read: permission denied',
  }
  return reasons[code] ?? `cannot be read (${code || String(error)})`
}
