import type { AuditRecorder } from './core/audit.ts'
import type { Clock } from './core/clock.ts'
import type { Log } from './core/log.ts'
import type { Metrics } from './core/metrics.ts'
import type { Seal } from './core/seal/seal.ts'
import type { EventTypes } from './events/catalogue.ts'
import type { EventLog } from './events/log.ts'
import type { Database } from './store/database.ts'
import type { Cursors } from './store/page.ts'
import type { Space } from './store/space.ts'

/** What every module can be given: the parts of the box that depend on no module. */
export interface Basis {
  log: Log
  clock: Clock
  seal: Seal
  database: Database
  space: Space
  metrics: Metrics
  events: EventLog
  /** The audit log. */
  audit: AuditRecorder
  /** The cursors of lists. */
  cursors: Cursors
  types: EventTypes
  /** The account of the operator. */
  account: string
  /** The URL of the API, without a slash at the end. */
  publicUrl: () => string
  version: string
}
