import { fileURLToPath } from 'node:url'
import { prepared } from '../support/prepared.ts'

/** The directory of the programs of a Python environment with these packages, made at the first use. */
export function pythonEnvironment(name: string, packages: readonly string[]): string {
  const directory = fileURLToPath(new URL(`../../node_modules/.cache/${name}`, import.meta.url))
  prepared(directory, `python3 -m venv . && bin/pip install --quiet --disable-pip-version-check ${packages.join(' ')}`)
  return `${directory}/bin`
}
