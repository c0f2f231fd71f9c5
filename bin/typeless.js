// Lets our own TypeScript run where it was installed as a package: Node.js itself runs none below node_modules.
import { readFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { fileURLToPath } from 'node:url'

const own = new URL('../src/', import.meta.url).href

registerHooks({
  load(url, context, next) {
    if (!url.startsWith(own) || !url.endsWith('.ts')) return next(url, context)
    return { format: 'module', shortCircuit: true, source: stripTypeScriptTypes(readFileSync(fileURLToPath(url), 'utf8')) }
  },
})
