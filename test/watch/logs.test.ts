import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))

interface Line {
  level: string
  text: string
}

/** Every line that a source text logs; a call whose message is not there to read is told as `…`. */
function linesIn(source: string): Line[] {
  const lines: Line[] = []
  for (const call of source.matchAll(/[lL]og(?:ger)?\??\.(trace|debug|info|warn|error|fatal)\(/g)) {
    const message = argumentsAt(source, call.index + call[0].length).at(-1)!
    const texts = [...message.matchAll(/'((?:[^'\\]|\\.)*)'/g)].map(([, text]) => text!)
    for (const text of texts.length === 0 ? ['…'] : texts) lines.push({ level: call[1]!, text })
  }
  return lines
}

/** The arguments of a call whose bracket opens before `from`. */
function argumentsAt(source: string, from: number): string[] {
  const found: string[] = []
  let depth = 0
  let begin = from
  for (let at = from; at < source.length; at++) {
    const sign = source[at]!
    if (`'"\``.includes(sign)) at = endOfText(source, at)
    else if ('([{'.includes(sign)) depth += 1
    else if (')]}'.includes(sign) && depth-- === 0) return [...found, source.slice(begin, at)].filter((one) => one.trim() !== '')
    else if (sign === ',' && depth === 0) {
      found.push(source.slice(begin, at))
      begin = at + 1
    }
  }
  throw new Error('a call does not end')
}

function endOfText(source: string, from: number): number {
  let at = from + 1
  while (source[at] !== source[from]) at += source[at] === '\\' ? 2 : 1
  return at
}

const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
const lines = files.flatMap((file) => linesIn(readFileSync(join(root, 'src', file), 'utf8')))
const page = readFileSync(join(root, 'docs/observe.md'), 'utf8')
const written = [...page.matchAll(/^\| (\w+) \| `(.+?)` \| (.*)\|$/gm)].map(([, level, text, told]) => ({
  level: level!,
  text: text!,
  told: told!.trim(),
}))
const spelled = ({ level, text }: Line): string => `${level} ${text}`

test('docs/observe.md names every line at warn and above, and says what to do', () => {
  const loud = lines.filter(({ level }) => ['warn', 'error', 'fatal'].includes(level))
  expect(loud.length).toBeGreaterThan(50)
  const known = new Set(written.map(spelled))
  expect([...new Set(loud.map(spelled))].filter((line) => !known.has(line))).toEqual([])
  const silent = written.filter(({ level, text, told }) => level !== 'info' && told === '' && !text.endsWith('adopted'))
  expect(silent.map(spelled)).toEqual([])
})

test('docs/observe.md names no line that the box does not write, and none twice', () => {
  const real = new Set(lines.map(spelled))
  expect(written.map(spelled).filter((line) => !real.has(line))).toEqual([])
  expect(new Set(written.map(spelled)).size).toBe(written.length)
})

test('what a line says is the same each time: what differs is in its fields', () => {
  expect(lines.filter(({ text }) => text === '…' || text.includes('${'))).toEqual([])
})

test('lines are found however they are written', () => {
  const source = `
    log.info('one')
    this.#log?.warn({ a: f(1, 'x'), b: \`,\` }, 'two')
    needs.log.error({ err: error },
      late ? 'three' : 'four',
    )
    log.debug(message)
    catalog.errors('no line')`
  expect(linesIn(source).map(spelled)).toEqual(['info one', 'warn two', 'error three', 'error four', 'debug …'])
})
