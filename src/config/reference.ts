import type * as z from 'zod'
import { inline } from './documents.ts'
import { besidePath, type Section, sections, type Setting } from './settings.ts'

const introduction = `# Settings

Every setting with its type, default, unit of a bare number, and description. This page is generated from the settings (\`pillarbox docs --settings\`), and a test compares the two.

- **Where.** A file (\`--config\`, else \`$PILLARBOX_CONFIG\`, else \`pillarbox.yaml\` in \`$PILLARBOX_DATA_DIR\` or in the working directory), the environment,
  or both; the environment overrides the file. [config/pillarbox.example.yaml](../config/pillarbox.example.yaml) is such a file, and
  [config/pillarbox.schema.json](../config/pillarbox.schema.json) its schema, for editors.
- **As a variable** a setting is \`PILLARBOX_\` and its path in capitals, with \`__\` between levels: \`http.listen\` is \`PILLARBOX_HTTP__LISTEN\`. Lists are separated by commas; an empty variable is ignored.
- **A secret** can be read from a file: \`metrics.token_file\` in place of \`metrics.token\`, \`PILLARBOX_METRICS__TOKEN_FILE\`, or a systemd credential
  \`pillarbox.metrics.token\`.
- **Sizes** are numbers of bytes or such as \`25 MiB\`; **times** are milliseconds or such as \`15 s\`.
- **Changes** take effect with \`systemctl reload pillarbox\` (\`pillarbox reload\`, or the signal HUP), except for those that say they need a restart. An invalid file changes nothing, and the journal names line and column. \`pillarbox config check\` checks a file beforehand; run as root, it also checks that the service user can read it.
- **A section with no default** (such as \`http.tls\`) is absent until a setting in it is set; its required settings must be set then.
`

/** Every setting, as Markdown. */
export function settingsReference(schema: z.ZodType): string {
  return `${introduction}\n${chapters(sections(schema)).join('\n')}`
}

function chapters(section: Section): string[] {
  const { path, description, optional, members } = section
  const own = members.filter((member): member is Setting => !('members' in member))
  const inner = members.filter((member): member is Section => 'members' in member)
  const title = path.length === 0 ? '## At the top' : `${'#'.repeat(path.length + 1)} ${path.join('.')}`
  const words = path.length === 0 ? [] : [`${plain(description)}.${optional ? ' Default: none.' : ''}`, '']
  const chapter = own.length === 0 ? [title, '', ...words] : [title, '', ...words, ...head, ...own.map(row), '']
  return [chapter.join('\n'), ...inner.flatMap(chapters)]
}

const head = ['| Setting | Type | Default | Unit | Description |', '|---|---|---|---|---|']

function row(setting: Setting): string {
  const { name, type, unit, description, secret, restart } = setting
  const notes = [
    `${plain(description)}.`,
    ...(secret ? [`Secret; or \`${besidePath(setting).join('.')}\` with the path of a file.`] : []),
    ...(restart ? ['A change needs a restart.'] : []),
  ]
  return `| ${[`\`${name}\``, type, usual(setting), unit ?? '', notes.join(' ')].map(cell).join(' | ')} |`
}

function usual({ required, fallback, otherwise }: Setting): string {
  if (required) return 'required'
  return fallback === undefined ? plain(otherwise ?? 'none') : `\`${inline(fallback)}\``
}

/** Escapes text, so that it is not read as an HTML tag. */
function plain(text: string): string {
  return text.replaceAll('<', String.raw`\<`)
}

function cell(text: string): string {
  return text.replaceAll('|', String.raw`\|`)
}
