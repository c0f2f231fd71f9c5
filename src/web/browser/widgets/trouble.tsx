import type { JSX } from 'preact'
import type { ApiError } from '../api.ts'

/** An API error, with a retry button. */
export function Trouble({ error, again }: { error: ApiError; again?: () => Promise<void> }): JSX.Element {
  return (
    <div class="trouble" role="alert">
      <p>{error.message}</p>
      {again && (
        <button type="button" onClick={() => void again()}>
          Try again
        </button>
      )}
    </div>
  )
}
