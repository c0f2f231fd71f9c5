const units = ['B', 'kB', 'MB', 'GB', 'TB']

/** A size for people: `1.5 MB`. */
export function bytes(count: number): string {
  let value = count
  let unit = 0
  for (; value >= 1000 && unit < units.length - 1; unit++) value /= 1000
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}

/** `1 message`, `2 messages`, `1,000 messages`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

/** A relative time, or the date of an older one. */
export function ago(at: string, now = Date.now()): string {
  const since = now - Date.parse(at)
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

/** A duration: `45 s`, `12 min`, `3 h`, `5 days`. */
export function span(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`
  return `${Math.round(seconds / 86_400)} days`
}
