import type { JSX } from 'preact'
import { moment } from './format.tsx'

/** One series of a chart; null where there is no data. */
export interface ChartSeries {
  name: string
  values: (number | null)[]
  tone?: 'bad'
}

interface Props {
  title: string
  /** The start of each step. */
  at: string[]
  /** Stacked, the first at the bottom. */
  strands: ChartSeries[]
  say?: (amount: number) => string
  /** The text beside the title; by default the sum. */
  summary?: string
}

const width = 300
const height = 60

/** A small stacked bar chart over time; each bar has its time and amounts as a title. */
export function Chart({ title, at, strands, say = plain, summary }: Props): JSX.Element {
  const heights = at.map((_, index) => strands.reduce((sum, { values }) => sum + (values[index] ?? 0), 0))
  const peak = Math.max(0, ...heights)
  const words = summary ?? strands.map(({ name, values }) => `${say(sumOf(values))} ${name}`).join(', ')
  const step = width / Math.max(1, at.length)
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong> <span class="faint">{words}</span>
      </figcaption>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${words}; peak ${say(peak)}`}
      >
        <line class="chart-ground" x1="0" x2={width} y1={height - 0.5} y2={height - 0.5} />
        {at.map((moment_, index) => (
          <Bars key={moment_} x={index * step} step={step} index={index} at={moment_} strands={strands} peak={peak} say={say} />
        ))}
      </svg>
      <div class="chart-ends faint" aria-hidden="true">
        <span>{at.length > 0 && clock(at[0]!)}</span>
        <span>peak {say(peak)}</span>
        <span>{at.length > 0 && clock(at.at(-1)!)}</span>
      </div>
    </figure>
  )
}

interface BarsProps {
  x: number
  step: number
  index: number
  at: string
  strands: ChartSeries[]
  peak: number
  say: (amount: number) => string
}

function Bars({ x, step, index, at, strands, peak, say }: BarsProps): JSX.Element {
  let top = height
  const bars = strands.map(({ name, values, tone }) => {
    const value = values[index] ?? null
    if (value === null || value === 0 || peak === 0) return null
    // a non-zero value is visible, however small
    const tall = Math.max(1.5, (value / peak) * (height - 4))
    top -= tall
    return <rect key={name} class={tone ?? ''} x={x} y={top} width={Math.max(0.5, step * 0.8)} height={tall} />
  })
  const known = strands.filter(({ values }) => (values[index] ?? null) !== null)
  const words = known.map(({ name, values }) => `${say(values[index]!)} ${name}`).join(', ')
  return (
    <g class={known.length === 0 ? 'unknown' : ''}>
      <title>{`${moment(at)}: ${known.length === 0 ? 'no data' : words}`}</title>
      <rect class="chart-hit" x={x} y="0" width={step} height={height} />
      {bars}
    </g>
  )
}

function sumOf(values: (number | null)[]): number {
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0)
}

function plain(amount: number): string {
  return amount.toLocaleString('en')
}

function clock(at: string): string {
  return new Date(at).toLocaleTimeString('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
}
