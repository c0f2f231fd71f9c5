import { existsSync } from 'node:fs'
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

test('pages that are named in words are there', () => {
  const named = [...pages].flatMap(([path, page]) =>
    [...page.matchAll(/\bdocs\/[\w-]+\.(?:md|json|yaml)\b/g)].map(([name]) => [path, name] as const),
  )
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter(([, name]) => !existsSync(join(root, name)))).toEqual([])
})

test('the index has every page once, and no other', () => {
  const listed = [...pages.get('docs/README.md')!.matchAll(/^- \[([\w-]+\.md)\]\(\1\): .+[.;]/gm)].map(
    ([, name]) => `docs/${name}`,
  )
  const all = [...pages.keys()].filter((path) => path.startsWith('docs/') && path !== 'docs/README.md')
  expect(listed.toSorted()).toEqual(all.toSorted())
  expect(pages.get('README.md')).toContain('](docs/README.md)')
})

const known = new Map<string, Set<string>>()

/** The names that a page's headings have in links. */
function headings(path: string): Set<string> {
  const found = known.get(path) ?? new Set([...read(path).matchAll(/^#+ (.+)$/gm)].map(([, title]) => spelled(title!)))
  known.set(path, found)
  return found
}

function spelled(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}
