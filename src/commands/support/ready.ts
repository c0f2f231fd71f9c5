import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { controlSocket } from '../../config.ts'
import { type BoxOptions, ofBox, placeOf } from './box.ts'
import { Failure } from './refuse.ts'
import { say } from './say.ts'
import { wholeNumber } from './whole-number.ts'

/** The failures of `/readyz` by name, each as a sentence. */
interface NotReady {
  failing: string[]
  message: string
}

const pollInterval = 250

/**
 * `pillarbox ready`: for a service manager, a container's health check, a script that waits. It uses the box's socket, and opens nothing.
 */
export function addReadyCommand(program: Command): void {
  const ready = program
    .command('ready')
    .description(
      'check that the box runs and accepts mail and calls: exit 0 if it does, also while the disk is nearly full and new data is rejected; else 1',
    )
  ofBox(ready)
    .option('--wait <seconds>', 'maximum time to wait until it does', wholeNumber(0, 86_400), 0)
    .action(async (options: BoxOptions & { wait: number }) => {
      const socket = controlSocket(await placeOf(options))
      if (socket === undefined) throw new Failure('The path of data_dir is too long for a socket in it: use a shorter one.')
      const until = performance.now() + options.wait * 1000
      let lacking = await lacks(socket)
      while (lacking !== undefined && !serves(lacking) && performance.now() < until) {
        const ended = endOf(process.env['MAINPID'])
        if (ended !== undefined) throw new Failure(ended, 'ended')
        await pause(pollInterval)
        lacking = await lacks(socket)
      }
      if (lacking === undefined) return say(options, { ready: true, failing: [] }, 'The box is ready.')
      if (!serves(lacking)) throw new Failure(lacking.message, 'not_ready')
      const { failing } = lacking
      say(options, { ready: true, failing }, 'The box is up, but rejects new data: the disk is nearly full.')
    })
}

/** With a full disk the box still reads, deletes and sends, and recovers by itself: a restart would not help. */
function serves({ failing }: NotReady): boolean {
  return failing.length === 1 && failing[0] === 'space'
}

/** systemd sets the process id of the service (systemd.exec(5)); a process that has ended will not become ready. */
function endOf(processId: string | undefined): string | undefined {
  if (processId === undefined || !/^[1-9]\d*$/.test(processId)) return undefined
  try {
    process.kill(Number(processId), 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') return undefined
    return `The box has exited (process ${processId}); see its log: journalctl -u pillarbox`
  }
  return undefined
}

/** Undefined when the box is ready. */
export function lacks(socketPath: string): Promise<NotReady | undefined> {
  return new Promise((resolve) => {
    const call = request(
      { socketPath, path: '/readyz', headers: { Host: 'localhost' }, agent: false, timeout: 5000 },
      (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (piece: string) => (text += piece))
        answer.on('error', () =>
          resolve({ failing: [], message: 'The box closed the connection before its response was complete.' }),
        )
        answer.on('end', () => resolve(answer.statusCode === 200 ? undefined : lackIn(text)))
      },
    )
    call.on('timeout', () => call.destroy(new Error('no answer')))
    call.on('error', (error: NodeJS.ErrnoException) => resolve({ failing: [], message: absence(error, socketPath) }))
    call.end()
  })
}

function absence({ code, message }: NodeJS.ErrnoException, socket: string): string {
  if (code === 'ENOENT' || code === 'ECONNREFUSED') return `No running box answers at ${socket}.`
  if (code === 'EACCES') return `${socket} belongs to another user: run the command as root, or as the user that runs the box.`
  return `The box does not answer at ${socket}: ${message}.`
}

function lackIn(text: string): NotReady {
  try {
    const { failing } = JSON.parse(text) as { failing: string[] }
    return { failing, message: `The box runs but is not ready: ${failing.join(', ')}.` }
  } catch {
    return { failing: [], message: 'The box runs, but its response is invalid.' }
  }
}
