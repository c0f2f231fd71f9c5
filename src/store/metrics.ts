import { stat } from 'node:fs/promises'
import type { Metrics } from '../core/metrics.ts'
import type { Space } from './space.ts'

/** Receives the duration of commits. */
export interface CommitWatch {
  /** A group of transactions is on disk: seconds since its BEGIN, seconds of the sync, and the number of transactions. */
  committed(seconds: number, disk: number, transactions: number): void
}

/** Buckets in seconds, from a fast disk to one that hangs. */
const times = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]

export function commitMetrics(metrics: Metrics): CommitWatch {
  const commits = metrics.histogram(
    'pillarbox_store_commit_seconds',
    'Seconds from the start of a group of transactions until it is on disk (fsync)',
    [],
    times,
  )
  const flushes = metrics.histogram('pillarbox_store_flush_seconds', 'The part of this time that the disk took', [], times)
  const transactions = metrics.counter(
    'pillarbox_store_transactions_total',
    'Transactions that wrote something, or were committed in a group with one',
  )
  return {
    committed(seconds, disk, count) {
      commits.observe(seconds)
      flushes.observe(disk)
      transactions.inc(count)
    },
  }
}

export function fileMetrics(metrics: Metrics, file: string): void {
  metrics.gauge('pillarbox_store_database_bytes', databaseBytes, async (gauge) => gauge.set(await sizeOf(file)))
  metrics.gauge(
    'pillarbox_store_log_bytes',
    'Size of the write-ahead log in bytes; checkpoints reuse the file, so it does not shrink',
    async (gauge) => gauge.set(await sizeOf(`${file}-wal`)),
  )
}

export function serverMetrics(metrics: Metrics, size: () => Promise<number>): void {
  metrics.gauge('pillarbox_store_database_bytes', databaseBytes, async (gauge) => gauge.set(await size()))
}

const databaseBytes = 'Size of the database file in bytes'

export function spaceMetrics(metrics: Metrics, space: Space): void {
  metrics.gauge('pillarbox_disk_free_bytes', 'Free bytes on the disk of the data directory', async (gauge) => {
    const free = await space.free()
    if (free === null) throw new Error('The free space of the disk could not be read.')
    gauge.set(free)
  })
  metrics.gauge('pillarbox_disk_reserve_bytes', 'Free bytes (min_free) below which the box rejects new data', (gauge) =>
    gauge.set(space.minimum),
  )
}

async function sizeOf(file: string): Promise<number> {
  return (await stat(file)).size
}
