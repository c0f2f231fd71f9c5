import { fileURLToPath } from 'node:url'
import type { Appliance } from './appliance.ts'
import { run } from './program.ts'

const program = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** What a command said, and how it ended. */
export interface Said {
  status: number | null
  output: string
  errors: string
}

/** Runs a command of ours on the box, with this on its standard input. */
export async function pillarbox(box: Pick<Appliance, 'env' | 'directory'>, words: string[], input = ''): Promise<Said> {
  const { code, output, errors } = await run(process.execPath, [program, ...words], { env: box.env, cwd: box.directory, input })
  return { status: code, output: output.toString(), errors }
}

/** The same with `--json`: what it answered. Throws with what it said when it failed. */
export async function asked<Answer = Record<string, never>>(
  box: Pick<Appliance, 'env' | 'directory'>,
  ...words: string[]
): Promise<Answer> {
  const { status, output, errors } = await pillarbox(box, [...words, '--json'])
  if (status !== 0) throw new Error(`${words.join(' ')} ended with ${status}: ${errors}`)
  return JSON.parse(output) as Answer
}
