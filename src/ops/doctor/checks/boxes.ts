import { about, newCheck, type Check, spell } from '../check.ts'
import type { BoxContext } from '../context.ts'

/** Milliseconds without a heartbeat after which a box stops what it has under way (`HeartbeatTimes`). */
const late = 20_000

/** Names the other boxes on the same database, where there may be some. */
export function otherBoxes({ database }: Pick<BoxContext, 'database'>): Check {
  return newCheck('boxes', 'often', async () => {
    if (!database.several) return []
    const line = about('boxes', 'others')
    const since = await database.run.others()
    if (since.length === 0) return [line.pass('No other box uses the database now.')]
    const count = `${since.length} other ${since.length === 1 ? 'box uses' : 'boxes use'} the database`
    const oldest = Math.max(...since)
    if (oldest < late) return [line.pass(`${count}; the last heartbeat is at most ${spell(Math.max(oldest, 1000))} ago.`)]
    return [
      line.warn(
        `${count}; one has not reached it for ${spell(oldest)}. After 30 seconds the others do its work.`,
        'Look at that box, its log and its network; if it was stopped for good, nothing has to be done.',
      ),
    ]
  })
}
