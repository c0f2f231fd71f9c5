import { effect, signal } from '@preact/signals'

export const themes = ['auto', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const name = 'pillarbox theme'

/** How the page looks; `auto` is as the machine does. Kept by this browser. */
export const theme = signal<Theme>(kept())

effect(() => {
  document.documentElement.dataset['theme'] = theme.value
  try {
    localStorage.setItem(name, theme.value)
  } catch {
    // a browser that keeps nothing forgets it
  }
})

function kept(): Theme {
  try {
    const value = localStorage.getItem(name)
    return themes.find((one) => one === value) ?? 'auto'
  } catch {
    return 'auto'
  }
}
