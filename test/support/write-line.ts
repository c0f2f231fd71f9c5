/**
 * Writes a line to standard output of a process that may be killed at any moment; resolves when the kernel has it. A synchronous write to
 * descriptor 1 would not do: the first worker thread that a process starts makes Node open its standard output as a stream, which sets the
 * descriptor non-blocking, and from then on `writeSync` throws EAGAIN whenever the reader is a moment behind.
 */
export async function writeLine(line: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    process.stdout.write(`${line}\n`, (error) => (error ? reject(error) : resolve()))
  })
}
