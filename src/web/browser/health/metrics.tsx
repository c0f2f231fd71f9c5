import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { StatsValues, Stats } from '../../../ops/metrics/model.ts'
import { useResource } from '../loaded.ts'
import { Chart, type ChartSeries } from '../widgets/chart.tsx'
import { moment, bytes, span } from '../widgets/format.tsx'
import { Section, Table, WhenLoaded } from '../widgets/listing.tsx'

export function MetricsCharts(): JSX.Element {
  const [step, setStep] = useState<Stats['step']>('minute')
  const [tabled, setTabled] = useState(false)
  const stats = useResource<Stats>(`/v1/stats?step=${step}`, () => false, true)
  return (
    <Section
      id="activity"
      title="Activity"
      tools={(['minute', 'hour'] as const).map((one) => (
        <button key={one} type="button" aria-pressed={step === one} onClick={() => setStep(one)}>
          {one === 'minute' ? 'Last hour' : 'Last day'}
        </button>
      ))}
    >
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
    </Section>
  )
}

type Series = Stats['series']

function Charts({ series }: { series: Series }): JSX.Element {
  const at = series.map((one) => one.at)
  const of = (name: keyof StatsValues): (number | null)[] => series.map((one) => one[name])
  const last = (name: keyof StatsValues, say: (value: number) => string): string => {
    const value = of(name).findLast((one) => one !== null) ?? null
    return value === null ? 'no data yet' : say(value)
  }
  const both = (good: string, done: keyof StatsValues, bad: string, failed: keyof StatsValues): ChartSeries[] => [
    { name: good, values: of(done) },
    { name: bad, values: of(failed), tone: 'bad' },
  ]
  const waiting = last('queue_depth', (count) => `${count.toLocaleString('en')} now`)
  const overdue = last('oldest_due', (seconds) => `${span(seconds)} overdue`)
  const late = [{ name: 'late', values: of('oldest_due') }]
  const free = [{ name: 'free', values: of('disk_free') }]
  return (
    <div class="charts">
      <Chart title="Mail in" at={at} strands={both('taken', 'mail_in', 'refused', 'mail_refused')} />
      <Chart title="Mail out" at={at} strands={both('delivered', 'mail_delivered', 'failed', 'mail_failed')} />
      <Chart title="Events" at={at} strands={[{ name: 'in the log', values: of('events') }]} />
      <Chart title="Webhook deliveries" at={at} strands={both('taken', 'webhooks_done', 'failed', 'webhooks_failed')} />
      <Chart title="API calls" at={at} strands={[{ name: 'answered', values: of('api_calls') }]} />
      <Chart title="Queue" at={at} strands={[{ name: 'waiting or running', values: of('queue_depth') }]} summary={waiting} />
      <Chart title="Oldest due delivery" at={at} strands={late} say={span} summary={overdue} />
      <Chart title="Disk free" at={at} strands={free} say={bytes} summary={last('disk_free', bytes)} />
    </div>
  )
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
