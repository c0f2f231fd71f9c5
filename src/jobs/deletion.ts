import { dropOrigins } from '../accounts/key-ancestry.ts'
import type { Log } from '../core/log.ts'
import { sql, type Sql, type Transaction } from '../store/database.ts'
import type { JobRow } from './job-rows.ts'

/** The most jobs deleted in one transaction. */
export const batch = 1000

/** The most jobs that are kept of one account: the oldest finished ones are deleted first. */
const maxKept = 1000

/** A deleted job. */
export type Gone = Pick<JobRow, 'id' | 'kind'>

/** Removes the file of a job. */
export type RemoveFile = (id: string) => Promise<void>

/** Deletes a batch of the jobs that the condition selects. */
export async function deleteSome(tx: Transaction, which: Sql): Promise<Gone[]> {
  const gone = await tx.all<Gone>(
    sql`DELETE FROM jobs WHERE seq IN (SELECT seq FROM jobs WHERE ${which} LIMIT ${batch}) RETURNING id, kind`,
  )
  const ids = gone.map(({ id }) => id)
  await dropOrigins(tx, ids)
  return gone
}

/** Deletes a batch of the finished jobs of an account that are more than it keeps. */
export function deleteSurplus(tx: Transaction, accountId: string): Promise<Gone[]> {
  const surplus = sql`SELECT seq FROM jobs WHERE account_id = ${accountId} ORDER BY seq DESC LIMIT ${batch} OFFSET ${maxKept}`
  return deleteSome(tx, sql`seq IN (${surplus}) AND status <> 'running'`)
}

/** The files of jobs, by kind: most kinds have none. */
export class JobFiles {
  readonly #log: Log
  readonly #remove = new Map<string, RemoveFile>()

  constructor(log: Log) {
    this.#log = log
  }

  add(kind: string, remove: RemoveFile): void {
    this.#remove.set(kind, remove)
  }

  get kinds(): string[] {
    return [...this.#remove.keys()]
  }

  /** Removes the files of these jobs, one by one, each once `ended` has resolved for it. */
  async remove(jobs: readonly Gone[], ended: (id: string) => Promise<void> | undefined): Promise<void> {
    for (const { id, kind } of jobs) {
      const remove = this.#remove.get(kind)
      if (!remove) continue
      await ended(id)
      await remove(id).catch((error: unknown) => this.#log.warn({ job: id, err: error }, 'file of a job could not be removed'))
    }
  }
}
