import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Job } from '../../../jobs/model.ts'
import { ApiError, get, post } from '../api.ts'
import { Action } from './action.tsx'
import { Bar } from './bar.tsx'
import { bytes } from './format.tsx'
import { Trouble } from './listing.tsx'

const pace = 700

/** The progress of a job until its end, when `onEnd` gets its result. */
export function JobProgress({ id, label, onEnd }: { id: string; label: string; onEnd?: (job: Job) => void }): JSX.Element {
  const [job, setJob] = useState<Job>()
  const [error, setError] = useState<ApiError>()
  useEffect(() => {
    let over = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = async (): Promise<void> => {
      try {
        const now = await get<Job>(`/v1/jobs/${id}`)
        if (over) return
        setJob(now)
        setError(undefined)
        if (now.status !== 'running') return onEnd?.(now)
      } catch (thrown) {
        if (!(thrown instanceof ApiError)) throw thrown
        setError(thrown)
        if (thrown.status === 404) return
      }
      if (!over) timer = setTimeout(() => void look(), pace)
    }
    void look()
    return () => {
      over = true
      clearTimeout(timer)
    }
  }, [id])
  if (!job) return error ? <Trouble error={error} /> : <p class="waiting">Starting…</p>
  return (
    <div class="job">
      <Bar label={label} {...partOf(job)} text={wordsOf(job)} progress />
      {job.error && <p class="refusal">{job.error.message}</p>}
      {job.status === 'running' && <Action run={() => post(`/v1/jobs/${id}/cancel`)}>Cancel</Action>}
    </div>
  )
}

/** A finished job is complete, also without a known total. */
function partOf({ status, progress: { done, total } }: Job): { value: number; max: number } {
  return status === 'done' ? { value: 1, max: 1 } : { value: done, max: total ?? 0 }
}

function wordsOf({ status, progress: { done, total, unit } }: Job): string {
  if (status !== 'running') return status
  const amount = (count: number): string => (unit === 'octets' ? bytes(count) : `${count.toLocaleString('en')} ${unit}`)
  return total === null ? amount(done) : `${amount(done)} of ${amount(total)}`
}
