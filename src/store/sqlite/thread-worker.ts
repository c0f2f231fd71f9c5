import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'

type Request = { id: number } & ({ kind: 'checkpoint' } | { kind: 'read'; text: string; values: SQLInputValue[] })

// not read-only: a checkpoint writes the database file
const database = new DatabaseSync(workerData as string, { timeout: 5000 })
database.exec('PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA trusted_schema = OFF; PRAGMA cache_size = -4000')

parentPort!.on('message', (request: Request) => {
  try {
    parentPort!.postMessage({ id: request.id, value: answer(request) }, [])
  } catch (error) {
    // an error loses its own properties on the way between threads
    const { message, errcode } = error as Error & { errcode?: number }
    parentPort!.postMessage({ id: request.id, failure: { message, errcode } }, [])
  }
})

function answer(request: Request): unknown {
  if (request.kind === 'checkpoint') {
    const row = database.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() as { log: number }
    return row.log
  }
  database.exec('PRAGMA query_only = ON')
  return database
    .prepare(request.text)
    .all(...request.values)
    .map((row) => ({ ...row }))
}
