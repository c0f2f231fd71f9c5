import type { Command } from 'commander'
import { nearest } from '../core/nearest.ts'
import { exits } from './refuse.ts'

/** Ends the process when the words of a command line name no command: `serve` is what runs without one, and would take any word for its own. */
export function mustBeKnown(program: Command, words: readonly string[]): void {
  if (words.some((word) => ['-h', '--help', '-V', '--version'].includes(word))) return
  const first = words.findIndex((word, index) => !word.startsWith('-') && !['-c', '--config'].includes(words[index - 1] ?? ''))
  const asked = words[first] === 'help' ? words[first + 1] : words[first]
  if (asked === undefined) return
  const names = ['help', ...program.commands.map((command) => command.name())]
  if (!names.includes(asked)) {
    const near = nearest(asked, names)
    const meant = near === undefined ? 'Those there are: pillarbox --help' : `(Did you mean ${near}?)`
    program.error(`error: unknown command '${asked}'\n${meant}`, { exitCode: exits.usage })
  }
  if (first > 0) {
    const right = ['pillarbox', asked, ...words.toSpliced(first, 1)].join(' ')
    program.error(`error: the command comes before its options: ${right}`, { exitCode: exits.usage })
  }
}
