// Lets our own TypeScript run where it was installed as a package: Node.js itself runs none below node_modules. Without its types it is kept beside the
// compiled code, by a hash of what it was made of.
import { hash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { threadId } from 'node:worker_threads'

const own = new URL('../src/', import.meta.url).href
const cache = process.env.NODE_COMPILE_CACHE
const kept = cache ? join(cache, `typeless-${process.version}`) : undefined

registerHooks({
  load(url, context, next) {
    if (!url.startsWith(own) || !url.endsWith('.ts')) return next(url, context)
    return { format: 'module', shortCircuit: true, source: typeless(readFileSync(fileURLToPath(url), 'utf8')) }
  },
})

function typeless(text) {
  if (kept === undefined) return stripTypeScriptTypes(text)
  const file = join(kept, `${hash('sha256', text)}.js`)
  const whole = wholeIn(file)
  if (whole !== undefined) return whole
  const code = stripTypeScriptTypes(text)
  try {
    keep(file, `${hash('sha256', code)}\n${code}`)
  } catch {
    // read-only or full: it is made again at the next start
  }
  return code
}

function keep(file, content) {
  const unfinished = `${file}.${process.pid}-${threadId}`
  mkdirSync(kept, { recursive: true })
  try {
    writeFileSync(unfinished, content)
    renameSync(unfinished, file)
  } finally {
    rmSync(unfinished, { force: true })
  }
}

/** The code in a file that begins with a hash of it; undefined for one that is not there, or that a power cut left unfinished. */
function wholeIn(file) {
  try {
    const [, sum, code] = /^([0-9a-f]{64})\n([^]*)$/.exec(readFileSync(file, 'utf8')) ?? []
    return code !== undefined && hash('sha256', code) === sum ? code : undefined
  } catch {
    return undefined
  }
}
