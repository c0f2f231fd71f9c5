import { hour, minute } from '../../../core/clock.ts'
import { type Database, join, sql, type Sql } from '../../../store/database.ts'
import { about, sharedCheck, type Check, spell } from '../check.ts'
import type { BoxContext } from '../context.ts'
import type { Line } from '../model.ts'

/** Checks the queue: its length, its age, and whether deliveries succeed; without what waits because its account is stopped. */
export function queue({ database, now, running, answerText }: BoxContext): Check {
  return sharedCheck('queue', 'often', async () => {
    const kinds = await database.all<Kind>(
      sql`SELECT kind, count(*) AS waiting, min(created_at) AS oldest, min(due_at) AS due FROM deliveries_queue
          WHERE state = 'waiting' AND account_id NOT IN (SELECT account_id FROM stopped_accounts) GROUP BY kind ORDER BY kind`,
    )
    const lines = await Promise.all(kinds.map((kind) => judge({ database, answerText }, kind, now(), running())))
    return lines.length > 0 ? lines : [about('queue', 'all').pass('The queue is empty.')]
  })
}

/** The advice when all deliveries of a kind fail: to one destination, and to several. */
interface Advice {
  one: (destination: string) => string
  all: string
}

const retry = (kind: string): string =>
  `pillarbox queue list --kind ${kind} shows the last response of each; once that is fixed: pillarbox queue retry ID`

const mail: Advice = {
  one: (domain) =>
    `pillarbox queue list --destination ${domain} shows its responses: the other side must fix them, unless they concern this machine (lines port25, helo, ptr, spf).`,
  all: 'Lines port25, dns, helo and ptr show the problem; the route is set by outbound.*',
}

const routing: Record<string, Advice> = {
  webhook: {
    one: (id) => `GET /v1/webhooks/${id}/deliveries shows its responses; once it is fixed: pillarbox queue retry ID, or wait.`,
    all: retry('webhook'),
  },
  sms: { one: () => retry('sms'), all: retry('sms') },
}

interface Kind {
  kind: string
  waiting: number
  oldest: string
  due: string
}

async function judge(
  { database, answerText }: Pick<BoxContext, 'database' | 'answerText'>,
  { kind, waiting, oldest, due }: Kind,
  now: number,
  running: boolean,
): Promise<Line> {
  const line = about('queue', kind)
  const last = await lately(database, kind, now)
  const overdue = now - Date.parse(due)
  // many deliveries to one dead server are overdue, while the next one is still tried
  if (running && overdue > 15 * minute && !(await isAtWork(database, kind, now - 15 * minute))) {
    const lane = await laneOf(database, kind, due)
    const message = `${waiting} wait, and ${lane} was due ${spell(overdue)} ago: the queue is stuck.`
    return line.fail(message, 'Restart the box: systemctl restart pillarbox; then check its log for part "delivery".')
  }
  if (last && last.done === 0 && last.tried >= 5) {
    const message = `None of ${last.tried} attempts of the last hour succeeded; the last one: ${last.answer === null ? 'no answer' : answerText(kind, last.answer).slice(0, 200)}`
    const { one, all } = routing[kind] ?? mail
    const [lane] = last.lanes
    // failures to many destinations have a local cause, to one destination a remote one
    if (last.lanes.size === 1) return line.warn(`${message} (all to ${lane})`, one(lane!))
    return line.fail(message, all)
  }
  const age = now - Date.parse(oldest)
  if (waiting > 10_000) {
    return line.warn(
      `${waiting} wait, the oldest for ${spell(age)}.`,
      'pillarbox queue list shows the recipients; pillarbox queue drop cancels them.',
    )
  }
  return line.pass(`${waiting} ${waiting === 1 ? 'waits' : 'wait'}${age > hour ? `, the oldest for ${spell(age)}` : ''}.`)
}

async function laneOf(database: Database, kind: string, due: string): Promise<string> {
  const row = await database.get<{ lane: string }>(
    sql`SELECT lane FROM deliveries_queue WHERE state = 'waiting' AND kind = ${kind} AND due_at = ${due} LIMIT 1`,
  )
  return row?.lane ?? 'one'
}

/** Milliseconds for the look whether a queue whose deliveries are overdue is at work. */
const deadline = 10_000

interface Lately {
  tried: number
  done: number
  answer: string | null
  lanes: Set<string>
}

/** True if an attempt of this kind began or ended since. */
async function isAtWork(database: Database, kind: string, time: number): Promise<boolean> {
  const since = new Date(time).toISOString()
  const recent = (condition: Sql): Sql => sql`SELECT 1 FROM deliveries_queue WHERE kind || '' = ${kind} AND ${condition}`
  const found = await database.slow(
    sql`SELECT 1 AS found WHERE EXISTS (${recent(sql`ended_at >= ${since}`)})
      OR EXISTS (${recent(sql`state = 'waiting' AND first_started_at >= ${since}`)})
      OR EXISTS (${recent(sql`state = 'running' AND first_started_at >= ${since}`)})
      OR EXISTS (${laterAttempts(sql`1`, kind, since)})`,
    deadline,
  )
  return found.length > 0
}

async function lately(database: Database, kind: string, now: number): Promise<Lately | undefined> {
  const since = new Date(now - hour).toISOString()
  // the newest of each kind of row, by an index
  const newest = [
    sql`WHERE ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT 1000`,
    sql`WHERE state = 'waiting' AND first_started_at IS NOT NULL ORDER BY first_started_at DESC LIMIT 1000`,
    sql`WHERE state = 'running'`,
  ]
  const rows = await database.all<{ lane: string; started_at: string; outcome: string | null; answer: string | null }>(
    sql`${laterAttempts(sql`lane, started_at, outcome, answer`, kind, since)} ${join(
      newest.map((some) => firstAttempts(some, kind, since)),
      ' ',
    )}
      ORDER BY started_at DESC`,
  )
  if (rows.length === 0) return undefined
  const ended = rows.filter(({ outcome }) => outcome !== null && outcome !== 'interrupted')
  return {
    tried: ended.length,
    done: ended.filter(({ outcome }) => outcome === 'done').length,
    lanes: new Set(ended.map(({ lane }) => lane)),
    answer: ended[0]?.answer ?? null,
  }
}

/** Attempts beyond the first of each delivery, among the newest of all kinds. */
function laterAttempts(columns: Sql, kind: string, since: string): Sql {
  return sql`SELECT ${columns} FROM (SELECT * FROM delivery_attempts ORDER BY seq DESC LIMIT 1000) AS attempts
    JOIN deliveries_queue ON deliveries_queue.seq = attempts.delivery_seq WHERE kind = ${kind} AND started_at >= ${since}`
}

/** First attempts among these deliveries. */
function firstAttempts(some: Sql, kind: string, since: string): Sql {
  return sql`UNION ALL SELECT lane, first_started_at, first_outcome, first_answer FROM (SELECT * FROM deliveries_queue ${some}) AS deliveries
    WHERE kind = ${kind} AND first_started_at >= ${since}`
}
