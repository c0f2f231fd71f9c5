import type { JSX } from 'preact'
import { ago, moment } from './format.ts'

/** When something was, briefly; the exact moment is in its title. */
export function Time({ at }: { at: string }): JSX.Element {
  return (
    <time dateTime={at} title={moment(at)}>
      {ago(at)}
    </time>
  )
}
