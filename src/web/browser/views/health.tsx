import type { JSX } from 'preact'
import type { Status } from '../../../ops/status/model.ts'
import { BackupList } from '../health/backup-list.tsx'
import { DoctorLines } from '../health/doctor-lines.tsx'
import { MetricsCharts } from '../health/metrics.tsx'
import { QueueList } from '../health/queue-list.tsx'
import { StatusSheet } from '../health/status-sheet.tsx'
import { type Loaded, useResource } from '../loaded.ts'

/** The health of the box, for its operator. */
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
  return value || error ? <Everything status={status} /> : <p class="waiting">Loading…</p>
}

function Everything({ status }: { status: Loaded<Status> }): JSX.Element {
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
