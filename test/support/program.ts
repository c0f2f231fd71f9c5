import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { ambient } from './ambient.ts'

/** How a program ended, and what it wrote; `code` is null when a signal ended it. */
export interface Finished {
  code: number | null
  output: Buffer
  errors: string
}

/** Runs a program to its end with this input; killed when it has not ended after nine minutes. Throws when it cannot be started. */
export async function run(
  program: string,
  parameters: string[],
  options: { input?: string | Buffer; cwd?: string; env?: Record<string, string> } = {},
): Promise<Finished> {
  const child = spawn(program, parameters, {
    stdio: 'pipe',
    timeout: 540_000,
    killSignal: 'SIGKILL',
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: { ...ambient, PATH: `${ambient['PATH']}:/usr/sbin:/sbin`, LC_ALL: 'C.UTF-8', ...options.env },
  })
  const output: Buffer[] = []
  let errors = ''
  child.stdout.on('data', (chunk: Buffer) => void output.push(chunk))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  // a program that does not read all of its input closes it
  child.stdin.on('error', () => undefined)
  child.stdin.end(options.input ?? '')
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output: Buffer.concat(output), errors }
}

/** As `run`, for a program that must succeed: answers its standard output, throws with what it said otherwise. */
export async function succeed(...call: Parameters<typeof run>): Promise<Buffer> {
  const { code, output, errors } = await run(...call)
  if (code !== 0) throw new Error(`${call[0]} ended with ${code}:\n${errors}\n${output.toString()}`)
  return output
}
