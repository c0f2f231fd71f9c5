import type { Command } from 'commander'

/** Notes on all commands: a title and its text, in Markdown. */
export const notes: readonly (readonly [string, string])[] = [
  [
    'Which box',
    `Commands find the box like \`serve\` does: \`--config\`, else \`$PILLARBOX_CONFIG\`, else \`./pillarbox.yaml\`; \`--data\` or
\`$PILLARBOX_DATA_DIR\` names another data directory.`,
  ],
  [
    'Running or not',
    `Commands connect to a running box through \`control.sock\` in its data directory, which only its owner (and root) can open. If the box is not running, they open its data directory themselves; nothing is received or sent then. Commands that require the box stopped, or running, say so.`,
  ],
  [
    'Account',
    `Identities, keys and domains are those of the first account, unless \`--account\` names another one by its id; the queue, the status and the list of accounts cover the whole box.`,
  ],
  [
    'JSON',
    `With \`--json\` the result is JSON on standard output, and an error is \`{"error": {"message", "code", "param"}}\` on standard error.`,
  ],
  [
    'Exit status',
    `0: success. 1: failure, or a check found a problem (\`domain check\`, \`send --wait\`, \`status\`). 2: the command line is invalid, or \`doctor\` could not check the box, or \`log\` could not read. 78: the configuration or the data directory is unusable.`,
  ],
  [
    'Secrets',
    `They are never arguments, which every process of the machine can read: passwords are typed, or read from standard input; keys are printed once, when they are created.`,
  ],
]

const introduction = `# Commands

\`pillarbox\` is the program and its tools in one (\`node src/main.ts\`, or \`npx pillarbox\`). This page is generated from the program's help
(\`pillarbox docs --commands\`), and a test compares the two.

${notes.map(([title, text]) => `- **${title}.** ${text.replaceAll('\n', '\n  ')}\n`).join('')}`

/** The width of help texts in columns, independent of the terminal. */
const width = 130

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
