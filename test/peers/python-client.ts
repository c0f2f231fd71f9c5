import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { pythonEnvironment } from './python-environment.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const wanted = ['httpx==0.28.1', 'cryptography==50.0.2', 'mypy==2.4.1', 'mcp==2.3.0']

export const sources = `${root}clients/python/src/pillarbox`

/** The program of an environment with what the Python programs here need, made at the first use. */
export function pythonProgram(name: string): string {
  return `${pythonEnvironment('python-client', wanted)}/${name}`
}

export interface Job {
  url?: string
  key?: string
  method: string
  args: unknown[]
  options?: Record<string, unknown>
  asyncio?: boolean
  iterate?: boolean
  card_key?: string
}

type Json = ReturnType<typeof JSON.parse>

/** A Python program that makes calls, one after the other. */
export class PythonClient {
  readonly #program: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<string>
  #trouble = ''

  constructor() {
    const env = { PYTHONPATH: `${root}clients/python/src`, PATH: process.env['PATH'] }
    this.#program = spawn(pythonProgram('python'), [fileURLToPath(new URL('client-python.py', import.meta.url))], { env })
    this.#program.stderr.on('data', (bytes) => (this.#trouble += String(bytes)))
    this.#lines = createInterface(this.#program.stdout)[Symbol.asyncIterator]()
  }

  async call(job: Job): Promise<{ answer?: Json; error?: Json; ready?: true }> {
    this.#program.stdin.write(`${JSON.stringify(job)}\n`)
    return this.next()
  }

  async next(): Promise<{ answer?: Json; error?: Json; ready?: true }> {
    const { value, done } = await this.#lines.next()
    if (done === true) throw new Error(this.#trouble)
    return JSON.parse(value)
  }

  close(): void {
    this.#program.kill()
  }
}
