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

/** Metrics of commits. */
export function commitMetrics(metrics: Metrics): CommitWatch {
  const commits = metrics.histogram(
    'pillarbox_store_commit_seconds',
    'Seconds from the begin of a group of transactions until it is forced to disk',
    [],
    times,
  )
  const flushes = metrics.histogram('pillarbox_store_flush_seconds', 'Of these, the seconds that the disk took', [], times)
  const transactions = metrics.counter(
    'pillarbox_store_transactions_total',
    'Transactions that wrote something, or were in a group with one',
  )
  return {
    committed(seconds, disk, count) {
      commits.observe(seconds)
      flushes.observe(disk)
      transactions.inc(count)
    },
  }
}

/** Metrics of the size of the database and of free disk space. */
export function spaceMetrics(metrics: Metrics, file: string, space: Space): void {
  metrics.gauge('pillarbox_store_database_bytes', 'Octets of the database file', async (gauge) => gauge.set(await sizeOf(file)))
  metrics.gauge(
    'pillarbox_store_log_bytes',
    'Octets of the file of the write-ahead log: checkpoints use it again from its beginning, so it stays as long as it once was',
    async (gauge) => gauge.set(await sizeOf(`${file}-wal`)),
  )
  metrics.gauge('pillarbox_disk_free_bytes', 'Octets that are free on the disk of the data directory', async (gauge) => {
    const free = await space.free()
    if (free === null) throw new Error('The disk does not say how full it is.')
    gauge.set(free)
  })
  metrics.gauge('pillarbox_disk_reserve_bytes', 'Octets free (min_free) below which the box takes nothing new', (gauge) =>
    gauge.set(space.minimum),
  )
}

async function sizeOf(file: string): Promise<number> {
  return (await stat(file)).size
}
