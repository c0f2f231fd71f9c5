import { signal } from '@preact/signals'
import type { JSX } from 'preact'

const words = signal<{ number: number; text: string }[]>([])

let number = 0

/** Shows a message for a few seconds, also for screen readers. */
export function announce(text: string): void {
  const word = { number: ++number, text }
  words.value = [...words.value.slice(-2), word]
  setTimeout(() => {
    words.value = words.value.filter((one) => one !== word)
  }, 6000)
}

export function Announcer(): JSX.Element {
  return (
    <div class="announcer" role="status" aria-live="polite">
      {words.value.map((word) => (
        <p key={word.number}>{word.text}</p>
      ))}
    </div>
  )
}
