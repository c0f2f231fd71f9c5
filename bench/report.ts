import type { Finding } from './finding.ts'

/** What one bench found, and under what load of the machine. */
export interface Result {
  bench: string
  findings: Finding[]
  /** Load averages of one minute; the second includes the bench's own. */
  load: { before: number; after: number }
  rounds: number
  at: string
}

/** Prints a result to standard output. */
export function record({ findings }: Result): void {
  for (const { goal, what, against, wanted, reached, met, by, figures } of findings) {
    process.stdout.write(
      `${goal}: ${what}, against ${against}: ${reached}, wanted ${wanted}: ${met ? 'met' : 'NOT met'}, ${by}\n`,
    )
    for (const line of figures) process.stdout.write(`    ${line}\n`)
  }
}

export function writeReport(_results: Result[]): void {}
