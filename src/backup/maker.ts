import { setPriority } from 'node:os'
import { Fault } from '../core/fault.ts'
import { makeBackup } from './make.ts'
import type { BackupWish } from './make.ts'
import type { Told } from './apart.ts'

// A program of its own: it makes one backup for the process that began it, and ends with it.

const stop = new AbortController()
process.umask(0o077)
// whoever waits for a mail comes before a backup
yieldToOthers()
process.once('disconnect', () => stop.abort(new Error('The program that asked for the backup has ended.')))
process.once('message', (wish) => void make(wish as BackupWish))

async function make(wish: BackupWish): Promise<void> {
  try {
    tell({ made: await makeBackup(wish, (done, total) => tell({ progress: { done, total } }), stop.signal) })
  } catch (error) {
    const { message, stack } = error as Error
    tell({ failed: error instanceof Fault ? { message, code: error.code } : { message: stack ?? message } })
  }
  if (process.connected) process.disconnect()
}

function tell(told: Told): void {
  // the other end may be gone and not known to be yet: an error without a listener would end this process before it tidied up
  if (process.connected) process.send!(told, undefined, {}, () => {})
}

/** Where the process is confined so that it may not, a backup is made all the same. */
function yieldToOthers(): void {
  try {
    setPriority(10)
  } catch {
    // it goes on like every other process
  }
}
