import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { ambient } from './ambient.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A box as its own process, the way an operator runs it. */
export interface BoxProcess {
  child: ChildProcess
  /** All of standard output so far. */
  output: () => string
  /** Its whole lines so far, which are forgotten: a box that runs for hours writes more than a string can hold. */
  takeLines(): string
  errors: () => string
  /** Waits until a log line with this message is there; answers it. Throws when the process ends before. */
  said(message: string, times?: number): Promise<Record<string, Said>>
  /** Signals, and waits for the end; answers the exit code, or the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<number | string>
  ended: Promise<number | string>
}

type Said = ReturnType<typeof JSON.parse>

export const testBox: Record<string, string> = {
  PILLARBOX_HTTP__LISTEN: '127.0.0.1:0',
  PILLARBOX_SMTP__LISTEN: '127.0.0.1:0',
  PILLARBOX_SMTP__GREETING_DELAY: '0 ms',
  PILLARBOX_HTTP__RATE_LIMIT: '0',
  PILLARBOX_MIN_FREE: '0',
}

/** Runs `src/main.ts`, or another program, with only these settings (and PATH) in its environment; killed when the test ends. */
export function boxProcess(...call: Parameters<typeof startProcess>): BoxProcess {
  const box = startProcess(...call)
  onTestFinished(() => void box.child.kill('SIGKILL'))
  return box
}

/** The same for all tests of a file, which must end it. */
export function startProcess(env: Record<string, string>, args: string[] = ['serve'], cwd = root, program?: string): BoxProcess {
  const words = program === undefined ? [`${root}/src/main.ts`, ...args] : args
  const child = spawn(program ?? process.execPath, words, {
    cwd,
    env: { ...ambient, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string)
  let running = true
  void ended.then(() => (running = false))
  const lines = (message: string): Record<string, Said>[] =>
    output
      .split('\n')
      .filter((line) => line.startsWith('{') && line.includes(`"msg":${JSON.stringify(message)}`))
      .map((line) => JSON.parse(line) as Record<string, Said>)
  return {
    child,
    output: () => output,
    takeLines() {
      const end = output.lastIndexOf('\n') + 1
      const taken = output.slice(0, end)
      output = output.slice(end)
      return taken
    },
    errors: () => errors,
    ended,
    async said(message, times = 1) {
      for (;;) {
        const found = lines(message)[times - 1]
        if (found) return found
        if (!running) throw new Error(`The box ended before it said “${message}”:\n${output}\n${errors}`)
        await Promise.race([once(child.stdout, 'data'), ended])
      }
    },
    async end(signal) {
      child.kill(signal)
      return ended
    },
  }
}
