import type { JSX } from 'preact'
import { announce } from './announcer.tsx'

/** Copies a text; `what` names it, for the ear and for what is said then. */
export function CopyButton({ text, what, label = 'Copy' }: { text: string; what: string; label?: string }): JSX.Element {
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      announce(`Copied: ${what}.`)
    } catch {
      announce('This browser does not let the page copy. Select the text, and copy it yourself.')
    }
  }
  return (
    <button type="button" class="copy" aria-label={`Copy ${what}`} onClick={() => void copy()}>
      {label}
    </button>
  )
}
