import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError } from '../api.ts'

interface Props {
  run: () => Promise<unknown>
  /** For the ear, where the words on it do not say of what. */
  label?: string
  primary?: boolean
  children: ComponentChildren
}

/** A button that does something at once; what the API says against it stands beside it. */
export function ActionButton({ run, label, primary, children }: Props): JSX.Element {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError>()
  const act = async (): Promise<void> => {
    setBusy(true)
    setError(undefined)
    try {
      await run()
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown
      setError(thrown)
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <button
        type="button"
        class={primary ? 'primary' : ''}
        aria-label={label}
        aria-busy={busy}
        disabled={busy}
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
