import type { Metrics } from '../../core/metrics.ts'
import type { DnsTally } from '../../net/dns-tally.ts'
import type { Examiner } from './examiner.ts'

/** What the workers that examine messages show of themselves. */
export function examinerMetrics(metrics: Metrics, examiner: Examiner, queries: Record<string, DnsTally>): void {
  metrics.counted(
    'pillarbox_dns_queries_total',
    'Queries of the DNS: of the checks of mail that came, of blocklists (mail.dnsbl), and of the way of mail that leaves',
    () =>
      Object.entries(queries).flatMap(([use, tally]) =>
        [...tally.counts()].map(([result, count]): [{ use: string; result: string }, number] => [{ use, result }, count]),
      ),
    ['use', 'result'],
  )
  metrics.counted(
    'pillarbox_examiner_messages_total',
    'Messages by what became of their examination: examined, retried (a worker died beside them), killed (over them: kept unread)',
    () => Object.entries(examiner.counters).map(([result, count]) => [{ result }, count]),
    ['result'],
  )
  metrics.gauge(
    'pillarbox_examiner_messages',
    'Messages at the examiner now: waiting for a worker, working in one',
    (gauge) => {
      const { waiting, outstanding } = examiner
      gauge.labels('waiting').set(waiting)
      gauge.labels('working').set(outstanding - waiting)
    },
    ['state'],
  )
}
