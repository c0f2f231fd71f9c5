import type { Command } from 'commander'

export function withJson(command: Command): Command {
  return command.option('--json', 'print JSON')
}

export function say(options: { json?: boolean }, value: unknown, words: string): void {
  const text = options.json ? JSON.stringify(value, null, 2) : words
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
}

export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headings.map((heading, column) => Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string => cells.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')
  return [headings, ...rows].map((cells) => line(cells).trimEnd()).join('\n')
}

/** A size for people. */
export function bytes(count: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']
  const step = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(count) / 10))
  const value = count / 1024 ** step
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[step]}`
}

/** A duration for people: the two largest units. */
export function span(seconds: number): string {
  const units: [name: string, seconds: number][] = [
    ['d', 86_400],
    ['h', 3600],
    ['min', 60],
    ['s', 1],
  ]
  const first = units.findIndex(([, size]) => seconds >= size)
  if (first === -1) return '0 s'
  let left = seconds
  const words: string[] = []
  for (const [name, size] of units.slice(first, first + 2)) {
    const count = Math.floor(left / size)
    left -= count * size
    if (count > 0) words.push(`${count} ${name}`)
  }
  return words.join(' ')
}

/** Resolves once the text is written. */
export function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()))
  })
}
