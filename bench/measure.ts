/** What one round of one side gave, by name. */
export type Sample = Record<string, number>

/** One of those compared: a round does the same work each time. */
export interface Side {
  name: string
  /** Round 0 warms up and is not counted. */
  round(number: number): Promise<Sample>
}

export interface Spread {
  median: number
  min: number
  max: number
}

/** Runs every side once to warm up, then all of them in turn (A B A B …), so that the neighbours' noise falls on all alike. */
export async function inTurn(sides: Side[], rounds: number, first = 0): Promise<Map<string, Sample[]>> {
  const samples = new Map<string, Sample[]>(sides.map(({ name }) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const side of sides) {
      const sample = await side.round(first + round)
      if (round > 0) samples.get(side.name)!.push(sample)
      say(round === 0 ? 'warm-up' : `round ${round}`, side, sample)
    }
  }
  return samples
}

/** Runs a side alone so many times, and answers its first round: most of the program is compiled while it runs. */
export async function warmUp(side: Side, rounds: number): Promise<Sample> {
  const samples: Sample[] = []
  for (let round = 0; round < rounds; round++) {
    const sample = await side.round(round)
    samples.push(sample)
    say('cold', side, sample)
  }
  return samples[0]!
}

function say(round: string, { name }: Side, sample: Sample): void {
  const figures = Object.entries(sample).map(([what, value]) => `${what} ${figure(value)}`)
  process.stderr.write(`  ${round} ${name}: ${figures.join(', ')}\n`)
}

/** The spread of one figure over the rounds of one side. */
export function spreadOf(samples: Sample[] | undefined, name: string): Spread {
  return spread((samples ?? []).map((sample) => sample[name]!))
}

export function spread(values: number[]): Spread {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = (sorted.length - 1) / 2
  return {
    median: (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2,
    min: sorted[0]!,
    max: sorted.at(-1)!,
  }
}

/** The value under which this share of all lies. */
export function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}

/** Three digits that matter. */
export function figure(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

/** `median (min–max)`. */
export function shown({ median, min, max }: Spread): string {
  return `${figure(median)} (${figure(min)}–${figure(max)})`
}
