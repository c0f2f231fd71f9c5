import { invalid } from '../core/fault.ts'
import { Metadata } from './model.ts'

/** RFC 7396 on the first level and below: objects merge, null removes, anything else replaces. */
export function merged(before: string, patch: Record<string, unknown> | undefined): string {
  if (patch === undefined) return before
  const result = mergePatch(JSON.parse(before), patch)
  const checked = Metadata.safeParse(result)
  if (!checked.success) throw invalid('metadata', `metadata ${checked.error.issues[0]!.message}.`)
  return JSON.stringify(result)
}

function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const result: Record<string, unknown> = isObject(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = mergePatch(result[key], value)
  }
  return result
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
