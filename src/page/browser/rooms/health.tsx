import type { JSX } from 'preact'
import { BackupList } from '../health/backup-list.tsx'
import { DoctorLines } from '../health/doctor-lines.tsx'
import { FigureCharts } from '../health/figures.tsx'
import { QueueList } from '../health/queue-list.tsx'
import { StatusSheet } from '../health/status-sheet.tsx'

/** How the box is: for its operator. */
export function Room(): JSX.Element {
  return (
    <>
      <div class="head">
        <h1>Health</h1>
      </div>
      <StatusSheet />
      <FigureCharts />
      <DoctorLines />
      <QueueList />
      <BackupList />
    </>
  )
}
