import type { ComponentChildren, JSX } from 'preact'

/** A word that stands out; the word says it, the colour only helps. */
export function Mark({
  tone,
  children,
}: {
  tone?: 'good' | 'warn' | 'bad' | undefined
  children: ComponentChildren
}): JSX.Element {
  return <span class={tone ? `mark ${tone}` : 'mark'}>{children}</span>
}
