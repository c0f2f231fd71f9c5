/** Configuration that cannot be used; the message lists every problem, one a line. */
export class ConfigError extends Error {
  readonly problems: string[]

  constructor(problems: string[], options?: ErrorOptions) {
    super(problems.join('\n'), options)
    this.name = 'ConfigError'
    this.problems = problems
  }
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
