import { read } from './pages.ts'

/** Every command with its flags, as docs/commands.md has them (which is made from the program's own help, and compared with it by a test). */
export const commands = new Map(
  read('docs/commands.md')
    .split(/^(?=##+ pillarbox )/m)
    .slice(1)
    .map((section) => {
      const [, name] = /^##+ pillarbox (.+)$/m.exec(section)!
      return [name!, new Set(section.match(/(?<=^ {2,}(?:-\w, )?)--?[a-z][\w-]*/gm))] as const
    }),
)

/** Commands of ours in a piece of code: the words behind `pillarbox` where a shell would take it for a program. */
export function callsIn(code: string): string[] {
  return code
    .split(/\s*(?:&&|\|\||;|\s\|\s|\s#)\s*/)
    .flatMap((part) => [
      ...(/(?:^|npx |bin\/|exec pillarbox bin\/|run --rm (?:--volume \S+ )?|-u \S+ |\d \* \* \*\s+pillarbox\s+)pillarbox ([a-z].*)$/
        .exec(part)
        ?.slice(1, 2) ?? []),
    ])
}

/** What is wrong with a call: a command that is not there, or a flag that it does not have; null when nothing is. */
export function wrongWith(call: string): string | null {
  const words = call.split(/\s+/)
  let depth = 0
  while (depth < words.length && commands.has(words.slice(0, depth + 1).join(' '))) depth += 1
  const name = words.slice(0, depth).join(' ')
  if (depth === 0) return `there is no command ${words[0]}`
  const inner = [...commands.keys()].some((other) => other.startsWith(`${name} `))
  const next = words[depth]
  if (inner && next !== undefined && /^[a-z]/.test(next)) {
    const unknown = next.split('|').filter((word) => !commands.has(`${name} ${word}`))
    if (unknown.length > 0) return `${name} has no command ${unknown.join(', ')}`
  }
  const flags = call.match(/(?<=\s|\[)--?[a-z][\w-]*/g) ?? []
  const strange = flags.filter((flag) => flag !== '--help' && flag !== '-h' && !commands.get(name)!.has(flag))
  return strange.length > 0 ? `${name} has no ${strange.join(', ')}` : null
}
