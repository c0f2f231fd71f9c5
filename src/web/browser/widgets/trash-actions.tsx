import type { JSX } from 'preact'
import { post, remove } from '../api.ts'
import { reread } from '../live.ts'
import { Action } from './action.tsx'

/** The buttons of a message in the trash; `path` is that of the message. */
export function TrashActions({ path }: { path: string }): JSX.Element {
  return (
    <span class="actions">
      <Action run={() => post(`${path}/restore`).then(reread)} done="Restored.">
        Restore
      </Action>
      <Action run={() => remove(`${path}?purge=true`).then(reread)} done="Permanently deleted.">
        Delete permanently
      </Action>
    </span>
  )
}
