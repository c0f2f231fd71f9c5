import type { JSX } from 'preact'
import type { Job } from '../../../jobs/model.ts'
import type { Exported, Tally } from '../../../ops/transfer/model.ts'
import { counted, moment, bytes } from '../widgets/format.tsx'
import { JobProgress } from '../widgets/job-progress.tsx'

interface Props {
  job: Job
  onEnd: () => Promise<void>
}

/** One export or import: its progress, and its result. */
export function JobLine({ job, onEnd }: Props): JSX.Element {
  const { id, kind, status, result, created_at } = job
  return (
    <li class="record">
      <JobProgress
        id={id}
        label={`${kind === 'export' ? 'Export' : 'Import'} of ${moment(created_at)}`}
        {...(status === 'running' ? { onEnd: () => void onEnd() } : {})}
      />
      {result !== null && kind === 'export' && <Made made={result as unknown as Exported} />}
      {result !== null && kind === 'import' && <p>{wordsOf(result as unknown as Tally)}</p>}
    </li>
  )
}

function Made({ made: { url, expires_at, size, messages, sms } }: { made: Exported }): JSX.Element {
  if (Date.parse(expires_at) <= Date.now()) return <p class="faint">The download expired after 24 hours.</p>
  // the page may use another host name than the configured one
  const { pathname, search } = new URL(url)
  return (
    <p class="actions middle">
      <a class="button" href={pathname + search} download="">
        Download
      </a>
      <span class="faint">
        {counted(messages, 'e-mail')}, {counted(sms, 'text message')}, {bytes(size)}; until {moment(expires_at)}
      </span>
    </p>
  )
}

function wordsOf({ imported, duplicates, sms, too_large, header_too_large, unreadable, not_understood, ignored }: Tally): string {
  const rest = [
    [duplicates, 'already present'],
    [too_large, 'too large'],
    [header_too_large, 'with too large a header'],
    [unreadable, 'could not be read'],
    [not_understood, 'only partly parsed'],
    [ignored, 'not messages, and skipped'],
  ] as const
  const others = rest.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  return `${[`${counted(imported, 'e-mail')} and ${counted(sms, 'text message')} were imported`, ...others].join('; ')}.`
}
