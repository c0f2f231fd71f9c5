import { performance } from 'node:perf_hooks'
import { BucketFailure, remedies } from '../../../objects/bucket-failure.ts'
import { type Database, sql } from '../../../store/database.ts'
import { about, newCheck, sharedCheck, type Check, reasonOf } from '../check.ts'
import type { BoxContext, DoctorSettings } from '../context.ts'
import type { Line } from '../model.ts'
import { proof, restoring, writing } from '../remedies.ts'

interface Deps {
  database: Pick<Database, 'probe' | 'damage'>
  settings: Pick<DoctorSettings, 'data_dir'>
}

/** The timeout for reading the whole database, and again after damage was found, in milliseconds. */
const timeout = 22_000

const copying = `Check that it can be copied completely: ${proof}`

export function storeWrites({ database, settings }: Deps): Check {
  return newCheck('store writes', 'often', async () => {
    const line = about('store', 'writing')
    try {
      await database.probe()
      return [line.pass('It can write.')]
    } catch (error) {
      return [line.fail(`It cannot write: ${reasonOf(error)}`, writing(error, settings.data_dir))]
    }
  })
}

/** Checks that the last rotation of the master key is complete. */
export function storeRewritten({ database }: { database: Pick<Database, 'get'> }): Check {
  return sharedCheck('store rewritten', 'often', async () => {
    const due = await database.get(sql`SELECT 1 FROM box WHERE rewrite_due = 1`)
    if (!due) return []
    const message = 'It may hold bytes that the former master key decrypts: it was not rewritten after the rotation.'
    return [about('store', 'former key').warn(message, 'Free as much space as the database file has, and restart the box.')]
  })
}

/** Checks the integrity of the database, page by page (`PRAGMA quick_check`). */
export function storeWhole(deps: Deps): Check {
  return sharedCheck('store whole', 'seldom', async () => [await whole(deps)])
}

/** Reads twice before reporting damage: restoring a backup loses later data. */
async function whole({ database, settings }: Deps): Promise<Line> {
  const line = about('store', 'integrity')
  const end = performance.now() + timeout
  let first: string | null = null
  try {
    first = await database.damage(timeout)
    if (first === null) return line.pass('Every page is intact.')
    const second = await database.damage(Math.max(1000, end - performance.now()))
    if (second === null) {
      const message = `One check found damage (${first}), and an immediate second one found none: the disk or the memory may be failing.`
      return line.warn(message, copying)
    }
    return line.fail(
      `It is damaged, confirmed by two checks: ${second}`,
      `${copying}\nOnly if that fails: ${restoring(settings.data_dir)}`,
    )
  } catch (error) {
    if (first !== null) return line.warn(`One check found damage (${first}), and a second one was not finished.`, copying)
    const late = error instanceof Error && 'code' in error && error.code === 'too_slow'
    const why = late ? '' : `: ${reasonOf(error)}`
    return line.warn(`It could not be checked completely within ${timeout / 1000} s${why}.`, copying)
  }
}

/** Writes, reads and deletes an object of the store that has large e-mails. */
export function objectStore({ objects }: Pick<BoxContext, 'objects'>): Check {
  return newCheck('objects', 'usual', async () => {
    if (!objects) return []
    const line = about('objects', 'blobs.s3')
    try {
      await objects.check()
      return [line.pass('An object can be written, read and deleted.')]
    } catch (error) {
      return [line.fail(reasonOf(error), remedies[error instanceof BucketFailure ? error.kind : 'other'])]
    }
  })
}
