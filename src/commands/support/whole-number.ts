/** Reads the whole number of an option. Throws what the library takes for a wrong command line. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (number >= least && number <= most) return number
    const bounds = most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`
    throw Object.assign(new Error(`It must be a whole number ${bounds}.`), { code: 'commander.invalidArgument' })
  }
}
