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

/** `3.2 GiB` */
export function sized(octets: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, octets)) / 10)))
  const value = octets / 1024 ** step
  return `${value >= 100 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)} ${units[step]}`
}
