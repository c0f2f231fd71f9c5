import { type Clock, day, hour, iso, minute } from '../../core/clock.ts'
import { invalid } from '../../core/fault.ts'
import { type Database, join, raw, sql } from '../../store/database.ts'
import { counted } from './counters.ts'
import { type Stats, type StatsFilter, StatsValues } from './model.ts'

type Step = StatsFilter['step']
type Row = StatsValues & { at: string }

/** Each step: its length, the default and the longest time span, in milliseconds. */
const steps: Record<Step, { size: number; usual: number; most: number; words: string }> = {
  minute: { size: minute, usual: hour, most: day, words: 'a day of minutes; use step=hour, or a shorter range' },
  hour: { size: hour, usual: day, most: 7 * day, words: 'a week of hours' },
}

const deadline = 10_000

const names = Object.keys(StatsValues.shape) as (keyof StatsValues)[]

const unknown = Object.fromEntries(names.map((name) => [name, null])) as StatsValues

/** Every step from the one that contains `from` to the one before `to`. Throws Fault invalid_request for an invalid range. */
export async function seriesOf(database: Database, clock: Clock, { step, ...filter }: StatsFilter): Promise<Stats> {
  const { size, usual, most, words } = steps[step]
  const to = filter.to === undefined ? clock.now() : Date.parse(filter.to)
  const from = filter.from === undefined ? to - usual : Date.parse(filter.from)
  if (from >= to) throw invalid('from', 'from must be earlier than to.')
  if (to - from > most) throw invalid('from', `The range from from to to is more than ${words}.`)
  const first = Math.floor(from / size) * size
  const end = Math.ceil(to / size) * size
  const rows = new Map((await rowsOf(database, step, iso(first), iso(end))).map((row) => [row.at, row]))
  const series = Array.from({ length: (end - first) / size }, (_, index) => {
    const at = iso(first + index * size)
    return { ...unknown, ...rows.get(at), at }
  })
  return { from: iso(first), to: iso(end), step, series }
}

function rowsOf(database: Database, step: Step, first: string, end: string): Promise<Row[]> {
  const within = sql`FROM figures WHERE at >= ${first} AND at < ${end}`
  if (step === 'minute') return database.all<Row>(sql`SELECT * ${within}`)
  // a week is ten thousand rows, which are aggregated off the event loop
  const sums = join(names.map((name) => raw(`${together(name)}(${name}) AS ${name}`)))
  return database.slow<Row>(
    sql`SELECT substr(at, 1, 13) || ':00:00.000Z' AS at, ${sums} ${within} GROUP BY substr(at, 1, 13)`,
    deadline,
  )
}

/** How an hour aggregates its minutes. */
function together(name: keyof StatsValues): 'sum' | 'min' | 'max' {
  if ((counted as readonly string[]).includes(name)) return 'sum'
  return name === 'disk_free' ? 'min' : 'max'
}
