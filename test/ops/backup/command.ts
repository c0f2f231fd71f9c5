import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Appliance, openAppliance } from '../../support/appliance.ts'
import type { Clock } from '../../../src/core/clock.ts'
import { run } from '../../support/program.ts'
import { onTestFinished } from 'vitest'

const program = new URL('../../../src/main.ts', import.meta.url).pathname

/** What a command said, and its exit status. */
export interface Said {
  status: number | null
  output: string
  errors: string
}

/** Gives a command the way an operator would, beside this box. */
export async function pillarbox(box: Pick<Appliance, 'env' | 'directory'>, ...words: string[]): Promise<Said> {
  const { code, output, errors } = await run(process.execPath, [program, ...words], { env: box.env, cwd: box.directory })
  return { status: code, output: output.toString(), errors }
}

/** A file with a passphrase, as it must be; answers its path. */
export function passphraseFile(directory: string, passphrase = 'correct horse battery'): string {
  const file = join(directory, 'passphrase')
  writeFileSync(file, `${passphrase}\n`, { mode: 0o600 })
  return file
}

/** Starts the box in this data directory, on ports of its own. Stopped when the test ends. */
export async function started(data: string, env: Record<string, string> = {}, clock?: Clock): Promise<Appliance> {
  const { box, close } = await openAppliance({ ...env, PILLARBOX_DATA_DIR: data }, clock)
  onTestFinished(close)
  return box
}
