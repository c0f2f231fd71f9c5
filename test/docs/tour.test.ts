import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pages, root } from './pages.ts'

const tour = pages.get('src/README.md')!

test('the tour has every folder and file of src once', () => {
  const tree = tour.split('\n').map((line) => /^ {4}((?:[a-z0-9-]+(?:\.ts|\/) +)+)/.exec(line)?.[1] ?? '')
  const names = tree.flatMap((heads) => heads.match(/[a-z0-9-]+(?:\.ts)?/g) ?? [])
  const all = readdirSync(join(root, 'src')).filter((name) => name !== 'README.md')
  expect(names.toSorted()).toEqual(all.toSorted())
})

test('files of the program that the tours and the decisions name are there', () => {
  const named = [...pages].flatMap(([path, page]) =>
    path === 'src/README.md' || path === 'src/web/README.md' || path.startsWith('docs/decisions/')
      ? [...page.matchAll(/`([a-z0-9-]+(?:\/[a-z0-9-]+)*(?:\/|\.tsx?|\.test\.ts))`/g)].map(([, file]) => [path, file!] as const)
      : [],
  )
  expect(named.length).toBeGreaterThan(120)
  const absent = named.filter(
    ([path, file]) =>
      !['', 'src', ...(path === 'src/web/README.md' ? ['src/web', 'src/web/browser'] : [])].some((folder) =>
        existsSync(join(root, folder, file)),
      ) && !patterns.has(file),
  )
  expect(absent).toEqual([])
})

/** What many folders have a file of. */
const patterns = new Set(['model.ts', 'routes.ts', 'metrics.ts'])
