import { about } from '../check.ts'
import type { Check } from '../check.ts'

/** Why reports to other domains cannot be sent, and what mends it; null when they can, undefined when they are off. */
export type ReportStatus = () => { why: string; fix: string } | null | undefined

/** Whether the reports to other domains that are on can be sent. */
export function reports(status: ReportStatus): Check {
  return {
    name: 'reports',
    pace: 'often',
    async run() {
      const obstacle = status()
      if (obstacle === undefined) return []
      const line = about('reports', 'to other domains')
      return [obstacle === null ? line.pass('They can be sent.') : line.warn(`They are not sent: ${obstacle.why}`, obstacle.fix)]
    },
  }
}
