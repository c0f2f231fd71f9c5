import type { JSX } from 'preact'
import type { Job } from '../../../jobs/model.ts'
import { post, upload } from '../api.ts'
import { JobLine } from '../archive/job-line.tsx'
import { IdentityFrame } from '../identity-frame.tsx'
import { useList } from '../loaded.ts'
import type { ViewProps } from '../views.ts'
import { announce } from '../widgets/announcer.tsx'
import { Field, Form, Select } from '../widgets/form.tsx'
import { Listing } from '../widgets/listing.tsx'

/** Export and import of one identity. */
export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{() => <Archive key={id} id={id} />}</IdentityFrame>
}

function Archive({ id }: { id: string }): JSX.Element {
  const jobs = useList<Job>('/v1/jobs', { limit: 50 }, () => false, true)
  return (
    <>
      <section class="sheet" aria-labelledby="export">
        <h2 id="export">Export</h2>
        <Form
          submit="Export"
          label="Export"
          send={async ({ format }) => {
            await post<Job>(`/v1/identities/${id}/export`, { format })
            await jobs.reload()
          }}
        >
          <p>A ZIP with its messages, text messages and events;no secrets of cards or one-time passwords.</p>
          <Select name="format" label="Messages">
            <option value="mbox">in one file (mbox)</option>
            <option value="eml">each in a file of its own (eml)</option>
          </Select>
        </Form>
      </section>
      <section class="sheet" aria-labelledby="import">
        <h2 id="import">Import</h2>
        <Form
          submit="Import"
          label="Import"
          clears
          send={async (_, files) => {
            await upload<Job>(`/v1/identities/${id}/import`, files.get('file') as File)
            await jobs.reload()
            announce('The file was uploaded and is being imported.')
          }}
        >
          <Field
            name="file"
            type="file"
            label="File"
            hint="An mbox, one message, a ZIP of these or of a maildir, or an export. E-mail that already exists is skipped."
          />
        </Form>
      </section>
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
