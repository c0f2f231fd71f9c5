import { BucketFailure, remedies } from '../../../objects/bucket-failure.ts'
import { about, newCheck, type Check, reasonOf } from '../check.ts'
import type { BoxContext } from '../context.ts'

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
