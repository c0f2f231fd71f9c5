import { signal } from '@preact/signals'
import type { JSX } from 'preact'

interface Word {
  number: number
  text: string
}

const words = signal<Word[]>([])

let number = 0

/** Says something for a few seconds, to the ear as well. */
export function announce(text: string): void {
  const word = { number: ++number, text }
  words.value = [...words.value.slice(-2), word]
  setTimeout(() => {
    words.value = words.value.filter((one) => one !== word)
  }, 6000)
}

/** Where it is said: once on the page. */
export function Announcer(): JSX.Element {
  return (
    <div class="announcer" role="status" aria-live="polite">
      {words.value.map((word) => (
        <p key={word.number}>{word.text}</p>
      ))}
    </div>
  )
}
