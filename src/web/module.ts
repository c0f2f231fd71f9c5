import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Module } from '../module.ts'
import { BuiltSite } from './site.ts'

/** Where `npm run prepare` puts the build of `browser/`. */
const folder = join(fileURLToPath(new URL('../..', import.meta.url)), 'dist', 'page')

/** The web interface. */
export function pageModule(): Module {
  const site = new BuiltSite(folder)
  return { name: 'page', site, start: () => site.read() }
}
