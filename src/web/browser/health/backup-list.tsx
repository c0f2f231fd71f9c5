import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Backup } from '../../../ops/backup/model.ts'
import type { Job } from '../../../jobs/model.ts'
import { post } from '../api.ts'
import { useList } from '../loaded.ts'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { moment, bytes } from '../widgets/format.tsx'
import { JobProgress } from '../widgets/job-progress.tsx'
import { Listing } from '../widgets/listing.tsx'

/** The backups of the box, with a button for a new one. */
export function BackupList(): JSX.Element {
  const list = useList<Backup>('/v1/backups')
  const [making, setMaking] = useState<string>()
  const over = async ({ status }: Job): Promise<void> => {
    await list.reload()
    announce(status === 'done' ? 'The backup is made.' : 'The backup was not made.')
  }
  return (
    <section aria-labelledby="backups">
      <div class="head spaced">
        <h2 id="backups">Backups</h2>
        <span class="actions">
          <Action run={async () => setMaking((await post<Job>('/v1/backups')).id)}>Make a backup</Action>
        </span>
      </div>
      {making !== undefined && <JobProgress key={making} id={making} label="Backup" onEnd={(job) => void over(job)} />}
      <Listing list={list} empty="None yet.">
        {(rows) => (
          <ul class="rows">
            {rows.map(({ name, size, created_at, keys, program_version }) => (
              <li key={name}>
                <span class="grow mono">{name}</span>
                <span class="faint">
                  {moment(created_at)}, {bytes(size)}, of {program_version}
                  {!keys && ', without the keys'}
                </span>
              </li>
            ))}
          </ul>
        )}
      </Listing>
    </section>
  )
}
