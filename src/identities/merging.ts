import { invalid } from '../core/fault.ts'
import { mergePatch } from '../core/merge-patch.ts'
import { Metadata } from './model.ts'

/** Metadata after a change to it (RFC 7396), as JSON. Throws Fault invalid_request when it grew beyond what there may be. */
export function merged(before: string, patch: Record<string, unknown> | undefined): string {
  if (patch === undefined) return before
  const result = mergePatch(JSON.parse(before), patch)
  const checked = Metadata.safeParse(result)
  if (!checked.success) throw invalid('metadata', `metadata ${checked.error.issues[0]!.message}.`)
  return JSON.stringify(result)
}
