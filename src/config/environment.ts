import { nearest } from '../core/text.ts'
import type { ConfigProblem, Place } from './problems.ts'
import type { Setting } from './settings.ts'

/** The variables of the box that are not settings: where the file is, and what its own tests use. */
export const notSettings = /^PILLARBOX_(?:CONFIG$|TEST_)/

/** A setting given outside the file. */
export interface Assignment {
  setting: Setting
  /** The value is the path of the file that holds the secret. */
  from_file: boolean
  value: unknown
  place: Place
}

/**
 * Reads `PILLARBOX_` variables: `__` between levels, commas between the entries of a list, `_FILE` after the name of a secret. An empty variable
 * counts as not set. A name that is not a setting is a problem.
 */
export function readEnvironment(
  settings: readonly Setting[],
  env: Record<string, string | undefined>,
): { assignments: Assignment[]; problems: ConfigProblem[] } {
  const targets = new Map<string, { setting: Setting; from_file: boolean }>()
  for (const setting of settings) {
    targets.set(setting.variable, { setting, from_file: false })
    if (setting.secret) targets.set(`${setting.variable}_FILE`, { setting, from_file: true })
  }
  const assignments: Assignment[] = []
  const problems: ConfigProblem[] = []
  for (const [name, text] of Object.entries(env).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (!name.startsWith('PILLARBOX_') || notSettings.test(name)) continue
    const target = targets.get(name)
    if (!target) {
      const near = nearest(name, targets.keys())
      problems.push({ source: name, message: `is not a setting${near ? `, did you mean ${near}?` : ''}` })
    } else if (text && target.from_file && env[target.setting.variable]) {
      problems.push({ source: name, message: `is set together with ${target.setting.variable}, set only one of the two` })
    } else if (text) {
      assignments.push({ ...target, value: target.from_file ? text : valueOf(target.setting, text), place: { source: name } })
    }
  }
  return { assignments, problems }
}

// Any other value stays text, so that the schema reports what is expected.
function valueOf({ kind }: Setting, text: string): unknown {
  if (kind === 'number' && /^-?\d{1,15}(?:\.\d+)?$/.test(text.trim())) return Number(text)
  if (kind === 'switch' && /^(?:true|false)$/.test(text.trim())) return text.trim() === 'true'
  if (kind !== 'list') return text
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}
