import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type * as z from 'zod'
import { nearest } from '../core/text.ts'
import { Draft } from './draft.ts'
import { readEnvironment } from './environment.ts'
import type { ParsedFile } from './file.ts'
import { ConfigError, type ConfigProblem, formatProblem, formatValue, spelled, unreadable } from './problems.ts'
import { readCredentials, readNamedFiles, readSecretFiles } from './references.ts'
import { besidePath, read, type Section, sections, type Setting, settingsOf } from './settings.ts'

/** The sources of settings. */
export interface Sources {
  /** The path given on the command line; then PILLARBOX_CONFIG, then pillarbox.yaml in PILLARBOX_DATA_DIR, then in `cwd`, if there is one. */
  file?: string | undefined
  env: Record<string, string | undefined>
  /** The start of relative paths. */
  cwd: string
}

/**
 * Merges defaults, file, credentials and environment; later ones win. `withoutFile` sets what applies when there is no file. Throws ConfigError
 * with every problem found.
 */
export async function load<Schema extends z.ZodType>(
  schema: Schema,
  sources: Sources,
  withoutFile?: (draft: Draft) => void,
): Promise<z.output<Schema>> {
  const top = sections(schema)
  const settings = settingsOf(top)
  const written = await readConfigFile(sources)
  const draft = new Draft(written)
  if (!written) withoutFile?.(draft)
  dropBlankSections(top, draft)
  const environment = readEnvironment(settings, sources.env)
  const handed = await readCredentials(settings, sources.env)
  draft.problems.push(...handed.problems, ...environment.problems)
  for (const { setting, from_file, value, place } of [...handed.assignments, ...environment.assignments]) {
    draft.forget(from_file ? setting.path : besidePath(setting))
    draft.assign(from_file ? besidePath(setting) : setting.path, value, place)
  }
  await readSecretFiles(settings, sources.cwd, draft)
  await readNamedFiles(settings, sources.cwd, draft)
  const result = schema.safeParse(draft.tree)
  for (const issue of result.error?.issues ?? []) draft.problems.push(...describeIssue(issue, draft, top))
  if (result.success && draft.problems.length === 0) return result.data
  throw new ConfigError(inOrder(draft.problems))
}

async function readConfigFile({ file, env, cwd }: Sources): Promise<ParsedFile | undefined> {
  const asked = file ?? (env['PILLARBOX_CONFIG'] || undefined)
  // where init writes it, so that the data directory is enough to find the box
  const beside = env['PILLARBOX_DATA_DIR'] ? join(env['PILLARBOX_DATA_DIR'], 'pillarbox.yaml') : ''
  const name = asked ?? (beside !== '' && existsSync(resolve(cwd, beside)) ? beside : 'pillarbox.yaml')
  try {
    const bytes = await readFile(resolve(cwd, name))
    // the YAML parser is a quarter of the files that a command loads: it is loaded only when there is a file
    const { readYaml } = await import('./file.ts')
    const written = readYaml(name, bytes)
    if ('problems' in written) throw new ConfigError(written.problems)
    return written
  } catch (error) {
    if (error instanceof ConfigError) throw error
    if (asked === undefined && error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw new ConfigError([{ source: name, message: unreadable(error) }], { cause: error })
  }
}

// `http:` with every line below it commented out sets nothing.
function dropBlankSections(section: Section, draft: Draft): void {
  for (const member of section.members) {
    if (!('members' in member)) continue
    if (draft.blank(member.path)) draft.forget(member.path)
    dropBlankSections(member, draft)
  }
}

function describeIssue(issue: z.core.$ZodIssue, draft: Draft, top: Section): ConfigProblem[] {
  const settings = settingsOf(top)
  if (issue.code === 'unrecognized_keys') {
    const { enumerated, members } = sectionAt(top, issue.path)
    const names = enumerated ? `, must be one of ${members.map(({ path }) => path.at(-1)).join(', ')}` : undefined
    return issue.keys.map((key) => ({
      ...draft.place([...issue.path, key], 'name'),
      message: `is not a setting${names ?? suggestion(issue.path, key, settings)}`,
      ...(issue.path.length === 0 ? { isUnknownSection: true as const } : {}),
    }))
  }
  const at = given(draft.tree, issue.path)
  const value = read(draft.tree, at)
  const place = draft.place(at, value === undefined ? 'name' : 'value')
  const setting = settings.find(({ path }) => path.every((step, index) => step === issue.path[index]))
  if (value === undefined && setting?.fallback !== undefined)
    return [
      { ...draft.place(setting.path, 'name'), message: `${issue.message}, not ${formatValue(setting.fallback)}, its default` },
    ]
  if (value === undefined) return [{ ...place, message: `is missing, ${issue.message}` }]
  // a whole sentence says itself what was there
  const isWhole = issue.message.endsWith('.')
  return [{ ...place, message: `${issue.message}${setting?.secret || isWhole ? '' : `, not ${formatValue(value)}`}` }]
}

/** The innermost section around a path. */
function sectionAt(section: Section, path: readonly PropertyKey[]): Section {
  const next = section.members.find((member) => member.path.at(-1) === path[0])
  return next && 'members' in next ? sectionAt(next, path.slice(1)) : section
}

/** The part of a path that is in the file: a single value may replace a list of one. */
function given(tree: unknown, path: readonly PropertyKey[]): readonly PropertyKey[] {
  const above = path.slice(0, -1)
  const holder = above.length > 0 ? read(tree, above) : tree
  return holder === undefined || typeof holder === 'object' ? path : given(tree, above)
}

function suggestion(path: readonly PropertyKey[], key: string, settings: readonly Setting[]): string {
  const names = settings.flatMap((setting) => [setting.path, ...(setting.secret ? [besidePath(setting)] : [])])
  const beside = names.filter((name) => path.every((step, index) => step === name[index])).map((name) => name[path.length] ?? '')
  const near = nearest(key, new Set(beside))
  const dotted = names.map((name) => spelled(name))
  const meant = near ? spelled([...path, near]) : (nearest(key, dotted) ?? dotted.find((name) => name.endsWith(`.${key}`)))
  if (meant === spelled([...path, key])) return ', write each part on a separate line'
  return meant ? `, did you mean ${meant}?` : ''
}

// Problems are listed once, in the order of the file; those without a line come last.
function inOrder(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const different = new Map(problems.map((problem) => [formatProblem(problem), problem]))
  return [...different.values()].toSorted((a, b) => rank(a) - rank(b))
}

function rank({ at }: ConfigProblem): number {
  return at ? at.line * 1e6 + at.column : Number.MAX_SAFE_INTEGER
}
