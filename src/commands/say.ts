import type { Command } from 'commander'

/** Gives a command the option to answer programs. */
export function withJson(command: Command): Command {
  return command.option('--json', 'answer as JSON')
}

/** Prints an answer: as JSON to a program, else in words. */
export function say(options: { json?: boolean }, value: unknown, words: string): void {
  const text = options.json ? JSON.stringify(value, null, 2) : words
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
}

/** Rows under headings, each column as wide as it must be. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headings.map((heading, column) => Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]): string => cells.map((cell, column) => cell.padEnd(widths[column]!)).join('  ')
  return [headings, ...rows].map((cells) => line(cells).trimEnd()).join('\n')
}
