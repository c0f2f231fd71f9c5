import { minute } from '../../../core/clock.ts'
import { sql } from '../../../store/database.ts'
import { about, sharedCheck, type Check, spell } from '../check.ts'
import type { BoxContext } from '../context.ts'

interface Row {
  id: string
  url: string
  active: number
  failing_since: string | null
  disabled_at: string | null
  disabled_reason: string | null
}

/** The most lines: a general problem shows in the first. */
const maxLines = 50

/** Milliseconds of failures that are normal. */
const usual = 10 * minute

/** Checks for webhooks of any account that fail, or were disabled for it. */
export function webhooks({ database, now }: BoxContext): Check {
  return sharedCheck('webhooks', 'often', async () => {
    const rows = await database.all<Row>(
      sql`SELECT id, url, active, failing_since, disabled_at, disabled_reason FROM webhooks
          WHERE (active = 1 AND failing_since IS NOT NULL AND failing_since <= ${new Date(now() - usual).toISOString()})
            OR (active = 0 AND disabled_reason IN ('gone', 'failing')) ORDER BY seq DESC LIMIT ${maxLines}`,
    )
    const lines = rows.map(({ id, url, active, failing_since, disabled_at, disabled_reason }) => {
      // the path may contain a secret of the receiver
      const line = about('webhooks', `${id} ${new URL(url).host}`)
      if (active === 0) {
        const why = disabled_reason === 'gone' ? 'it answered 410' : 'it failed for days'
        const fix = `Once it answers: PATCH /v1/webhooks/${id} {"active": true}; or DELETE /v1/webhooks/${id}`
        return line.fail(`It was disabled on ${disabled_at?.slice(0, 10) ?? 'an unknown day'}: ${why}.`, fix)
      }
      const message = `All attempts failed for ${spell(now() - Date.parse(failing_since!))}.`
      return line.warn(message, `See its responses: GET /v1/webhooks/${id}/deliveries`)
    })
    return lines.length > 0 ? lines : [about('webhooks', 'all').pass('None has failed for 10 minutes or longer.')]
  })
}
