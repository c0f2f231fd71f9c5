import type { Command } from 'commander'

/** Notes on all commands: a title and its text, in Markdown. */
export const notes: readonly (readonly [string, string])[] = [
  [
    'Which box',
    `Commands find their box as \`serve\` does: \`--config\`, else \`$PILLARBOX_CONFIG\`, else \`./pillarbox.yaml\`; \`--data\` or
\`$PILLARBOX_DATA_DIR\` names another data directory.`,
  ],
  [
    'Running or not',
    `Commands speak with a running box through \`control.sock\` in its data directory, which only its owner (and root) can open; a box that
does not run they open for themselves, and nothing is received or sent meanwhile. Those that need it stopped, or running, say so.`,
  ],
  [
    'Whose things',
    `Identities, keys and domains are the first account's unless \`--account\` names another one by its id; the queue, the status and the list
of accounts are the whole box's.`,
  ],
  [
    'For programs',
    `With \`--json\` the answer is JSON on standard output, and what went wrong is \`{"error": {"message", "code", "param"}}\` on
standard error.`,
  ],
  [
    'Exit status',
    `0: done. 1: it could not be done, or what was looked at is not well (\`domain check\`, \`send --wait\`, \`status\`). 2: the command line is wrong,
or \`doctor\` could not look at the box, or \`log\` could not read. 78: the configuration or the data directory forbids it.`,
  ],
  [
    'Secrets',
    `They are never arguments, which every process of a machine can read: passwords are typed, or read from standard input; keys are printed
when they are made, and never again.`,
  ],
]

const introduction = `# Commands

\`pillarbox\` is the program and its tools in one (\`node src/main.ts\`, or \`npx pillarbox\`). This page is made from the program's own help
(\`pillarbox docs --commands\`), and a test compares the two.

${notes.map(([title, text]) => `- **${title}.** ${text.replaceAll('\n', '\n  ')}\n`).join('')}`

/** The width of help texts in columns, independent of the terminal. */
const width = 130

/** Every command with its help, as Markdown. */
export function commandReference(program: Command): string {
  const parts = program.commands.flatMap((command) => sectionsOf(command, 'pillarbox', '##'))
  return `${introduction}\n${parts.join('\n')}`
}

function sectionsOf(command: Command, parent: string, level: string): string[] {
  const name = `${parent} ${command.name()}`
  command.configureOutput({ getOutHelpWidth: () => width })
  const help = `${level} ${name}\n\n\`\`\`\n${command.helpInformation().trimEnd()}\n\`\`\`\n`
  return [help, ...command.commands.flatMap((one) => sectionsOf(one, name, `${level}#`))]
}
