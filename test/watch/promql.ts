import type { Family } from './scrape.ts'

const words = new Set(
  'and or unless by without on ignoring group_left group_right bool offset start end inf nan atan2'.split(' '),
)

/** Which metrics an expression of PromQL reads, with the labels it asks of each, and the labels it joins or sums by. */
export function readingsOf(expression: string): { metrics: { name: string; labels: string[] }[]; grouping: string[] } {
  const grouping: string[] = []
  const bare = expression
    .replaceAll(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/g, '""')
    .replaceAll(/\[[^\]]*\]/g, '')
    .replaceAll(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g, (_, labels: string) => {
      grouping.push(...labels.split(',').flatMap((label) => label.trim() || []))
      return ' '
    })
  const metrics = [...bare.matchAll(/(?<![\w.:])([a-zA-Z_:][\w:]*)\s*(\(|\{[^}]*\})?/g)]
    .filter(([, name, after]) => after !== '(' && !words.has(name!))
    .map(([, name, after = '']) => ({
      name: name!,
      labels: [...after.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label!),
    }))
  return { metrics, grouping }
}

/** What an expression asks for that the box does not tell: a sentence for each. `up` and the labels of every target are Prometheus' own. */
export function strangersIn(
  expression: string,
  families: ReadonlyMap<string, Family>,
  declared: ReadonlyMap<string, string[]>,
): string[] {
  const own = ['instance', 'job']
  const { metrics, grouping } = readingsOf(expression)
  if (metrics.length === 0) return [`no metric in ${expression}`]
  const wrong: string[] = []
  const known = new Set([...own, 'le'])
  for (const { name, labels } of metrics) {
    if (name === 'up') continue
    const base = /_(?:bucket|sum|count)$/.test(name) && !families.has(name) ? name.replace(/_\w+?$/, '') : name
    const root = families.has(base) ? base : name.replace(/_(?:bucket|sum|count)$/, '')
    const family = families.get(root)
    if (!family || (root !== name) !== (family.type === 'histogram')) {
      wrong.push(`${name} is not told`)
      continue
    }
    const has = [...own, ...declared.get(root)!, ...(name.endsWith('_bucket') ? ['le'] : [])]
    for (const label of declared.get(root)!) known.add(label)
    wrong.push(...labels.filter((label) => !has.includes(label)).map((label) => `${name} has no label ${label}`))
  }
  return [...wrong, ...grouping.filter((label) => !known.has(label)).map((label) => `nothing has the label ${label}`)]
}
