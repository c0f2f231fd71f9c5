import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { InUse } from '../../core/fault.ts'
import { Failure } from './refuse.ts'

/** How long the start of a box waits for a command that has locked its files, and the retry interval; in milliseconds. */
const timeout = 60_000
const retryInterval = 250

/**
 * Opens a box whose files may be locked for a moment: by a command on a stopped box, or by a box that is stopping. A start at that time waits. Throws
 * immediately if a box runs there, and Failure after the timeout.
 */
export async function inTurn<T>(socket: string | undefined, open: () => Promise<T>, waiting: () => void): Promise<T> {
  const until = performance.now() + timeout
  for (let warned = false; ; warned = true) {
    try {
      return await open()
    } catch (error) {
      if (!(error instanceof InUse) || (socket !== undefined && (await runs(socket)))) throw error
      if (performance.now() >= until) throw new Failure(error.message, 'in_use')
    }
    if (!warned) waiting()
    await pause(retryInterval)
  }
}

/** True if a started box, not only one opened for a command, answers there. */
function runs(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const call = request(
      { socketPath, path: '/readyz', headers: { Host: 'localhost' }, agent: false, timeout: 2000 },
      (answer) => {
        text(answer).then(
          (body) => resolve(answer.statusCode === 200 || !body.includes('"http"')),
          () => resolve(false),
        )
      },
    )
    call.on('timeout', () => call.destroy())
    call.on('error', () => resolve(false))
    call.end()
  })
}
