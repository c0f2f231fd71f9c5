/** Exit status for what the configuration or the data directory forbids (EX_CONFIG of sysexits). */
const badConfig = 78

/** Says in sentences why a command cannot go on, and ends the process. */
export function refuse(error: unknown, status = badConfig): never {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(status)
}
