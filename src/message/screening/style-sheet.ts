import { addDeclarations, type Declarations, declarationsIn } from './appearance.ts'

/** Characters of style sheets that are read, and rules that are kept. */
const maxLength = 128 * 1024
const maxRules = 2000

/** The rules of the style sheets of a message that a selector of one element decides. */
export interface StyleSheet {
  /** True where there is no rule. */
  isEmpty: boolean
  /** The styles that hold for an element, the weakest first. */
  rulesFor(tag: string, classes: string, id: string): Declarations[]
}

/**
 * Reads the style sheets of HTML: rules for a tag, a class or an id, and those for what is inside of others by the innermost. Rules that hold for
 * some screens or programs only are left out, as what they hide is seen elsewhere.
 */
export function styleSheetOf(html: string): StyleSheet {
  const rules = new Map<string, Declarations>()
  let count = 0
  for (const css of styleElements(html)) {
    for (const { selectors, style } of rulesIn(css)) {
      const declarations = declarationsIn(style)
      for (const selector of selectors.split(',')) {
        const key = keyOf(selector)
        if (key === undefined || ++count > maxRules) continue
        const known = rules.get(key) ?? new Map()
        addDeclarations(known, declarations)
        rules.set(key, known)
      }
    }
  }
  return { isEmpty: rules.size === 0, rulesFor: (tag, classes, id) => lookUp(rules, tag, classes, id) }
}

function lookUp(rules: ReadonlyMap<string, Declarations>, tag: string, classes: string, id: string): Declarations[] {
  const names = classes === '' ? [] : classes.slice(0, 1000).trim().split(/\s+/, 20)
  const keys = [tag, ...names.map((name) => `.${name}`), ...names.map((name) => `${tag}.${name}`), `#${id}`, `${tag}#${id}`]
  return keys.flatMap((key) => rules.get(key) ?? [])
}

/** The contents of the style elements, but those in comments. */
function* styleElements(html: string): Generator<string> {
  const marks = /<!--|<style\b/gi
  let left = maxLength
  for (let found = marks.exec(html); found && left > 0; found = marks.exec(html)) {
    if (found[0] === '<!--') {
      const end = html.indexOf('-->', marks.lastIndex)
      if (end === -1) return
      marks.lastIndex = end + 3
      continue
    }
    const start = html.indexOf('>', marks.lastIndex)
    if (start === -1) return
    const close = /<\/style/gi
    close.lastIndex = start
    const end = close.exec(html)?.index ?? html.length
    const css = html.slice(start + 1, Math.min(end, start + 1 + left))
    left -= css.length
    marks.lastIndex = end
    yield css
  }
}

/** The rules outside of blocks, and those in blocks for all screens. */
function* rulesIn(css: string): Generator<{ selectors: string; style: string }> {
  const text = withoutComments(css)
  let at = 0
  while (at < text.length) {
    const brace = text.indexOf('{', at)
    if (brace === -1) return
    const before = text.slice(at, brace)
    const selectors = before.slice(Math.max(before.lastIndexOf('}'), before.lastIndexOf(';')) + 1).trim()
    if (/^@media\s{1,9}(?:only\s{1,9})?(?:screen|all)\s{0,9}$/i.test(selectors.slice(-60))) {
      at = brace + 1
    } else if (selectors.includes('@')) {
      at = blockEnd(text, brace)
    } else {
      const end = text.indexOf('}', brace)
      if (end === -1) return
      yield { selectors, style: text.slice(brace + 1, end) }
      at = end + 1
    }
  }
}

function blockEnd(text: string, brace: number): number {
  const braces = /[{}]/g
  braces.lastIndex = brace
  let depth = 0
  for (let found = braces.exec(text); found; found = braces.exec(text)) {
    depth += found[0] === '{' ? 1 : -1
    if (depth === 0) return braces.lastIndex
  }
  return text.length
}

function withoutComments(css: string): string {
  return css
    .split('/*')
    .map((part, index) => (index === 0 ? part : part.includes('*/') ? part.slice(part.indexOf('*/') + 2) : ''))
    .join(' ')
}

/** The innermost part of a selector; undefined for one that needs more than that to be decided, such as `u + .body .hide`. */
function keyOf(selector: string): string | undefined {
  const text = selector.trim().slice(0, 200)
  if (/[+~[\]:*\\]/.test(text)) return undefined
  const parts = text.split(/[\s>]{1,9}/)
  const last = parts.at(-1) ?? ''
  const [, tag = '', mark = ''] = /^([a-z\d]{0,20})([.#][\w-]{1,60})?$/i.exec(last) ?? []
  // `div p` says too little of a `p`
  if (mark === '' && parts.length > 1) return undefined
  return tag === '' && mark === '' ? undefined : `${tag.toLowerCase()}${mark}`
}
