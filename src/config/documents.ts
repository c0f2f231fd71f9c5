import * as z from 'zod'
import { besidePath, type Section, sections, type Setting } from './settings.ts'

/** An example of the file: every setting commented out, with what it is for, its default and unit above it. */
export function example(schema: z.ZodType): string {
  return [...opening, ...block(sections(schema))].join('\n') + '\n'
}

/** The JSON Schema of the file, for editors. */
export function jsonSchema(schema: z.ZodType): string {
  const made = z.toJSONSchema(schema, { io: 'input', target: 'draft-07' })
  return JSON.stringify({ title: 'Pillarbox configuration', ...tidy(made), type: 'object' }, null, 2) + '\n'
}

/** The file with these settings alone, by their names (`http.listen`), each with what it is for; `opening` are the lines of a comment above. */
export function chosen(schema: z.ZodType, values: ReadonlyMap<string, unknown>, opening: readonly string[]): string {
  const lines = (section: Section): string[] => {
    const indent = '  '.repeat(section.path.length)
    return section.members.flatMap((member) => {
      if ('members' in member) {
        const inner = lines(member)
        return inner.length === 0 ? [] : ['', ...prose(headline(member), indent), `${indent}${member.path.at(-1)}:`, ...inner]
      }
      const value = values.get(member.name)
      if (value === undefined) return []
      return ['', ...prose(details(member), indent), `${indent}${member.path.at(-1)}: ${exact(value)}`]
    })
  }
  return [...opening.flatMap((sentence) => prose([sentence], '')), ...lines(sections(schema)), ''].join('\n')
}

/** The value as YAML reads it back: only plain words are not quoted. */
function exact(value: unknown): string {
  if (typeof value !== 'string') return inline(value)
  const plain = /^[A-Za-z/][\w./@+-]*$/.test(value) && !/^(?:true|false|null|yes|no|on|off)$/i.test(value)
  return plain ? value : JSON.stringify(value)
}

const opening = [
  '# yaml-language-server: $schema=./pillarbox.schema.json',
  '#',
  '# Every setting of Pillarbox with its default. To change one, remove the # before its name.',
  '# This file is ./pillarbox.yaml, or the path in PILLARBOX_CONFIG or --config. Check it with: pillarbox config check',
  '#',
  '# An environment variable overrides this file: PILLARBOX_ and the path in capitals, with __ between levels, as in',
  '# PILLARBOX_HTTP__LISTEN=127.0.0.1:8080 or PILLARBOX_DNS__SERVERS=127.0.0.1:53,[::1]:53 (lists are separated by commas; an empty variable is ignored).',
  '# A secret can be read from a file: token_file here, PILLARBOX_METRICS__TOKEN_FILE, or a systemd credential pillarbox.metrics.token.',
  '# Relative paths are relative to the working directory.',
]

function block(section: Section): string[] {
  const indent = '  '.repeat(section.path.length)
  return section.members.flatMap((member) =>
    'members' in member
      ? ['', ...prose(headline(member), indent), `${indent}${member.path.at(-1)}:`, ...block(member)]
      : ['', ...prose(details(member), indent), `${indent}#${line(member)}`],
  )
}

function headline({ description, optional }: Section): string[] {
  return [`${description}.`, ...(optional ? ['Default: none.'] : [])]
}

function details(setting: Setting): string[] {
  const { description, required, fallback, otherwise, unit, restart, secret } = setting
  const usual = required ? 'Required.' : `Default: ${fallback === undefined ? (otherwise ?? 'none') : inline(fallback)}.`
  return [
    `${description}.`,
    [
      usual,
      ...(unit ? [`Unit: ${unit}.`] : []),
      ...(secret ? [`Secret: ${setting.path.at(-1)}, or ${besidePath(setting).at(-1)} with the path of a file.`] : []),
      ...(restart ? ['A change needs a restart.'] : []),
    ].join(' '),
  ]
}

function line(setting: Setting): string {
  // a secret in an example would be copied into real settings
  if (setting.secret) return `${besidePath(setting).at(-1)}: /run/secrets/pillarbox.${setting.name}`
  return `${setting.path.at(-1)}: ${inline(setting.example ?? setting.fallback)}`
}

/** A value as one would write it in the file. */
export function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((entry) => JSON.stringify(entry)).join(', ')}]`
  return `${typeof value === 'string' || typeof value === 'number' ? value : JSON.stringify(value)}`
}

function prose(sentences: string[], indent: string): string[] {
  const lines: string[] = []
  for (const sentence of sentences) {
    let row = `${indent}#`
    for (const word of sentence.split(' ')) {
      if (row.length + word.length >= 110) {
        lines.push(row)
        row = `${indent}#`
      }
      row += ` ${word}`
    }
    lines.push(row)
  }
  return lines
}

type JsonSchema = z.core.JSONSchema.BaseSchema

const ours = ['unit', 'example', 'secret', 'restart', 'file', 'directory', 'otherwise', 'enumerated']

function tidy(given: JsonSchema): JsonSchema {
  const { unit, example: sample, restart, otherwise } = given
  const node: JsonSchema = Object.fromEntries(Object.entries(given).filter(([name]) => !ours.includes(name)))
  const notes = [
    ...(typeof otherwise === 'string' ? [`Default: ${otherwise}.`] : []),
    ...(typeof unit === 'string' ? [`Unit: ${unit}.`] : []),
    ...(restart === true ? ['A change needs a restart.'] : []),
  ]
  if (node.description !== undefined) node.description = [`${node.description}.`, ...notes].join(' ')
  if (sample !== undefined) node.examples = [sample]
  if (!node.properties) return node
  const properties: NonNullable<JsonSchema['properties']> = {}
  for (const [name, member] of Object.entries(node.properties)) {
    if (typeof member === 'boolean') continue
    properties[name] = tidy(member)
    if (member['secret'] !== true) continue
    properties[`${name}_file`] = { type: 'string', minLength: 1, description: `The path of a file that holds ${name}.` }
  }
  const { default: _, ...section } = node
  // A section whose lines are all commented out reads as null.
  return { ...section, type: ['object', 'null'], properties }
}
