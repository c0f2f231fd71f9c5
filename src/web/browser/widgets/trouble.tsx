import type { JSX } from 'preact'
import type { ApiError } from '../api.ts'

/** What went wrong, in the API's words, and a button to try it again. */
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
