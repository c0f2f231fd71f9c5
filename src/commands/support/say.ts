import type { Command } from 'commander'
import { escapedJson, loggable, visible } from '../../core/log.ts'

export function withJson(command: Command): Command {
  return command.option('--json', 'print JSON')
}

/** Prints the value with --json, else the text. What others wrote is made visible in both; `paint` adds colours to the text after that. */
export function say(options: { json?: boolean }, value: unknown, words: string, paint = (text: string) => text): void {
  const text = options.json ? json(value) : paint(visible(words))
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
}

/** JSON for a terminal. */
export function json(value: unknown, indent = 2): string {
  return escapedJson(JSON.stringify(value, null, indent))
}

/** Prints lines beside the result, on standard error. */
export function remark(text: string): void {
  process.stderr.write(visible(text))
}

export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const shown = rows.map((row) => row.map((cell) => loggable(cell, Infinity)))
  const widths = headings.map((heading, column) => Math.max(heading.length, ...shown.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string => cells.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')
  return [headings, ...shown].map((cells) => line(cells).trimEnd()).join('\n')
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
    process.stdout.write(visible(text), (error) => (error ? reject(error) : resolve()))
  })
}
