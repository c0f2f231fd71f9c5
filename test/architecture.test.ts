import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

interface Import {
  /** Path below src. */
  file: string
  /** Path below src, or the package's name with what follows. */
  target: string
  own: boolean
  typeOnly: boolean
}

const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.startsWith('page/browser/'))
  .toSorted()
const texts = new Map(files.map((file) => [file, readFileSync(join(root, 'src', file), 'utf8')]))
const imports = files.flatMap((file) => importsOf(file, texts.get(file)!))

const layers = new Set([
  'main',
  'runtime',
  'version',
  'app',
  'assembly',
  'part',
  'config',
  'http-settings',
  'data-directory',
  'first-start',
  'unopened',
  'commands',
  'install',
  'release',
  'core',
  'store',
  'events',
  'delivery',
  'http',
])

/** What each layer may import of the others; a capability is any other folder. */
const reach: Record<string, string[]> = {
  main: ['runtime', 'version', 'commands', 'core'],
  runtime: [],
  version: [],
  commands: ['install', 'app', 'unopened', 'config', 'core', 'http', 'capability', 'version'],
  install: ['app', 'config', 'delivery', 'core', 'version'],
  release: ['install'],
  app: [
    'version',
    'assembly',
    'part',
    'config',
    'http-settings',
    'data-directory',
    'first-start',
    'core',
    'store',
    'events',
    'delivery',
    'http',
    'capability',
  ],
  assembly: ['part', 'config', 'core', 'store', 'events', 'delivery', 'capability'],
  'http-settings': ['config', 'http'],
  'data-directory': ['first-start', 'config', 'core', 'store'],
  'first-start': ['config', 'core', 'store'],
  unopened: ['config', 'core', 'capability'],
  part: ['config', 'core', 'events', 'delivery', 'http'],
  config: ['core'],
  http: ['core', 'store'],
  delivery: ['store', 'core'],
  events: ['store', 'core'],
  store: ['core'],
  core: [],
  capability: ['part', 'config', 'http', 'delivery', 'events', 'store', 'core'],
}

test('layers import only what lies below them', () => {
  const wrong = imports
    .filter(({ own }) => own)
    .filter(({ file, target }) => {
      const from = layerOf(file)
      const to = layerOf(target)
      return from !== to && !(isCapability(from) && isCapability(to)) && !reach[kindOf(from)]!.includes(kindOf(to))
    })
  expect(wrong.map(told)).toEqual([])
})

/** Files of pure functions on the octets of a message, which read them alike for all. */
const pure = ['mail/headers.ts', 'mail/trace.ts']

test('a capability knows another one by its types only; values come from its model, or are pure functions', () => {
  const wrong = imports.filter(
    ({ file, target, own, typeOnly }) =>
      own &&
      isCapability(layerOf(file)) &&
      isCapability(layerOf(target)) &&
      layerOf(file) !== layerOf(target) &&
      !typeOnly &&
      !target.endsWith('/model.ts') &&
      !pure.includes(target),
  )
  expect(wrong.map(told)).toEqual([])
})

test('a model is a leaf: of other folders it imports core, the declaration of event types, and other models', () => {
  const wrong = imports.filter(
    ({ file, target, own }) =>
      own &&
      isCapability(layerOf(file)) &&
      file.endsWith('/model.ts') &&
      layerOf(target) !== 'core' &&
      !target.endsWith('/model.ts'),
  )
  expect(wrong.map(told)).toEqual([])
})

test('only its part reads the configuration of a capability', () => {
  const wrong = imports.filter(
    ({ file, target, own, typeOnly }) =>
      own &&
      isCapability(layerOf(file)) &&
      ['config', 'part'].includes(layerOf(target)) &&
      !(file.endsWith('/part.ts') && (typeOnly || target === 'config.ts')),
  )
  expect(wrong.map(told)).toEqual([])
})

/** Packages that come in by more than one file, and why that is no second door. */
const wide: Record<string, string> = {
  zod: 'shapes are declared where the thing they describe is',
  commander: 'commands are added to the one program that main makes; they name its type only',
  'sql-template-tag': 'the engine names the type that database.ts hands out',
}

/** Packages that are several tools in one: each of them has its door. */
const boxes = new Set(['nodemailer', 'mailauth'])

test('each library comes in by one file', () => {
  const doors = new Map<string, Set<string>>()
  for (const { file, target, own, typeOnly } of imports) {
    if (own || target.startsWith('node:') || (typeOnly && packageOf(target) in wide)) continue
    const library = boxes.has(packageOf(target)) ? target : packageOf(target)
    doors.set(library, (doors.get(library) ?? new Set()).add(file))
  }
  const second = [...doors].filter(([name, users]) => users.size > 1 && name !== 'zod')
  expect(second.map(([name, users]) => `${name}: ${[...users].join(', ')}`)).toEqual([])
  expect([...doors.get('sql-template-tag')!]).toEqual(['store/database.ts'])
  expect([...doors.get('koa')!]).toEqual(['http/api.ts'])
})

test('half of the files are shorter than 90 lines', () => {
  const lengths = files.map((file) => texts.get(file)!.split('\n').length - 1)
  const sorted = lengths.toSorted((one, other) => one - other)
  expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThanOrEqual(90)
})

test('files are named after the thing they hold', () => {
  expect(
    files.filter((file) => /(?:^|\/)(?:utils?|helpers?|common|managers?|services?|types|misc|index)\.ts$/.test(file)),
  ).toEqual([])
  expect(files.filter((file) => !/^[a-z0-9/-]+\.ts$/.test(file))).toEqual([])
})

test('nothing is exported by default, extended (but errors), or decorated', () => {
  expect(holding(/^export default /m)).toEqual([])
  expect(holding(/^(?:export )?(?:abstract )?class \w+ extends (?!Error\b)/m)).toEqual([])
  expect(holding(/^\s*(?:export )?(?:const )?enum |^\s*(?:export )?namespace /m)).toEqual([])
  expect(holding(/@ts-ignore|@ts-expect-error|@ts-nocheck|\bas any\b/)).toEqual([])
})

test('only what runs at the command line touches the process', () => {
  const touching = holding(/\bprocess\.(?:env|exit|argv|stdin)\b/)
  // runtime.ts is what main does before anything else is loaded
  expect(
    touching.filter((file) => !['main.ts', 'runtime.ts', 'release/run.ts'].includes(file) && !file.startsWith('commands/')),
  ).toEqual([])
  expect(holding(/\bconsole\./)).toEqual([])
  expect(holding(/NODE_ENV/)).toEqual([])
})

test('imports name the file with its ending', () => {
  expect(imports.filter(({ own, target }) => own && !files.includes(target)).map(told)).toEqual([])
})

test('the page knows the box by its API alone: of what is outside of its folder it takes types of models', () => {
  const { browser, links } = page()
  expect(browser.length).toBeGreaterThan(20)
  const foreign = links
    .filter(({ file }) => file !== 'page/browser/build.ts')
    .filter(({ target, own, typeOnly }) =>
      own
        ? !target.startsWith('page/browser/') && !(typeOnly && target.endsWith('/model.ts'))
        : !['preact', 'preact/hooks', '@preact/signals'].includes(target),
    )
  expect(foreign.map(told)).toEqual([])
  expect(links.filter(({ target, own }) => own && !browser.includes(target) && !files.includes(target)).map(told)).toEqual([])
})

test('the files of the page are short, named after what they hold, and export by name', () => {
  const { browser, text } = page()
  expect(browser.filter((file) => text(file).split('\n').length - 1 > 300)).toEqual([])
  expect(browser.filter((file) => !/^[a-z0-9/-]+\.tsx?$/.test(file))).toEqual([])
  const wrong =
    /^export default |@ts-ignore|@ts-expect-error|@ts-nocheck|\bas any\b|\bconsole\.|dangerouslySetInnerHTML|innerHTML/m
  expect(browser.filter((file) => wrong.test(text(file)) && !file.endsWith('/build.ts'))).toEqual([])
})

/** What runs in browsers, and what it imports. */
function page(): { browser: string[]; links: Import[]; text: (file: string) => string } {
  const browser = readdirSync(join(root, 'src/page/browser'), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => `page/browser/${name}`)
  const text = (file: string): string => readFileSync(join(root, 'src', file), 'utf8')
  return { browser, text, links: browser.flatMap((file) => importsOf(file, text(file))) }
}

/** The files whose text matches. */
function holding(pattern: RegExp): string[] {
  return files.filter((file) => pattern.test(texts.get(file)!))
}

function importsOf(file: string, text: string): Import[] {
  const found = [...text.matchAll(/^(?:import|export)\s(?:(type)\s)?[^'";]*?from\s'([^']+)'/gm)].map(([, type, target]) => ({
    target: target!,
    typeOnly: type !== undefined,
  }))
  const others = [...text.matchAll(/^import\s'([^']+)'|\bimport\('([^']+)'\)|\.resolve\('([^']+)'\)/gm)].map(([, ...named]) => ({
    target: named.find((name) => name !== undefined)!,
    typeOnly: false,
  }))
  return [...found, ...others].map(({ target, typeOnly }) => {
    const own = target.startsWith('.')
    return { file, own, typeOnly, target: own ? posix.join(posix.dirname(file), target) : target }
  })
}

/** `http` for `http/api.ts`, `config` for `config.ts`. */
function layerOf(file: string): string {
  return file.split('/')[0]!.replace(/\.ts$/, '')
}

function isCapability(layer: string): boolean {
  return !layers.has(layer)
}

function kindOf(layer: string): string {
  return isCapability(layer) ? 'capability' : layer
}

/** nodemailer is several libraries in one package: an address parser, a composer, an SMTP client. */
function packageOf(target: string): string {
  return target
    .split('/')
    .slice(0, target.startsWith('nodemailer/lib/') ? 3 : target.startsWith('@') ? 2 : 1)
    .join('/')
}

function told({ file, target, typeOnly }: Import): string {
  return `${file} imports ${typeOnly ? 'types of ' : ''}${target}`
}
