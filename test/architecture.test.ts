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
  /** Loaded when it is first needed, by `import()`. */
  late: boolean
}

const all = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .toSorted()
const browser = all.filter((name) => name.startsWith('web/browser/'))
const files = all.filter((name) => !name.startsWith('web/browser/'))
const texts = new Map(all.map((file) => [file, readFileSync(join(root, 'src', file), 'utf8')]))
const imports = files.flatMap(importsOf)
const pageImports = browser.flatMap(importsOf)

/** What every capability stands on, from below; `basis` is what it is made from, `module` what it gives the app. */
const foundation = 'version runtime core config store events basis net objects queue http module'.split(' ')
const capabilities = (
  'audit message smtp mailauth domains identities accounts mail outbound certificates reporting ' +
  'sms totp cards logins policy agents tokens trust timeline webhooks realtime jobs mcp ops web'
).split(' ')
const program = 'data-directory unopened assembly app install release commands main'.split(' ')
/** Folders and single files of src, from below: a value is imported from what stands further to the left. */
const order = [...foundation, ...capabilities, ...program]

test('every file and folder of src has its place', () => {
  expect([...new Set(files.map(layerOf))].filter((layer) => !order.includes(layer))).toEqual([])
})

test('values are imported from below', () => {
  const wrong = imports.filter(
    ({ file, target, own, typeOnly }) =>
      own && !typeOnly && layerOf(file) !== layerOf(target) && order.indexOf(layerOf(target)) > order.indexOf(layerOf(file)),
  )
  expect(wrong.map(describe)).toEqual([])
})

test('the foundation knows no capability, not by a type either', () => {
  const wrong = imports.filter(
    ({ file, target, own }) => own && foundation.includes(layerOf(file)) && !foundation.includes(layerOf(target)),
  )
  expect(wrong.map(describe)).toEqual([])
})

test('no files import each other in a circle, not by types either', () => {
  expect(circles([...imports, ...pageImports.filter(({ target }) => browser.includes(target))])).toEqual([])
})

test('a model is a leaf: of other folders it imports core, the declaration of event types, and other models', () => {
  const wrong = imports.filter(
    ({ file, target, own }) =>
      own &&
      capabilities.includes(layerOf(file)) &&
      file.endsWith('/model.ts') &&
      layerOf(target) !== 'core' &&
      !target.endsWith('/model.ts'),
  )
  expect(wrong.map(describe)).toEqual([])
})

test('only its module reads the configuration of a capability', () => {
  const wrong = imports.filter(
    ({ file, target, own, typeOnly }) =>
      own &&
      capabilities.includes(layerOf(file)) &&
      ['config', 'module'].includes(layerOf(target)) &&
      !(file.endsWith('/module.ts') && (typeOnly || target === 'config.ts')),
  )
  expect(wrong.map(describe)).toEqual([])
})

/** Packages that come in by more than one file, and why that is no second way in. */
const wide: Record<string, string> = {
  zod: 'shapes are declared where the thing they describe is',
  commander: 'commands are added to the one program that main makes; they name its type only',
  'sql-template-tag': 'the engine names the type that database.ts hands out',
}

/** Packages that are several tools in one: each of them is imported in one place. */
const collections = new Set(['nodemailer', 'mailauth'])

test('each library is imported by one file', () => {
  const users = new Map<string, Set<string>>()
  for (const { file, target, own, typeOnly } of imports) {
    if (own || target.startsWith('node:') || (typeOnly && packageOf(target) in wide)) continue
    const library = collections.has(packageOf(target)) ? target : packageOf(target)
    users.set(library, (users.get(library) ?? new Set()).add(file))
  }
  const second = [...users].filter(([name, by]) => by.size > 1 && name !== 'zod')
  expect(second.map(([name, by]) => `${name}: ${[...by].join(', ')}`)).toEqual([])
  expect([...users.get('sql-template-tag')!]).toEqual(['store/database.ts'])
  expect([...users.get('koa')!]).toEqual(['http/api.ts'])
})

test('no folder has more than 20 files', () => {
  const counts = new Map<string, number>()
  for (const file of all) counts.set(posix.dirname(file), (counts.get(posix.dirname(file)) ?? 0) + 1)
  expect([...counts].filter(([, count]) => count > 20)).toEqual([])
})

test('files are named after the thing they hold', () => {
  expect(all.filter((file) => /(?:^|\/)(?:utils?|helpers?|common|managers?|services?|misc|index)\.tsx?$/.test(file))).toEqual([])
  expect(all.filter((file) => !/^[a-z0-9/-]+\.tsx?$/.test(file))).toEqual([])
})

/** Words that once named things here and that nobody would search for, with what says it now. */
const privateWords: Record<string, string> = {
  visit: 'session',
  intake: 'transaction',
  manners: 'profile',
  mailroom: 'delivery target',
  gate: 'submission auth',
  desk: 'handler',
  doors: 'listeners',
  guard: 'limiter',
  crowd: 'limiter',
  seat: 'worker slot',
  solo: 'quarantine',
  room: 'quota, memory',
  sheets: 'HTML view',
  clues: 'hints',
  harmless: 'sanitize',
  letters: 'send service',
  wish: 'request, input',
  parcel: 'queued e-mail',
  enclosure: 'attachment',
  carriage: 'transport',
  ways: 'routing',
  handover: 'delivery',
  flights: 'in flight',
  endings: 'results',
  soundness: 'health',
  handful: 'batch',
  happening: 'event header',
  hand: 'call abort',
  surroundings: 'environment',
  arrears: 'missed messages',
  conceal: 'redact',
  cabinet: 'store',
  shelf: 'directory',
  forsake: 'drop',
  agenda: 'next check',
  rhythm: 'interval',
  standing: 'status, state',
  outlook: 'external view',
  figures: 'metrics',
  patience: 'timeout',
  needs: 'deps',
  parts: 'deps',
}

test('words that were private to this program name no file and no type', () => {
  const named = all.flatMap((file) =>
    [
      ...file.replace(/\.tsx?$/, '').split(/[/-]/),
      ...[...texts.get(file)!.matchAll(/^(?:export )?(?:abstract )?(?:class|interface|type) (\w+)/gm)].flatMap(([, name]) =>
        name!.split(/(?=[A-Z])/).map((word) => word.toLowerCase()),
      ),
    ]
      .filter((word) => Object.hasOwn(privateWords, word))
      .map((word) => `${file}: ${word}, rather ${privateWords[word]}`),
  )
  expect(named).toEqual([])
})

test('a module is imported by one statement', () => {
  const twice = all.flatMap((file) => {
    const targets = [...texts.get(file)!.matchAll(/^import\s(?!\*)[^'";]*?from\s'([^']+)'/gm)].map(([, target]) => target!)
    return targets.filter((target, at) => targets.indexOf(target) !== at).map((target) => `${file}: ${target}`)
  })
  expect(twice).toEqual([])
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
  expect([...imports, ...pageImports].filter(({ own, target }) => own && !all.includes(target)).map(describe)).toEqual([])
})

/** Of the program's values, what the page shares: a table of a standard, which knows nothing of the box. */
const sharedWithPage = 'cards/money.ts'

test('the page knows the box by its API alone: of what is outside of its folder it takes types of models, and a table', () => {
  expect(imports.filter(({ file }) => file === sharedWithPage)).toEqual([])
  expect(browser.length).toBeGreaterThan(20)
  const foreign = pageImports
    .filter(({ file }) => file !== 'web/browser/build.ts')
    .filter(({ target, own, typeOnly }) =>
      own
        ? !target.startsWith('web/browser/') && target !== sharedWithPage && !(typeOnly && target.endsWith('/model.ts'))
        : !['preact', 'preact/hooks', '@preact/signals'].includes(target),
    )
  expect(foreign.map(describe)).toEqual([])
})

test('the files of the page export by name, and put in no HTML', () => {
  const wrong =
    /^export default |@ts-ignore|@ts-expect-error|@ts-nocheck|\bas any\b|\bconsole\.|dangerouslySetInnerHTML|innerHTML/m
  expect(browser.filter((file) => wrong.test(texts.get(file)!) && !file.endsWith('/build.ts'))).toEqual([])
})

/** The files whose text matches. */
function holding(pattern: RegExp): string[] {
  return files.filter((file) => pattern.test(texts.get(file)!))
}

function importsOf(file: string): Import[] {
  const text = texts.get(file)!
  const found = [...text.matchAll(/^(?:import|export)\s(?:(type)\s)?([^'";]*?)from\s'([^']+)'/gm)].map(
    ([, type, names, target]) => ({
      target: target!,
      late: false,
      typeOnly: type !== undefined || /^\{(?:\s*type\s[^,}]+,?)+\s*\}\s*$/.test(names!),
    }),
  )
  const others = [...text.matchAll(/^import\s'([^']+)'|\bimport\('([^']+)'\)|\.resolve\('([^']+)'\)/gm)].map(([, ...named]) => ({
    target: named.find((name) => name !== undefined)!,
    late: named[1] !== undefined,
    typeOnly: false,
  }))
  return [...found, ...others].map(({ target, typeOnly, late }) => {
    const own = target.startsWith('.')
    return { file, own, typeOnly, late, target: own ? posix.join(posix.dirname(file), target) : target }
  })
}

/** The files that can reach themselves, each group by the shortest way around. */
function circles(links: readonly Import[]): string[] {
  const targets = new Map<string, string[]>()
  for (const { file, target, own, late } of links) if (own && !late) targets.set(file, [...(targets.get(file) ?? []), target])
  const found = [...targets.keys()].map((start) => wayAround(start, targets)).filter((way) => way !== undefined)
  return [...new Set(found.map((way) => turned(way).join(' > ')))]
}

/** The shortest way from a file to itself, without its end; undefined when there is none. */
function wayAround(start: string, targets: ReadonlyMap<string, string[]>): string[] | undefined {
  const ways = new Map([[start, [start]]])
  for (const [file, way] of ways) {
    const next = targets.get(file) ?? []
    if (next.includes(start)) return way
    for (const target of next) if (!ways.has(target)) ways.set(target, [...way, target])
  }
  return undefined
}

/** A circle from its first file in the alphabet. */
function turned(way: readonly string[]): string[] {
  const least = way.indexOf(way.toSorted()[0]!)
  return [...way.slice(least), ...way.slice(0, least)]
}

/** `http` for `http/api.ts`, `config` for `config.ts`. */
function layerOf(file: string): string {
  return file.split('/')[0]!.replace(/\.ts$/, '')
}

/** nodemailer is several libraries in one package: an address parser, a composer, an SMTP client. */
function packageOf(target: string): string {
  return target
    .split('/')
    .slice(0, target.startsWith('nodemailer/lib/') ? 3 : target.startsWith('@') ? 2 : 1)
    .join('/')
}

function describe({ file, target, typeOnly }: Import): string {
  return `${file} imports ${typeOnly ? 'types of ' : ''}${target}`
}
