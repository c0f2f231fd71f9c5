import type { JSX } from 'preact'
import { useState } from 'preact/hooks'

const refusal = 'This browser does not allow the page to copy. Select and copy the text.'

/**
 * Copies a text; `what` names it in the label and the announcement, which is shown beside it, as an open dialog would hide the announcer.
 */
export function CopyButton({ text, what }: { text: string; what: string }): JSX.Element {
  const [said, say] = useState('')
  const copy = async (): Promise<void> => {
    say('')
    try {
      await navigator.clipboard.writeText(text)
      say(`Copied: ${what}.`)
      setTimeout(() => say(''), 6000)
    } catch {
      say(refusal)
    }
  }
  return (
    <span>
      <button type="button" class="copy" aria-label={`Copy ${what}`} onClick={() => void copy()}>
        Copy
      </button>
      <span role="status" class={said === refusal ? 'refusal' : 'hint'}>
        {said && ` ${said}`}
      </span>
    </span>
  )
}
