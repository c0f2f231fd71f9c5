import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { StatsValues, Stats } from '../../../ops/metrics/model.ts'
import { useResource } from '../loaded.ts'
import { Chart } from '../widgets/chart.tsx'
import { moment, bytes, span } from '../widgets/format.tsx'
import { Table, WhenLoaded } from '../widgets/listing.tsx'

/** The activity of the last hour or day, as charts and as a table. */
export function MetricsCharts(): JSX.Element {
  const [step, setStep] = useState<Stats['step']>('minute')
  const [tabled, setTabled] = useState(false)
  const stats = useResource<Stats>(`/v1/stats?step=${step}`, () => false, true)
  return (
    <section aria-labelledby="activity">
      <div class="head spaced">
        <h2 id="activity">Activity</h2>
        <span class="actions">
          <button type="button" aria-pressed={step === 'minute'} onClick={() => setStep('minute')}>
            Last hour
          </button>
          <button type="button" aria-pressed={step === 'hour'} onClick={() => setStep('hour')}>
            Last day
          </button>
        </span>
      </div>
      <WhenLoaded of={stats}>
        {({ series }) => (
          <>
            <Charts series={series} />
            <p>
              <button type="button" class="plain" aria-expanded={tabled} onClick={() => setTabled(!tabled)}>
                Show as a table
              </button>
            </p>
            {tabled && <MetricsTable series={series} />}
          </>
        )}
      </WhenLoaded>
    </section>
  )
}

type Series = Stats['series']

function Charts({ series }: { series: Series }): JSX.Element {
  const at = series.map((one) => one.at)
  const of = (name: keyof StatsValues): (number | null)[] => series.map((one) => one[name])
  const last = (name: keyof StatsValues): number | null => of(name).findLast((value) => value !== null) ?? null
  return (
    <div class="charts">
      <Chart
        title="Mail in"
        at={at}
        strands={[
          { name: 'taken', values: of('mail_in') },
          { name: 'refused', values: of('mail_refused'), tone: 'bad' },
        ]}
      />
      <Chart
        title="Mail out"
        at={at}
        strands={[
          { name: 'delivered', values: of('mail_delivered') },
          { name: 'failed', values: of('mail_failed'), tone: 'bad' },
        ]}
      />
      <Chart title="Events" at={at} strands={[{ name: 'in the log', values: of('events') }]} />
      <Chart
        title="Webhook deliveries"
        at={at}
        strands={[
          { name: 'taken', values: of('webhooks_done') },
          { name: 'failed', values: of('webhooks_failed'), tone: 'bad' },
        ]}
      />
      <Chart title="API calls" at={at} strands={[{ name: 'answered', values: of('api_calls') }]} />
      <Chart
        title="Queue"
        at={at}
        strands={[{ name: 'waiting or running', values: of('queue_depth') }]}
        summary={now(last('queue_depth'), (count) => `${count.toLocaleString('en')} now`)}
      />
      <Chart
        title="Oldest due delivery"
        at={at}
        strands={[{ name: 'late', values: of('oldest_due') }]}
        say={span}
        summary={now(last('oldest_due'), (seconds) => `${span(seconds)} overdue`)}
      />
      <Chart
        title="Disk free"
        at={at}
        strands={[{ name: 'free', values: of('disk_free') }]}
        say={bytes}
        summary={now(last('disk_free'), bytes)}
      />
    </div>
  )
}

function now(value: number | null, say: (value: number) => string): string {
  return value === null ? 'no data yet' : say(value)
}

const columns: [keyof StatsValues, string][] = [
  ['mail_in', 'Mail accepted'],
  ['mail_refused', 'refused'],
  ['mail_delivered', 'delivered'],
  ['mail_failed', 'failed'],
  ['events', 'Events'],
  ['webhooks_done', 'Webhooks delivered'],
  ['webhooks_failed', 'failed'],
  ['api_calls', 'API calls'],
  ['queue_depth', 'Queue'],
  ['oldest_due', 'Delay, s'],
]

function MetricsTable({ series }: { series: Series }): JSX.Element {
  return (
    <Table label="Activity as a table" headings={['From', ...columns.map(([, label]) => label)]}>
      {series.toReversed().map((one) => (
        <tr key={one.at}>
          <th scope="row">{moment(one.at)}</th>
          {columns.map(([name]) => (
            <td key={name}>{one[name]?.toLocaleString('en') ?? '–'}</td>
          ))}
        </tr>
      ))}
    </Table>
  )
}
