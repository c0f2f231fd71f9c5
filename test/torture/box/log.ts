import type { RunningBox } from './world.ts'

/** What has gone wrong with a box since the last call: errors that it logged, and its end. */
export function faultsOfLog({ process }: RunningBox): string[] {
  const errors = process
    .takeLines()
    .split('\n')
    .filter((line) => /"level":"(?:error|fatal)"/.test(line))
  return [
    ...(process.child.exitCode === null ? [] : [`the box ended with ${process.child.exitCode}`]),
    ...errors.map((line) => `the box logged an error: ${line.slice(0, 300)}`),
  ]
}
