import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** A part of a bench in a process of its own: what it costs is not counted as anybody else's, and it answers questions. */
export interface Program {
  pid: number
  /** Throws with what it said when the question went wrong there. */
  ask<Answer>(question: string, given?: unknown): Promise<Answer>
  stop(): void
}

interface Answered {
  id: number
  answer?: unknown
  failure?: string
}

/** Starts a program of `bench/` by its path from there. */
export function startProgram(path: string): Program {
  const program = fileURLToPath(new URL(path, import.meta.url))
  const child = fork(program, { env: { ...process.env, NODE_ENV: 'production' }, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const open = new Map<number, { resolve: (answer: never) => void; reject: (error: Error) => void }>()
  let last = 0
  child.on('message', ({ id, answer, failure }: Answered) => {
    const asked = open.get(id)
    open.delete(id)
    if (failure === undefined) asked?.resolve(answer as never)
    else asked?.reject(new Error(`${path}: ${failure}`))
  })
  child.once('exit', (code) => {
    for (const { reject } of open.values()) reject(new Error(`${path} ended with ${code}`))
  })
  return {
    pid: child.pid!,
    ask: (question, given) =>
      new Promise((resolve, reject) => {
        last += 1
        open.set(last, { resolve, reject })
        child.send({ id: last, question, given })
      }),
    stop: () => void child.kill(),
  }
}

/** In the program itself: answers each question by the function of its name, until the bench is gone. */
export function answerQuestions(answers: Record<string, (given: never) => unknown>): void {
  process.on('message', ({ id, question, given }: { id: number; question: string; given: unknown }) => {
    const answer = async (): Promise<unknown> => answers[question]!(given as never)
    answer().then(
      (said) => process.send!({ id, answer: said }),
      (error: unknown) => process.send!({ id, failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    )
  })
  process.once('disconnect', () => process.exit())
}

/** Milliseconds on a clock that all processes of the machine share. */
export function monotonic(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
