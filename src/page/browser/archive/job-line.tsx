import type { JSX } from 'preact'
import type { Job } from '../../../jobs/model.ts'
import { counted, moment, octets } from '../widgets/format.ts'
import { JobProgress } from '../widgets/job-progress.tsx'

interface Props {
  job: Job
  onEnd: () => Promise<void>
}

/** One export or import: how far it is, and what came of it. */
export function JobLine({ job, onEnd }: Props): JSX.Element {
  const { id, kind, status, result, created_at } = job
  return (
    <li class="record">
      <JobProgress
        id={id}
        label={`${kind === 'export' ? 'Export' : 'Import'} of ${moment(created_at)}`}
        {...(status === 'running' ? { onEnd: () => void onEnd() } : {})}
      />
      {result !== null && kind === 'export' && <Exported result={result} />}
      {result !== null && kind === 'import' && <p>{talliedIn(result)}</p>}
    </li>
  )
}

function Exported({ result }: { result: NonNullable<Job['result']> }): JSX.Element {
  const { url, expires_at, size, messages, sms } = result
  if (Date.parse(String(expires_at)) <= Date.now()) return <p class="faint">It was there to be downloaded for 24 hours.</p>
  // the box may be reached here by another name than its own
  const { pathname, search } = new URL(String(url))
  return (
    <p class="actions middle">
      <a class="button" href={pathname + search}>
        Download
      </a>
      <span class="faint">
        {counted(Number(messages), 'message')}, {counted(Number(sms), 'text message')}, {octets(Number(size))}; until{' '}
        {moment(String(expires_at))}
      </span>
    </p>
  )
}

const tallies: [string, string][] = [
  ['imported', 'imported'],
  ['sms', 'text messages'],
  ['duplicates', 'there already'],
  ['too_large', 'too large'],
  ['unreadable', 'unreadable'],
  ['not_understood', 'not understood'],
  ['ignored', 'files of another kind'],
]

function talliedIn(result: NonNullable<Job['result']>): string {
  return tallies
    .filter(([name]) => name === 'imported' || Number(result[name] ?? 0) > 0)
    .map(([name, words]) => `${Number(result[name] ?? 0).toLocaleString('en')} ${words}`)
    .join(', ')
}
