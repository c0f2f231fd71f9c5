import { conflict, type Fault } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import { join, type Run, sql, type Sql, type Transaction } from '../store/database.ts'
import type { JobRow } from './job-rows.ts'

const interrupted = 'The job was interrupted by a restart of the box. Start it again.'

/** Marks jobs as interrupted whose run has ended, and those of this run that are not in `here`: it was not told that it had stored them. */
export async function failInterrupted(tx: Transaction, run: Run, here: readonly string[], now: string): Promise<void> {
  const others = here.length === 0 ? sql`` : sql` AND id NOT IN (${join(here)})`
  await tx.run(
    sql`UPDATE jobs SET status = 'failed', error = ${interrupted}, error_code = 'restarted', finished_at = ${now}
      WHERE status = 'running' AND (run_id = ${run.id} OR ${run.ended(sql`run_id`)})${others}`,
  )
}

/** Cancels those of the jobs that run on other boxes, which stop when they next store their progress. */
export async function cancelElsewhere(tx: Transaction, run: Run, which: Sql, now: string): Promise<void> {
  if (!run.shared) return
  await tx.run(sql`UPDATE jobs SET status = 'cancelled', finished_at = ${now} WHERE ${which} AND ${elsewhere(run)}`)
}

/** A job of this kind that runs on another box: in the account, or in any. */
export async function findElsewhere(
  tx: Transaction,
  run: Run,
  { kind, account_id }: Pick<JobRow, 'kind' | 'account_id'>,
  each: 'box' | 'account',
): Promise<Pick<JobRow, 'id' | 'account_id'> | undefined> {
  if (!run.shared) return undefined
  const own = each === 'box' ? sql`` : sql` AND account_id = ${account_id}`
  return tx.get(sql`SELECT id, account_id FROM jobs WHERE ${elsewhere(run)} AND kind = ${kind}${own}`)
}

/** 409: one job of a kind runs at a time. */
export function alreadyRunning(caller: Caller, kind: string, { id, account_id }: Pick<JobRow, 'id' | 'account_id'>): Fault {
  const which = account_id === caller.account_id ? ` (${id})` : ''
  return conflict(`Another ${kind} is running${which}; wait until it ends, or cancel it.`, { code: 'job_running' })
}

function elsewhere(run: Run): Sql {
  return sql`status = 'running' AND run_id <> ${run.id} AND NOT ${run.ended(sql`run_id`)}`
}
