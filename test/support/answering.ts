import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

/** Milliseconds for one answer. */
const patience = 60_000

/** A program that answers each line with a line, in the same order. */
export class Answering<Answer> {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #waiting: { resolve: (answer: Answer) => void; reject: (error: Error) => void }[] = []
  readonly #program: string
  #errors = ''

  constructor(program: string, parameters: string[]) {
    this.#program = program
    this.#process = spawn(program, parameters, { stdio: ['pipe', 'pipe', 'pipe'] })
    this.#process.stderr.on('data', (text: Buffer) => (this.#errors = (this.#errors + text.toString()).slice(-2000)))
    this.#process.on('close', () => {
      for (const { reject } of this.#waiting.splice(0)) reject(new Error(`${program} ended: ${this.#errors}`))
    })
    this.#process.stdin.on('error', () => undefined)
    createInterface(this.#process.stdout).on('line', (line) => this.#waiting.shift()?.resolve(JSON.parse(line) as Answer))
  }

  async ask(question: object): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    const timer = setTimeout(() => reject(new Error(`${this.#program} does not answer`)), patience)
    this.#waiting.push({ resolve, reject })
    this.#process.stdin.write(`${JSON.stringify(question)}\n`)
    return promise.finally(() => clearTimeout(timer))
  }

  close(): void {
    this.#process.kill()
  }
}
