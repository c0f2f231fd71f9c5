import type { Command, Option } from 'commander'

export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('print the completion script of a shell: source <(pillarbox completion bash)')
    .addArgument(program.createArgument('<shell>').choices(shells))
    .action((shell: Shell) => {
      process.stdout.write(completionScript(program, shell))
    })
}

const shells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof shells)[number]

/** The completions after a command, or after the program itself. */
interface Level {
  /** `domain check`; empty for the program. */
  path: string
  commands: { name: string; description: string }[]
  options: { short: string | undefined; long: string; description: string; value: Value }[]
  /** The value of its first argument. */
  argument: Value
}

/** The value of an option: none, one of these words, a path, or unknown. */
type Value = 'nothing' | 'unknown' | 'file' | 'directory' | readonly string[]

function completionScript(program: Command, shell: Shell): string {
  const levels = levelsOf(program, '')
  return { bash, zsh, fish }[shell](levels)
}

function levelsOf(command: Command, path: string): Level[] {
  const help = command.createHelp()
  const [argument] = command.registeredArguments
  const own: Level = {
    path,
    commands: command.commands.map((one) => ({ name: one.name(), description: one.description() })),
    options: help.visibleOptions(command).map(({ short, long, description, ...option }) => ({
      short,
      long: long!,
      description,
      value: valueOf(option),
    })),
    argument: argument === undefined ? 'nothing' : (argument.argChoices ?? pathOf(argument.name())),
  }
  return [own, ...command.commands.flatMap((one) => levelsOf(one, `${path} ${one.name()}`.trim()))]
}

function valueOf({
  required,
  optional,
  argChoices,
  flags,
}: Pick<Option, 'required' | 'optional' | 'argChoices' | 'flags'>): Value {
  if (!required && !optional) return 'nothing'
  return argChoices ?? pathOf(/[<[]([\w ]+)/.exec(flags)?.[1] ?? '')
}

/** By the name of a placeholder. */
function pathOf(name: string): Value {
  if (name === 'directory') return 'directory'
  return name === 'file' ? 'file' : 'unknown'
}

function bash(levels: readonly Level[]): string {
  return `# Completion of pillarbox for bash.
_pillarbox() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} path= word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${path:+$path }\${COMP_WORDS[i]}
    case $word in ${alternatives(levels)}) path=$word ;; esac
  done
  case "$path:$prev" in
${valued(levels, bashValue)}
  esac
  case "$path:$cur" in
${levels
  .map(({ path, commands, options, argument }) => {
    const names = commands.map(({ name }) => name)
    return `    '${path}:-'*) ${bashWords(options.flatMap(namesOf))} ;;
    '${path}:'*) ${names.length > 0 ? bashWords(names) : bashValue(argument)} ;;`
  })
  .join('\n')}
  esac
}
complete -F _pillarbox pillarbox
`
}

function bashWords(words: readonly string[]): string {
  return `COMPREPLY=($(compgen -W '${words.join(' ')}' -- "$cur"))`
}

function bashValue(value: Value): string {
  if (value === 'file') return 'compopt -o filenames; COMPREPLY=($(compgen -f -- "$cur"))'
  if (value === 'directory') return 'compopt -o filenames; COMPREPLY=($(compgen -d -- "$cur"))'
  return typeof value === 'object' ? bashWords(value) : ':'
}

function zsh(levels: readonly Level[]): string {
  return `#compdef pillarbox
# Completion of pillarbox for zsh.
_pillarbox() {
  local at= word i
  local -a list
  for ((i = 2; i < CURRENT; i++)); do
    word=\${at:+$at }\${words[i]}
    case $word in (${alternatives(levels)}) at=$word ;; esac
  done
  case "$at:\${words[CURRENT - 1]}" in
${valued(levels, zshValue)}
  esac
  case "$at:$PREFIX" in
${levels
  .map(({ path, commands, options, argument }) => {
    const names = options.flatMap((option) => namesOf(option).map((name) => described(name, option.description)))
    const list = commands.map(({ name, description }) => described(name, description))
    return `    '${path}:-'*) list=(${names.join(' ')}); _describe -o option list ;;
    '${path}:'*) ${list.length > 0 ? `list=(${list.join(' ')}); _describe command list` : zshValue(argument)} ;;`
  })
  .join('\n')}
  esac
}
if [[ \${funcstack[1]} = _pillarbox ]]; then _pillarbox "$@"; else compdef _pillarbox pillarbox; fi
`
}

/** A word with its description, as _describe reads them. */
function described(name: string, description: string): string {
  return quoted(`${name.replaceAll(':', String.raw`\:`)}:${description}`)
}

function zshValue(value: Value): string {
  if (value === 'file') return '_files'
  if (value === 'directory') return '_files -/'
  return typeof value === 'object' ? `compadd -- ${value.join(' ')}` : ':'
}

function fish(levels: readonly Level[]): string {
  const lines = levels.flatMap(({ path, commands, options, argument }) => {
    const here = `complete -c pillarbox -n '__pillarbox_at "${path}"'`
    return [
      ...commands.map(({ name, description }) => `${here} -a ${name} -d ${quotedForFish(description)}`),
      ...options.map(({ short, long, description, value }) => {
        const names = `${short === undefined ? '' : ` -s ${short.slice(1)}`} -l ${long.slice(2)}`
        return `${here}${names}${value === 'nothing' ? '' : fishValue(value)} -d ${quotedForFish(description)}`
      }),
      ...(argument === 'nothing' || argument === 'unknown'
        ? []
        : [`${here}${argument === 'file' ? ' -F' : fishValue(argument).slice(3)}`]),
    ]
  })
  return `# Completion of pillarbox for fish.
function __pillarbox_at
    set -l path ''
    for word in (commandline -opc)[2..]
        set -l next (string trim -- "$path $word")
        contains -- $next ${pathsOf(levels).map(quotedForFish).join(' ')}; and set path $next
    end
    test "$path" = "$argv[1]"
end
complete -c pillarbox -f
${lines.join('\n')}
`
}

function fishValue(value: Value): string {
  if (value === 'file') return ' -r -F'
  if (value === 'directory') return ` -x -a '(__fish_complete_directories)'`
  return typeof value === 'object' ? ` -x -a '${value.join(' ')}'` : ' -x'
}

/** The lines of a case for options with a value. */
function valued(levels: readonly Level[], reply: (value: Value) => string): string {
  return levels
    .flatMap(({ path, options }) =>
      options
        .filter(({ value }) => value !== 'nothing')
        .map((option) => {
          const pattern = namesOf(option)
            .map((name) => `'${path}:${name}'`)
            .join(' | ')
          return `    ${pattern}) ${reply(option.value)}; return ;;`
        }),
    )
    .join('\n')
}

function namesOf({ short, long }: Level['options'][number]): string[] {
  return short === undefined ? [long] : [short, long]
}

function pathsOf(levels: readonly Level[]): string[] {
  return levels.map(({ path }) => path).filter((path) => path !== '')
}

function alternatives(levels: readonly Level[]): string {
  return pathsOf(levels)
    .map((path) => `'${path}'`)
    .join(' | ')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

function quotedForFish(text: string): string {
  return `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`
}
