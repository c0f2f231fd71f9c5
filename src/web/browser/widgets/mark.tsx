import type { ComponentChildren, JSX } from 'preact'

/** A status label; its colour is redundant to its text. */
export function Mark({
  tone,
  children,
}: {
  tone?: 'good' | 'warn' | 'bad' | undefined
  children: ComponentChildren
}): JSX.Element {
  return <span class={tone ? `mark ${tone}` : 'mark'}>{children}</span>
}
