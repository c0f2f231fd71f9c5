/** Runs calls, so many at once; answers their results in order. */
export async function atOnce<Result>(clients: number, calls: (() => Promise<Result>)[]): Promise<Result[]> {
  const results: Result[] = []
  const next = calls.entries()
  const client = async (): Promise<void> => {
    for (const [index, call] of next) results[index] = await call()
  }
  await Promise.all(Array.from({ length: clients }, client))
  return results
}
