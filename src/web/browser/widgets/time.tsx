import type { JSX } from 'preact'
import { ago, moment } from './format.ts'

/** A relative time, with the exact one as its title. */
export function Time({ at }: { at: string }): JSX.Element {
  return (
    <time dateTime={at} title={moment(at)}>
      {ago(at)}
    </time>
  )
}
