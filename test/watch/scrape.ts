/** One metric, as /metrics tells of it. */
export interface Family {
  name: string
  type: string
  help: string
  /** Those that its samples have. */
  labels: string[]
}

/** Reads the text form of Prometheus: what it declares, with the labels of its samples. */
export function familiesIn(text: string): Map<string, Family> {
  const families = new Map<string, Family>()
  for (const [, name, help] of text.matchAll(/^# HELP (\S+) (.*)$/gm)) {
    families.set(name!, { name: name!, help: help!, type: '', labels: [] })
  }
  for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) families.get(name!)!.type = type!
  for (const [, sample, inside] of text.matchAll(/^([a-z]\w*)\{(.*)\} \S+$/gm)) {
    const family = families.get(sample!) ?? families.get(sample!.replace(/_(?:bucket|sum|count)$/, ''))!
    const labels = [...inside!.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)].map(([, label]) => label!).filter((label) => label !== 'le')
    family.labels = [...new Set([...family.labels, ...labels])]
  }
  return families
}

/** What a sample with these labels says; undefined when there is none. */
export function sampleOf(text: string, name: string, labels: Record<string, string> = {}): number | undefined {
  for (const [, inside = '', value] of text.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'))) {
    if (Object.entries(labels).every(([label, asked]) => inside.includes(`${label}="${asked}"`))) return Number(value)
  }
  return undefined
}
