import type { RunningBox } from './world.ts'

/** Answers, each time, what has gone wrong with a box since the last: errors that it logged, and its end. */
export function faultsOfLog(): (box: RunningBox) => string[] {
  let read = 0
  return ({ process }) => {
    const fresh = process.output().slice(read)
    read += fresh.length
    const errors = fresh.split('\n').filter((line) => /"level":"(?:error|fatal)"/.test(line))
    return [
      ...(process.child.exitCode === null ? [] : [`the box ended with ${process.child.exitCode}`]),
      ...errors.map((line) => `the box logged an error: ${line.slice(0, 300)}`),
    ]
  }
}
