import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))

export function read(path: string): string {
  return readFileSync(`${root}${path}`, 'utf8')
}

/** Every page for readers, by its path from the root. */
export const pages = new Map(
  [
    'README.md',
    'CONTRIBUTING.md',
    'clients/examples/README.md',
    'clients/python/README.md',
    'clients/typescript/README.md',
    'src/README.md',
    'src/web/README.md',
    ...readdirSync(`${root}docs`, { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`),
  ]
    .filter((path) => path.endsWith('.md'))
    .map((path) => [path, read(path)]),
)

/** What a page has as code, line by line: in backticks, indented by four or between fences. */
export function codeOf(page: string): string[] {
  let fenced = false
  return page.split('\n').flatMap((line) => {
    if (line.trimStart().startsWith('```')) {
      fenced = !fenced
      return []
    }
    if (fenced) return [line.trim()]
    const spans = [...line.matchAll(/(?<!`)`([^`]+)`(?!`)/g)].map(([, code]) => code!)
    // what is indented is code, unless it goes on with a list
    return spans.length === 0 && /^ {4,}\S/.test(line) ? [line.trim()] : spans
  })
}
