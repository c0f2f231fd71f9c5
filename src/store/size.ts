import { stat } from 'node:fs/promises'
import { join } from 'node:path'

/** Octets of the database in a data directory, with its log. */
export async function databaseSize(directory: string): Promise<number> {
  const file = join(directory, 'pillarbox.db')
  const sizes = await Promise.all(
    [file, `${file}-wal`].map((path) =>
      stat(path).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}
