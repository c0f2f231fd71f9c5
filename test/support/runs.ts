/** How many cases a test of random cases tries: these in a run of all tests, and as many as PILLARBOX_TEST_RUNS says where that is more. */
export function runs(usual: number): number {
  return Math.max(usual, Number(process.env['PILLARBOX_TEST_RUNS'] ?? 0))
}
