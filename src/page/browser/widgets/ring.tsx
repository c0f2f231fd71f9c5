import type { JSX } from 'preact'

const radius = 16
const around = 2 * Math.PI * radius

/** A ring that empties: `left` of `of` seconds. */
export function Ring({ left, of, label }: { left: number; of: number; label: string }): JSX.Element {
  const seconds = Math.max(0, Math.ceil(left))
  return (
    <svg class={`ring ${left <= 5 ? 'high' : ''}`} viewBox="0 0 40 40" role="img" aria-label={`${label}: ${seconds} s`}>
      <circle class="ring-track" cx="20" cy="20" r={radius} />
      <circle
        class="ring-left"
        cx="20"
        cy="20"
        r={radius}
        transform="rotate(-90 20 20)"
        stroke-dasharray={around}
        stroke-dashoffset={around * (1 - Math.min(1, Math.max(0, left / of)))}
      />
      <text x="20" y="24.5" text-anchor="middle">
        {seconds}
      </text>
    </svg>
  )
}
