import { type Caller, scopes } from '../core/scopes.ts'
import { picked } from '../core/shapes.ts'
import { join, sql, type Sql } from '../store/database.ts'
import { Job, Progress } from './model.ts'

export type JobRow = Omit<Job, 'progress' | 'result' | 'error'> &
  Progress & {
    seq: number
    account_id: string
    scopes: string
    result: string | null
    error: string | null
    error_code: string | null
    run_id: string | null
  }

/** The columns to update when progress is stored. */
export function columns({ done, total, unit }: Progress): Sql {
  return sql`done = ${done}, total = ${total}, unit = ${unit}`
}

/** The condition of jobs that the caller may see. */
export function visible(caller: Caller): Sql {
  const bound = caller.identity_id === null ? [] : [sql`identity_id = ${caller.identity_id}`]
  const lacking = scopes.filter((scope) => !caller.scopes.has(scope)).map((scope) => sql`instr(scopes, ${` ${scope} `}) = 0`)
  return join([sql`account_id = ${caller.account_id}`, ...bound, ...lacking], ' AND ')
}

/** A job in the API; `progress` is newer than the row's. */
export function toJob(row: JobRow, progress: Progress = row): Job {
  const { result, error, error_code } = row
  return picked(Job, {
    ...row,
    progress: picked(Progress, progress),
    result: result === null ? null : (JSON.parse(result) as Job['result']),
    error: error === null ? null : { message: error, code: error_code },
  })
}
