import { existsSync, readdirSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { pages, read, root } from './pages.ts'

test('links between pages lead somewhere, to the heading that they name', () => {
  const links = [...pages].flatMap(([path, page]) =>
    [...page.matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, target]) => [path, target!] as const),
  )
  expect(links.length).toBeGreaterThan(50)
  const broken = links.filter(([path, target]) => {
    const [file = '', heading] = target.split('#')
    const place = file === '' ? path : normalize(join(dirname(path), file))
    return !existsSync(join(root, place)) || (heading !== undefined && !headings(place).has(heading))
  })
  expect(broken).toEqual([])
})

test('pages that pages, the program, its settings and its units name are there', () => {
  const others = ['src', 'config', 'systemd', 'docker', 'bench', '.ci', 'test'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:tsx?|ya?ml|json|example|service|timer)$|(?:Dockerfile|run)$/.test(name))
      .map((name) => [`${folder}/${name}`, read(`${folder}/${name}`)] as const),
  )
  const named = [...pages, ...others].flatMap(([path, text]) =>
    [...text.matchAll(/\bdocs\/(?:[\w-]+\.(?:md|yaml|1)|grafana\.json)\b/g)].map(([name]) => [path, name] as const),
  )
  expect(named.length).toBeGreaterThan(60)
  expect(named.filter(([, name]) => !existsSync(join(root, name)))).toEqual([])
})

test('the index has every page once, and no other', () => {
  const all = [...pages.keys()].filter((path) => path !== 'README.md' && path !== 'docs/README.md' && !isRecord(path))
  expect(listedIn('docs/README.md')).toEqual(all.toSorted())
  expect(pages.get('README.md')).toContain('](docs/README.md)')
})

test('the index of decisions has every record once, under its title', () => {
  const records = [...pages].filter(([path]) => isRecord(path)).toSorted(([one], [other]) => (one < other ? -1 : 1))
  expect(records.length).toBeGreaterThan(20)
  expect(listedIn('docs/decisions/README.md')).toEqual(records.map(([path]) => path))
  expect(records.map(([path]) => Number.parseInt(path.slice('docs/decisions/'.length), 10))).toEqual(
    records.map((_, at) => at + 1),
  )
  const index = pages.get('docs/decisions/README.md')!
  const untitled = records.filter(([path, page]) => {
    const [, number, title] =
      /^# (\d+)\. (.+)\n\nDate: \d{4}-\d\d-\d\d\n\n## Context\n[^]+\n## Decision\n[^]+\n## Consequences\n/.exec(page) ?? []
    return Number(number) !== Number.parseInt(path.slice('docs/decisions/'.length), 10) || !index.includes(`: ${title}.\n`)
  })
  expect(untitled.map(([path]) => path)).toEqual([])
})

function isRecord(path: string): boolean {
  return /^docs\/decisions\/\d{4}-/.test(path)
}

/** The pages that an index lists, each with a sentence. */
function listedIn(index: string): string[] {
  return [...pages.get(index)!.matchAll(/^- \[([\w./-]+\.md)\]\(\1\): .+[.;]/gm)]
    .map(([, name]) => normalize(join(dirname(index), name!)))
    .toSorted()
}

const known = new Map<string, Set<string>>()

/** The names of a page's headings in links: a title that comes again is numbered. Lines of code are no headings. */
function headings(path: string): Set<string> {
  const found = known.get(path) ?? new Set<string>()
  if (!known.has(path)) {
    const text = read(path).replaceAll(/^```[^]*?^```$/gm, '')
    const counts = new Map<string, number>()
    for (const [, title] of text.matchAll(/^#+ (.+)$/gm)) {
      const name = spelled(title!)
      const count = counts.get(name) ?? 0
      counts.set(name, count + 1)
      found.add(count === 0 ? name : `${name}-${count}`)
    }
    known.set(path, found)
  }
  return found
}

function spelled(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}
