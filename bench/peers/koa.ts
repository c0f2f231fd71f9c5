import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The bare libraries: Koa, its router and one statement. */
export interface BareKoa {
  url: string
  pid: number
  stop(): void
}

/** Starts it over answers by path; `created` is what it says to POST. */
export async function startBareKoa(
  directory: string,
  answers: Record<string, string>,
  env: Record<string, string> = {},
): Promise<BareKoa> {
  const file = join(directory, 'answers.json')
  writeFileSync(file, JSON.stringify(answers))
  const program = fileURLToPath(new URL('bare-koa.ts', import.meta.url))
  const child = spawn(process.execPath, [program, join(mkdtempSync(join(directory, 'bare-')), 'bare.db'), file], {
    // as an operator runs it
    env: { ...process.env, NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [port] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
  return { url: `http://127.0.0.1:${port.trim()}`, pid: child.pid!, stop: () => void child.kill() }
}
