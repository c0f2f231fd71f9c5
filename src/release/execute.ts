import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Runs a program and returns its standard output. Throws an Error with its standard error when it fails or cannot be started. */
export async function execute(
  program: string,
  parameters: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, parameters, { ...options, maxBuffer: 64 * 1024 * 1024 })
    return stdout
  } catch (error) {
    const { code, stdout = '', stderr = '' } = error as { code: number | string; stdout?: string; stderr?: string }
    throw new Error(`${program} ${parameters.join(' ')} failed (${code}):\n${stderr}${stdout}`, { cause: error })
  }
}
