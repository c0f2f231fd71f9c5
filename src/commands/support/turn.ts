import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { InUse } from '../../core/fault.ts'
import { Failure } from './refuse.ts'

/** For how long a command may keep a box from its files before its start is given up, and between two tries; in milliseconds. */
const timeout = 60_000
const rhythm = 250

/**
 * Opens a box whose files another process may have for a moment: a command on a stopped box, or the box itself that is about to stop. Who
 * starts it just then must not find it stopped for good. Throws at once when a box runs there, and Failure when it takes too long.
 */
export async function inTurn<T>(socket: string | undefined, open: () => Promise<T>, waiting: () => void): Promise<T> {
  const until = performance.now() + timeout
  for (let told = false; ; told = true) {
    try {
      return await open()
    } catch (error) {
      if (!(error instanceof InUse) || (socket !== undefined && (await runs(socket)))) throw error
      if (performance.now() >= until) throw new Failure(error.message, 'in_use')
    }
    if (!told) waiting()
    await pause(rhythm)
  }
}

/** Whether a box that was started, and not only opened for a command, answers there. */
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
