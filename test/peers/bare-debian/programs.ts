import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** What makes a system or installs into it takes minutes on a busy machine. */
export const limit = 1_200_000

/** How a program ended, and both of its outputs together. */
export interface Ended {
  code: number | null
  text: string
}

export async function long(command: string, parameters: string[], env?: Record<string, string>): Promise<Ended> {
  const child = spawn(command, parameters, {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: limit,
    killSignal: 'SIGKILL',
    ...(env === undefined ? {} : { env }),
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, text }
}

/** As `long`, for what must succeed: answers its output, throws with the end of it otherwise. */
export async function must(command: string, parameters: string[], env?: Record<string, string>): Promise<string> {
  const { code, text } = await long(command, parameters, env)
  if (code !== 0) throw new Error(`${command} ended with ${code}:\n${text.slice(-4000)}`)
  return text
}
