import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BrokenBuild } from './trial.ts'

/** The checkout that the trials stand in. */
export const checkout = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')

/** The source file of a broken build. Throws unless what is to be replaced is there, once. */
export function textOf({ file, find, replace }: BrokenBuild): string {
  const text = readFileSync(join(checkout, file), 'utf8')
  const places = text.split(find).length - 1
  if (places !== 1) throw new Error(`${file} has what a broken build replaces ${places} times: ${find}`)
  return text.replace(find, () => replace)
}

/** Copies the program with one replacement in it; answers where it is. */
export function makeBuild(build: BrokenBuild, directory: string): string {
  const text = textOf(build)
  mkdirSync(directory)
  for (const name of ['bin', 'src', 'config', 'docs', 'package.json'])
    cpSync(join(checkout, name), join(directory, name), { recursive: true })
  for (const name of ['node_modules', 'dist']) symlinkSync(join(checkout, name), join(directory, name))
  writeFileSync(join(directory, build.file), text)
  return directory
}
