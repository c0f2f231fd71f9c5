import type { JSX } from 'preact'
import type { Job } from '../../../jobs/model.ts'
import { pathOf, post, upload } from '../api.ts'
import { IdentityFrame } from '../identity-frame.tsx'
import { useList } from '../loaded.ts'
import type { ViewProps } from '../views.ts'
import { Field, Form, Select } from '../widgets/form.tsx'
import { Listing, Section } from '../widgets/listing.tsx'
import type { Exported, Tally } from '../../../ops/transfer/model.ts'
import { bytes, counted, moment } from '../widgets/format.tsx'
import { JobProgress } from '../widgets/job-progress.tsx'

export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{() => <Archive key={id} id={id} />}</IdentityFrame>
}

function Archive({ id }: { id: string }): JSX.Element {
  const jobs = useList<Job>('/v1/jobs', { limit: 50 }, () => false, true)
  return (
    <>
      <Section sheet id="export" title="Export">
        <Form submit="Export" label="Export" send={(typed) => post(`/v1/identities/${id}/export`, typed).then(jobs.reload)}>
          <p>A ZIP with its messages, text messages and events;no secrets of cards or one-time passwords.</p>
          <Select name="format" label="Messages">
            <option value="mbox">in one file (mbox)</option>
            <option value="eml">each in a separate file (eml)</option>
          </Select>
        </Form>
      </Section>
      <Section sheet id="import" title="Import">
        <Form
          submit="Import"
          label="Import"
          clears
          done="The file was uploaded and is being imported."
          send={(_, files) => upload(`/v1/identities/${id}/import`, files.get('file') as File).then(jobs.reload)}
        >
          <Field
            name="file"
            type="file"
            label="File"
            hint="An mbox, one message, a ZIP of these or of a maildir, or an export. E-mail that already exists is skipped."
          />
        </Form>
      </Section>
      <h2>Jobs</h2>
      <Listing list={jobs} empty="Nothing yet.">
        {(rows) => <JobLines jobs={rows.filter((job) => job.identity_id === id)} reload={jobs.reload} />}
      </Listing>
    </>
  )
}

function JobLines({ jobs, reload }: { jobs: Job[]; reload: () => Promise<void> }): JSX.Element {
  const ours = jobs.filter(({ kind }) => kind === 'export' || kind === 'import')
  if (ours.length === 0) return <div class="empty">Nothing yet.</div>
  return (
    <ul class="rows">
      {ours.map((job) => (
        <JobLine key={job.id} job={job} onEnd={reload} />
      ))}
    </ul>
  )
}

function JobLine({ job, onEnd }: { job: Job; onEnd: () => Promise<void> }): JSX.Element {
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
  return (
    <p class="actions middle">
      <a class="button" href={pathOf(url)} download="">
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
