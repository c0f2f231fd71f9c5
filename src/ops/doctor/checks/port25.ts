import { hour } from '../../../core/clock.ts'
import { type Database, sql } from '../../../store/database.ts'
import { about, newCheck, type Check, reasonOf } from '../check.ts'
import type { BoxContext } from '../context.ts'

const timeout = 20_000

/** Checks that mail can leave: providers often block port 25. */
export function port25({ externalView, database, probe, settings, isOurs, now }: BoxContext): Check {
  const { mode, port, probe_domain: domain } = settings
  return newCheck('port25', 'seldom', async () => {
    const line = about('port25', mode)
    if (mode === 'none') return []
    // with several boxes another one may have sent it, from its own address
    const left = mode === 'direct' && !database.several ? await lately(database, now(), isOurs) : undefined
    if (left !== undefined) return [line.pass(`Mail to ${left} was just sent.`)]
    // a box without a public address does not probe other servers
    if (mode === 'direct' && (await externalView.ask((ask) => externalView.addresses(ask))).length === 0) return []
    try {
      return [line.pass(`${await probe(domain, AbortSignal.timeout(timeout))} answers.`)]
    } catch (error) {
      const fix =
        mode === 'direct'
          ? `Ask the provider of this machine to open port ${port} outwards, or set outbound.mode to relay and outbound.relay`
          : 'Check outbound.relay: host, port and tls; and that the provider allows this machine to reach it.'
      return [line.fail(`No mail can be sent: ${reasonOf(error)}.`, fix)]
    }
  })
}

/** An outside domain whose server accepted mail in the last six hours. */
async function lately(database: Database, now: number, isOurs: (domain: string) => boolean): Promise<string | undefined> {
  const rows = await database.all<{ lane: string }>(
    // an expression: by the index of those that ended, not that of all e-mail
    sql`SELECT lane FROM deliveries_queue WHERE ended_at >= ${new Date(now - 6 * hour).toISOString()} AND kind || '' = 'email'
      AND state = 'done' ORDER BY ended_at DESC LIMIT 200`,
  )
  return rows.find(({ lane }) => !isOurs(lane))?.lane
}
