import { setPriority } from 'node:os'
import { Fault } from '../../core/fault.ts'
import { nameProcess } from '../../core/service-unit.ts'
import { type BackupInput, makeBackup } from './make.ts'
import type { ChildMessage } from './run-in-child.ts'

// A program of its own: it makes one backup for its parent process, and ends with it.

nameProcess('pillarbox-backup')
const stop = new AbortController()
process.umask(0o077)
// the box's own work has priority over a backup
yieldToOthers()
process.once('disconnect', () => stop.abort(new Error('The program that asked for the backup has ended.')))
process.once('message', (input) => void make(input as BackupInput))

async function make(input: BackupInput): Promise<void> {
  let end: ChildMessage
  let heard = true
  const onProgress = (done: number, total: number): void => {
    // progress is skipped while the parent does not read
    if (!heard) return
    heard = false
    void send({ progress: { done, total } }).then(() => (heard = true))
  }
  try {
    end = { made: await makeBackup(input, onProgress, stop.signal) }
  } catch (error) {
    const { message, stack } = error as Error
    end = { failed: error instanceof Fault ? { message, code: error.code } : { message: stack ?? message } }
  }
  // disconnecting drops unsent messages
  await send(end)
  if (process.connected) process.disconnect()
}

/** Resolves once it is sent, or cannot be. */
async function send(onProgress: ChildMessage): Promise<void> {
  // the parent may be gone: an error without a listener would end this process before its cleanup
  if (process.connected) await new Promise<void>((resolve) => void process.send!(onProgress, undefined, {}, () => resolve()))
}

/** Lowers the priority; a backup is made also by a process that may not. */
function yieldToOthers(): void {
  try {
    setPriority(10)
  } catch {
    // it runs with normal priority
  }
}
