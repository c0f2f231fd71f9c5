import type { JSX } from 'preact'
import type { Status } from '../../../ops/status/model.ts'
import { DoctorLines } from '../health/doctor-lines.tsx'
import { MetricsCharts } from '../health/metrics.tsx'
import { QueueList } from '../health/queue-list.tsx'
import { type Loaded, useList, useResource } from '../loaded.ts'
import { bytes, Mark, moment, span } from '../widgets/format.tsx'
import { Fact, Rows, Section, WhenLoaded } from '../widgets/listing.tsx'
import { useState } from 'preact/hooks'
import type { Backup } from '../../../ops/backup/model.ts'
import type { Job } from '../../../jobs/model.ts'
import { post } from '../api.ts'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { JobProgress } from '../widgets/job-progress.tsx'

export function View(): JSX.Element {
  const status = useResource<Status>('/v1/status', () => false, true)
  return (
    <>
      <div class="head">
        <h1>Health</h1>
      </div>
      <Inside status={status} />
    </>
  )
}

/** Rendered after the first call, as all of them would be forbidden alike. */
function Inside({ status }: { status: Loaded<Status> }): JSX.Element {
  const { value, error } = status
  if (error?.code === 'operator_only') return <p class="empty">Only the operator of the box can see its health.</p>
  if (!value && !error) return <p class="waiting">Loading…</p>
  return (
    <>
      <StatusSheet status={status} />
      <MetricsCharts />
      <DoctorLines />
      <QueueList />
      <BackupList />
    </>
  )
}

function StatusSheet({ status }: { status: Loaded<Status> }): JSX.Element {
  return (
    <Section sheet id="box" title="The box">
      <WhenLoaded of={status}>
        {({ version, uptime, failing, sending, identities, disk, last_24_hours: day }) => (
          <dl class="facts">
            <Fact name="State">
              {failing.length === 0 ? (
                <Mark tone="good">healthy</Mark>
              ) : (
                <Mark tone="bad">{`failing: ${failing.join(', ')}`}</Mark>
              )}
            </Fact>
            <Fact name="Version">
              {version}, up {span(uptime)}
            </Fact>
            <Fact name="Sending">{sending.explanation}</Fact>
            <Fact name="Identities">{identities.toLocaleString('en')}</Fact>
            <Fact name="E-mail, last 24 hours">
              {day.emails_received} received, {day.emails_delivered} delivered, {day.emails_bounced} bounced, {day.emails_failed}{' '}
              failed
            </Fact>
            <Fact name="SMS, last 24 hours">
              {day.sms_received} received, {day.sms_sent} sent, {day.sms_failed} failed
            </Fact>
            <Fact name="Disk">
              {disk.free === null ? 'free space unknown' : `${bytes(disk.free)} free`}, database {bytes(disk.database)}{' '}
              {disk.low && <Mark tone="bad">low: new data is rejected</Mark>}
            </Fact>
          </dl>
        )}
      </WhenLoaded>
    </Section>
  )
}

function BackupList(): JSX.Element {
  const list = useList<Backup>('/v1/backups')
  const [making, setMaking] = useState<string>()
  const over = async ({ status }: Job): Promise<void> => {
    await list.reload()
    announce(status === 'done' ? 'The backup was created.' : 'The backup failed.')
  }
  return (
    <Section
      id="backups"
      title="Backups"
      tools={<Action run={async () => setMaking((await post<Job>('/v1/backups')).id)}>Create a backup</Action>}
    >
      {making !== undefined && <JobProgress key={making} id={making} label="Backup" onEnd={(job) => void over(job)} />}
      <Rows list={list} empty="None yet.">
        {({ name, size, created_at, keys, program_version }) => (
          <li>
            <span class="grow mono">{name}</span>
            <span class="faint">
              {moment(created_at)}, {bytes(size)}, of {program_version}
              {!keys && ', without the keys'}
            </span>
          </li>
        )}
      </Rows>
    </Section>
  )
}
