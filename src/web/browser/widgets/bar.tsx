import type { JSX } from 'preact'

interface BarProps {
  value: number
  max: number
  /** The quantity measured. */
  label: string
  /** The value in words, such as `12 of 50 USD`. */
  text: string
  /** It shows progress: being full is no warning. */
  progress?: boolean
}

/** A usage bar; it changes its colour when little is left. */
export function Bar({ value, max, label, text, progress = false }: BarProps): JSX.Element {
  const part = max > 0 ? Math.min(1, Math.max(0, value / max)) : 0
  const state = progress ? 'good' : part >= 1 ? 'full' : part >= 0.8 ? 'high' : 'good'
  return (
    <div class="bar">
      <div class="bar-words">
        <span>{label}</span> <span>{text}</span>
      </div>
      <div
        class="bar-track"
        role={progress ? 'progressbar' : 'meter'}
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={Math.min(value, max)}
        aria-valuetext={text}
      >
        <div class={`bar-fill ${state}`} style={{ width: `${part * 100}%` }} />
      </div>
    </div>
  )
}
