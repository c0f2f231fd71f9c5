/** How often a test kills what it tests: `PILLARBOX_TEST_KILLS` times for a trial at scale, else as often as shows the windows that it is about. */
export function killsOr(usual: number): number {
  return Number(process.env['PILLARBOX_TEST_KILLS'] ?? usual)
}
