import type { Counter, Histogram, Metrics } from '../core/metrics.ts'
import { type Database, sql } from '../store/database.ts'

export interface ObjectMetrics {
  seconds: Histogram<'operation'>
  failures: Counter<'operation'>
}

/** Metrics of the store of objects. */
export function objectMetrics(metrics: Metrics, database: Database): ObjectMetrics {
  metrics.gauge(
    'pillarbox_unreferenced_objects',
    'Objects of blobs.s3 that are being written, or will be deleted',
    async (gauge) => {
      const row = await database.get<{ count: number }>(sql`SELECT count(*) AS count FROM unreferenced_objects`)
      gauge.set(row!.count)
    },
  )
  return {
    seconds: metrics.histogram(
      'pillarbox_object_seconds',
      'Duration of requests to the store of objects (blobs.s3) in seconds: put, get, delete',
      ['operation'],
    ),
    failures: metrics.counter(
      'pillarbox_object_failures_total',
      'Requests to the store of objects (blobs.s3) that failed after their retries',
      ['operation'],
    ),
  }
}
