import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

/** A program of ours in a process of its own, that can be killed at any moment. */
export interface Child {
  /** Whole lines of standard output up to now. */
  lines(): string[]
  /** Resolves when that many lines were written, or the process ended. */
  until(lines: number): Promise<void>
  /** Ends the process without a chance to clean up; resolves when it is gone and all output is read. */
  kill(): Promise<void>
  /** The exit code, when it ended by itself. */
  ended: Promise<{ code: number | null; errors: string }>
}

/** Runs a script (relative to the directory `test`), optionally under another program. */
export function child(script: string, parameters: string[], under: string[] = []): Child {
  const path = fileURLToPath(new URL(`../${script}`, import.meta.url))
  const [program, ...rest] = [...under, process.execPath, path, ...parameters]
  const running = spawn(program!, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let errors = ''
  let gone = false
  const waiting = new Set<() => void>()
  running.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    for (const look of waiting) look()
  })
  running.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const ended = once(running, 'close').then(([code]) => {
    gone = true
    for (const look of waiting) look()
    return { code: code as number | null, errors }
  })
  onTestFinished(() => void running.kill('SIGKILL'))
  const lines = (): string[] => output.split('\n').slice(0, -1)
  return {
    lines,
    ended,
    until: (count) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!gone && lines().length < count) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    kill: async () => {
      running.kill('SIGKILL')
      await ended
    },
  }
}
