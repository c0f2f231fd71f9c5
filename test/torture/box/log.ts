import type { BoxProcess } from '../../support/process.ts'
import type { RunningBox } from './world.ts'

/** What has gone wrong with a box since the last call: errors that it logged, and its end. Called before it is ended. */
export function faultsOfLog({ process }: RunningBox): string[] {
  const { exitCode, signalCode } = process.child
  const end = exitCode ?? signalCode
  return [...(end === null ? [] : [`the box ended with ${end}`]), ...loggedErrors(process)]
}

/** The errors that a process logged since the last call. */
export function loggedErrors(process: BoxProcess): string[] {
  return process
    .takeLines()
    .split('\n')
    .filter((line) => /"level":"(?:error|fatal)"/.test(line))
    .map((line) => `the box logged an error: ${line.slice(0, 300)}`)
}
