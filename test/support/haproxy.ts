import { readFileSync } from 'node:fs'
import { root } from '../docs/pages.ts'
import type { Namespaces } from './namespaces.ts'
import { peer } from './peer.ts'
import { type BoxProcess, startProcess } from './process.ts'
import { succeed } from './program.ts'

/** The example that we ship; its addresses are those of the namespaces of the test. */
export const example = `${root}config/haproxy.cfg.example`

/** The machines of the example and of docs/several-boxes.md, and one for all that is outside. */
export const machines = {
  world: ['10.0.0.1/24', '10.0.0.2/24', '10.0.0.3/24', 'fd00::1/64'],
  proxy: ['10.0.0.10/24', 'fd00::10/64'],
  one: ['10.0.0.11/24'],
  two: ['10.0.0.12/24'],
  db1: ['10.0.0.21/24'],
  db2: ['10.0.0.22/24'],
}

/** Checks the example as its page says, and starts HAProxy from it. */
export async function startHaproxy(namespaces: Namespaces): Promise<BoxProcess> {
  const program = peer('haproxy')
  if (program === undefined) throw new Error('HAProxy is not installed (apt-get install haproxy).')
  await succeed(program, ['-c', '-f', example])
  const [first, ...words] = [...namespaces.in('proxy'), program, '-db', '-f', example]
  return startProcess({}, words, '/', first)
}

/** The blocks of a page in this language. */
export function blocksOf(page: string, language: string): string[] {
  const text = readFileSync(`${root}docs/${page}`, 'utf8')
  return [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].filter(([, its]) => its === language).map(([, , block]) => block!)
}
