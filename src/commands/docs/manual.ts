import type { Command, Help } from 'commander'
import { capitalized } from '../../core/text.ts'
import { notes } from './reference.ts'

/** The manual page, in man(7) macros, generated from the declarations of the commands. */
export function manual(program: Command, version: string): string {
  const help = program.createHelp()
  return `.\\" Made by: pillarbox docs --man
.TH PILLARBOX 1 "" "Pillarbox ${version}" "User Commands"
.SH NAME
pillarbox \\- ${escaped(lowered(program.description()))}
.SH SYNOPSIS
.B pillarbox
.RI [ command ]
.RI [ options ]
.SH DESCRIPTION
${escaped('Without a command, pillarbox runs serve. Help for a command: pillarbox COMMAND --help.')}
${notes.map(([title, text]) => `.TP\n.B ${escaped(title)}\n${escaped(plain(text))}`).join('\n')}
.SH OPTIONS
${optionsOf(program, help)}
.SH COMMANDS
${program.commands.flatMap((command) => sections(command, '', help)).join('\n')}
.SH FILES
.TP
.I /etc/pillarbox/pillarbox.yaml
Settings of the service of the machine
.TP
.I /var/lib/pillarbox
Its data
.TP
.I /var/lib/pillarbox\\-keys
Its master key
.SH SEE ALSO
.BR systemctl (1),
.BR journalctl (1)
`
}

function sections(command: Command, parent: string, help: Help): string[] {
  const name = `${parent} ${command.name()}`.trim()
  if (command.commands.length > 0) return command.commands.flatMap((one) => sections(one, name, help))
  const usage = command.registeredArguments.map((one) => {
    const word = `${one.name()}${one.variadic ? '...' : ''}`
    return one.required ? `<${word}>` : `[${word}]`
  })
  const details = command.registeredArguments
    .filter(({ description }) => description !== '')
    .map((one) => `.TP\n.I ${escaped(one.name())}\n${escaped(help.argumentDescription(one))}`)
  const options = optionsOf(command, help)
  return [
    [
      `.SS ${escaped([name, ...usage].join(' '))}`,
      escaped(`${capitalized(command.description())}.`),
      ...details,
      ...(options === '' ? [] : [options]),
    ].join('\n'),
  ]
}

/** All but `--help`, which every command has. */
function optionsOf(command: Command, help: Help): string {
  return help
    .visibleOptions(command)
    .filter(({ long }) => long !== '--help')
    .map((option) => `.TP\n.B ${escaped(option.flags)}\n${escaped(help.optionDescription(option))}`)
    .join('\n')
}

function lowered(text: string): string {
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`
}

/** Markdown to plain text. */
function plain(text: string): string {
  return text.replaceAll('`', '').replaceAll('\n', ' ')
}

/** Escapes a line for man(7). */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/\s+/g, ' ')
    .replace(/^(?=[.'])/, '\\&')
}
