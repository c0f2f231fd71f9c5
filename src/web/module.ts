import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Module } from '../module.ts'
import { BuiltSite } from './site.ts'

/** Where `npm run prepare` puts what it builds of `browser/`. */
const folder = join(fileURLToPath(new URL('../..', import.meta.url)), 'dist', 'page')

/** The page for the people behind the agents. */
export function pageModule(): Module {
  const site = new BuiltSite(folder)
  return { name: 'page', site, start: () => site.read() }
}
