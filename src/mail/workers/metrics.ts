import type { Metrics } from '../../core/metrics.ts'
import type { DnsTally } from '../../net/dns-tally.ts'
import type { Examiner } from './examiner.ts'

/** The metrics of the workers that examine messages. */
export function examinerMetrics(metrics: Metrics, examiner: Examiner, queries: Record<string, DnsTally>): void {
  metrics.counted(
    'pillarbox_dns_queries_total',
    'DNS queries of the checks of incoming mail, of block lists (mail.dnsbl), and of outbound delivery',
    () =>
      Object.entries(queries).flatMap(([use, tally]) =>
        [...tally.counts()].map(([result, count]): [{ use: string; result: string }, number] => [{ use, result }, count]),
      ),
    ['use', 'result'],
  )
  metrics.counted(
    'pillarbox_examiner_messages_total',
    'Examined messages by result: examined, retried (were in a worker that died), killed (crashed a worker: stored unparsed)',
    () => Object.entries(examiner.counters).map(([result, count]) => [{ result }, count]),
    ['result'],
  )
  metrics.gauge(
    'pillarbox_examiner_messages',
    'Messages in the examiner: waiting for a worker, or working in one',
    (gauge) => {
      const { waiting, outstanding } = examiner
      gauge.labels('waiting').set(waiting)
      gauge.labels('working').set(outstanding - waiting)
    },
    ['state'],
  )
}
