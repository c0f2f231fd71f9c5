import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Identity } from '../../../identities/model.ts'
import type { Job } from '../../../jobs/model.ts'
import type { Exported, Tally } from '../../../transfer/model.ts'
import { post, upload } from '../api.ts'
import { reread } from '../live.ts'
import { counted, octets } from '../widgets/format.ts'
import { Field, Form, Select } from '../widgets/form.tsx'
import { JobProgress } from '../widgets/job-progress.tsx'

/** One identity out of the box, and mail into it: long work, whose progress is shown. */
export function Transfer({ identity: { id } }: { identity: Identity }): JSX.Element {
  return (
    <section class="sheet" aria-labelledby="transfer">
      <h2 id="transfer">Export and import</h2>
      <Export id={id} />
      <Import id={id} />
    </section>
  )
}

function Export({ id }: { id: string }): JSX.Element {
  const [job, setJob] = useState<string>()
  const [made, setMade] = useState<Exported>()
  return (
    <>
      <h3>Export</h3>
      <Form
        submit="Export"
        label="Export"
        send={async (typed) => {
          setMade(undefined)
          setJob((await post<Job>(`/v1/identities/${id}/export`, typed)).id)
        }}
      >
        <Select name="format" label="Messages" hint="All that the box has of it, as one ZIP.">
          <option value="mbox">all in one mbox file</option>
          <option value="eml">each in a file of its own</option>
        </Select>
      </Form>
      {job !== undefined && (
        <JobProgress
          key={job}
          id={job}
          label="Export"
          onEnd={({ result }) => setMade((result as Exported | null) ?? undefined)}
        />
      )}
      {made && (
        <p>
          <a href={here(made.url)} download="">
            Download {octets(made.size)}
          </a>
          : {counted(made.messages, 'e-mail')}, {counted(made.sms, 'text message')}.
        </p>
      )}
    </>
  )
}

/** The box may be reached here by another name than its own. */
function here(url: string): string {
  const { pathname, search } = new URL(url)
  return pathname + search
}

function Import({ id }: { id: string }): JSX.Element {
  const [job, setJob] = useState<string>()
  const [tally, setTally] = useState<Tally>()
  return (
    <>
      <h3>Import</h3>
      <Form
        submit="Import"
        label="Import"
        clears
        send={async (_, files) => {
          setTally(undefined)
          setJob((await upload<Job>(`/v1/identities/${id}/import`, files.get('file') as File)).id)
        }}
      >
        <Field
          name="file"
          type="file"
          label="File"
          hint="An mbox, one message, or a ZIP of such, of a maildir, or that an export made. What is there already is left out."
        />
      </Form>
      {job !== undefined && (
        <JobProgress
          key={job}
          id={job}
          label="Import"
          onEnd={({ result }) => {
            setTally((result as Tally | null) ?? undefined)
            reread()
          }}
        />
      )}
      {tally && <p>{wordsOf(tally)}</p>}
    </>
  )
}

function wordsOf({ imported, duplicates, sms, too_large, unreadable, not_understood, ignored }: Tally): string {
  const rest = [
    [duplicates, 'there already'],
    [too_large, 'too large'],
    [unreadable, 'could not be read'],
    [not_understood, 'not wholly understood'],
    [ignored, 'no messages, and passed over'],
  ] as const
  const others = rest.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  return `${[`${counted(imported, 'e-mail')} and ${counted(sms, 'text message')} were taken in`, ...others].join('; ')}.`
}
