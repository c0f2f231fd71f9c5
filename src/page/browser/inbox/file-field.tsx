import type { JSX } from 'preact'
import { useId } from 'preact/hooks'

/** Files to be attached. */
export function FileField(): JSX.Element {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>Files</label>
      <input id={id} type="file" name="attachments" multiple />
    </div>
  )
}
