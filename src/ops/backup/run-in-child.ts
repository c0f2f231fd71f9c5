import { fork } from 'node:child_process'
import { rmSync, statSync } from 'node:fs'
import { attempt, Fault } from '../../core/fault.ts'
import { removeDatabase } from '../../store/files.ts'
import { refused } from './faults.ts'
import { type BackupInput, draftsOf, type MadeBackup } from './make.ts'

export interface ChildMessage {
  progress?: { done: number; total: number }
  made?: MadeBackup
  failed?: { message: string; code?: string | undefined }
}

export interface BackupOptions {
  signal?: AbortSignal
  /** The bytes done and in total, of the copy and then of the archive; at most once a second. */
  progress?: (done: number, total: number | null) => void
}

/**
 * Makes a backup in a low-priority child process: SQLite copies in one step, which must not block the event loop or a cancellation. When
 * the signal aborts, the process is killed and its files are removed. Throws Fault.
 */
export async function backUpInChild(
  input: BackupInput,
  { signal, progress = () => {} }: BackupOptions = {},
): Promise<MadeBackup> {
  signal?.throwIfAborted()
  const maker = fork(new URL('./maker.ts', import.meta.url), [], { execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  const [draft, copy] = draftsOf(input.file)
  let end: ChildMessage = {}
  let errors = ''
  let reading = true
  maker.stderr!.setEncoding('utf8').on('data', (text: string) => (errors = `${errors}${text}`.slice(-2000)))
  const watch = setInterval(() => reading && progress(sizeOf(copy), null), 1000)
  const kill = (): void => void maker.kill('SIGKILL')
  signal?.addEventListener('abort', kill)
  let spoken = 0
  maker.on('message', (told: ChildMessage) => {
    if (!told.progress) end = told
    else if (Date.now() - spoken >= 1000) {
      reading = false
      spoken = Date.now()
      progress(told.progress.done, told.progress.total)
    }
  })
  try {
    const ended = new Promise<void>((resolve, reject) => maker.once('close', () => resolve()).once('error', reject))
    maker.send(input, (error) => error && maker.kill('SIGKILL'))
    await ended
  } finally {
    clearInterval(watch)
    signal?.removeEventListener('abort', kill)
  }
  // what the process could not remove
  attempt(() => removeDatabase(copy))
  if (end.made) return end.made
  attempt(() => rmSync(draft, { force: true }))
  signal?.throwIfAborted()
  if (end.failed?.code !== undefined) throw refused(end.failed.message, end.failed.code)
  throw new Fault('internal_error', 'The backup was interrupted: its process exited. Partial files were removed; try again.', {
    code: 'backup_failed',
    cause: new Error(end.failed?.message ?? errors),
  })
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}
