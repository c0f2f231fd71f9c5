import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { controlSocket } from '../config.ts'
import type { Config } from '../config.ts'
import { ofBox, settingsOf } from './box.ts'
import type { BoxOptions } from './box.ts'
import { Failure } from './failure.ts'
import { exits, refuse } from './refuse.ts'
import { say, withJson } from './say.ts'

type Options = BoxOptions & { json?: boolean; wait: string }

/** Between two looks, in milliseconds. */
const rhythm = 250

/** `pillarbox ready`: for a service manager, a container's health check, a script that waits. It asks the box's own socket, and opens nothing. */
export function addReadyCommand(program: Command): void {
  const ready = program.command('ready').description('whether the box runs and takes mail and calls; exit 0 when it does')
  withJson(ofBox(ready))
    .option('--wait <seconds>', 'for how long to look again while it does not', '0')
    .action(async (options: Options) => {
      const socket = controlSocket(await place(options))
      if (socket === undefined) throw new Failure('The path of data_dir is too long for a socket in it: use a shorter one.')
      const until = performance.now() + seconds(options.wait) * 1000
      let lacking = await lacks(socket)
      while (lacking !== undefined && performance.now() < until) {
        const ended = endOf(process.env['MAINPID'])
        if (ended !== undefined) throw new Failure(ended, 'ended')
        await pause(rhythm)
        lacking = await lacks(socket)
      }
      if (lacking !== undefined) throw new Failure(lacking, 'not_ready')
      say(options, { ready: true }, 'The box is ready.')
    })
}

/** systemd names the process of the service (systemd.exec(5)); what has ended will not become ready, and the start need not wait for it. */
function endOf(processId: string | undefined): string | undefined {
  if (processId === undefined || !/^[1-9]\d*$/.test(processId)) return undefined
  try {
    process.kill(Number(processId), 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') return undefined
    return `The box has ended (process ${processId}); its log says why: journalctl -u pillarbox`
  }
  return undefined
}

/** The settings are read only where nothing else says where the data is: systemd shows the secrets among them to the box alone. */
async function place(options: Options): Promise<Pick<Config, 'data_dir'>> {
  const data = options.data ?? process.env['PILLARBOX_DATA_DIR']
  return data ? { data_dir: data } : settingsOf(options)
}

/** What keeps the box from its work, as a sentence; undefined when nothing does. */
function lacks(socketPath: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const call = request(
      { socketPath, path: '/readyz', headers: { Host: 'localhost' }, agent: false, timeout: 5000 },
      (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (piece: string) => (text += piece))
        answer.on('error', () => resolve('The box broke off its answer.'))
        answer.on('end', () =>
          resolve(answer.statusCode === 200 ? undefined : `The box runs but is not ready: ${failing(text)}.`),
        )
      },
    )
    call.on('timeout', () => call.destroy(new Error('no answer')))
    call.on('error', (error: NodeJS.ErrnoException) => resolve(absence(error, socketPath)))
    call.end()
  })
}

function absence({ code, message }: NodeJS.ErrnoException, socket: string): string {
  if (code === 'ENOENT' || code === 'ECONNREFUSED') return `No box runs that answers at ${socket}.`
  if (code === 'EACCES') return `${socket} belongs to another user: ask as root, or as the user the box runs as.`
  return `The box does not answer at ${socket}: ${message}.`
}

function failing(text: string): string {
  try {
    return (JSON.parse(text) as { failing: string[] }).failing.join(', ')
  } catch {
    return 'its answer cannot be read'
  }
}

function seconds(text: string): number {
  const number = text.trim() === '' ? Number.NaN : Number(text)
  if (number >= 0 && number <= 86_400) return number
  return refuse(new Failure('--wait must be a number of seconds.', 'invalid_request', 'wait'), exits.usage)
}
