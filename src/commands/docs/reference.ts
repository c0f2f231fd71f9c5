import type { Command } from 'commander'

/** Notes on all commands: a title and its text, in Markdown. */
export const notes: readonly (readonly [string, string])[] = [
  [
    'Finding the box',
    `Commands find their box as \`serve\` does: \`--config\`, else \`$PILLARBOX_CONFIG\`, else \`./pillarbox.yaml\`; \`--data\` or
\`$PILLARBOX_DATA_DIR\` names another data directory.`,
  ],
  [
    'Running or stopped',
    `Commands connect to a running box through \`control.sock\` in its data directory, which only its owner (and root) can open; a stopped
box they open themselves, and nothing is received or sent meanwhile. Commands that need it stopped, or running, say so.`,
  ],
  [
    'Account',
    `Identities, keys and domains are those of the first account, or of the account with the id in \`--account\`; the queue, the status and
the list of accounts are those of the whole box.`,
  ],
  [
    'For programs',
    `With \`--json\` the output is JSON on standard output, and an error is \`{"error": {"message", "code", "param"}}\` on standard error.`,
  ],
  [
    'Exit status',
    `0: done. 1: failed, or the result of a check is negative (\`domain check\`, \`send --wait\`, \`status\`). 2: the command line is wrong,
\`doctor\` could not examine the box, or \`log\` could not read. 78: the configuration or the data directory forbids it.`,
  ],
  [
    'Secrets',
    `They are never arguments, which every process of a machine can read: passwords are typed, or read from standard input; keys are printed
once, when they are created.`,
  ],
]

const introduction = `# Commands

\`pillarbox\` is the server and its tools (\`node src/main.ts\`, or \`npx pillarbox\`). This page is generated from the program's own help
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
