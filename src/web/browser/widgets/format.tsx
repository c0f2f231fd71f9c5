import type { ComponentChildren, JSX } from 'preact'
import { minorDigits } from '../../../cards/money.ts'

const units = ['B', 'kB', 'MB', 'GB', 'TB']

/** A size for people: `1.5 MB`. */
export function bytes(count: number): string {
  let value = count
  let unit = 0
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}

/** `1 message`, `2 messages`, `1,000 messages`. */
export function counted(count: number, one: string): string {
  return `${count.toLocaleString('en')} ${one}${count === 1 ? '' : 's'}`
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** A relative time, or the date of an older one. */
function ago(at: string): string {
  const since = Date.now() - Date.parse(at)
  if (since < -minute) return moment(at)
  if (since < minute) return 'just now'
  if (since < hour) return `${Math.floor(since / minute)} min ago`
  if (since < day) return `${Math.floor(since / hour)} h ago`
  return new Date(at).toLocaleDateString('en', { day: 'numeric', month: 'short', year: 'numeric' })
}

/** Date and time in the reader's locale. */
export function moment(at: string): string {
  return new Date(at).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' })
}

/** A time as an input of type `datetime-local` has it: of the reader's zone, without seconds. */
export function localTime(at: string): string {
  const time = new Date(at)
  return new Date(time.getTime() - time.getTimezoneOffset() * minute).toISOString().slice(0, 16)
}

/** What such an input has, in UTC; undefined when it is empty. */
export function typedTime(text: string | true | undefined): string | undefined {
  return text ? new Date(String(text)).toISOString() : undefined
}

/** A duration: `45 s`, `12 min`, `3 h`, `5 days`. */
export function span(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} days`
}

/** A relative time, with the exact one as its title. */
export function Time({ at }: { at: string }): JSX.Element {
  return (
    <time dateTime={at} title={moment(at)}>
      {ago(at)}
    </time>
  )
}

/** A typed amount, `12.50`, in minor units; NaN for an invalid one. */
export function minorUnits(text: string, currency: string): number {
  return text.trim() === '' ? Number.NaN : Math.round(Number(text) * 10 ** minorDigits(currency))
}

/** An amount in minor units as typed in a form. */
export function typedAmount(minor: number, currency: string): string {
  const digits = minorDigits(currency)
  return (minor / 10 ** digits).toFixed(digits)
}

export type Tone = 'good' | 'warn' | 'bad'

/** A status label; its colour is redundant to its text. */
export function Mark({ tone, children }: { tone?: Tone | undefined; children: ComponentChildren }): JSX.Element {
  return <span class={tone ? `mark ${tone}` : 'mark'}>{children}</span>
}
