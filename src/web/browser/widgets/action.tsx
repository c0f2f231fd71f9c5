import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { type ApiError, post, remove, toApiError } from '../api.ts'
import { reread } from '../live.ts'
import { announce } from './announcer.tsx'

interface ActionProps {
  run: () => Promise<unknown>
  done?: string
  kind?: 'primary' | 'danger' | 'plain' | undefined
  title?: string | undefined
  /** The accessible label, where the visible words are ambiguous. */
  label?: string
  children: ComponentChildren
}

/** A button that runs an action and announces its result; an API error is shown beside it. */
export function Action({ run, done, kind, title, label, children }: ActionProps): JSX.Element {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError>()
  const act = async (): Promise<void> => {
    if (busy) return
    setBusy(true)
    setError(undefined)
    try {
      await run()
      if (done !== undefined) announce(done)
    } catch (thrown) {
      setError(toApiError(thrown))
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <button
        type="button"
        class={kind ?? ''}
        title={title}
        aria-label={label}
        aria-disabled={busy}
        aria-busy={busy}
        onClick={() => void act()}
      >
        {children}
      </button>
      {error && (
        <span class="refusal" role="alert">
          {error.message}
        </span>
      )}
    </>
  )
}

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
