import { withoutStrings } from '../markup.ts'
import { measureOf } from './lengths.ts'

/** Characters of style sheets that are read. */
const maxLength = 512 * 1024

/** How deep blocks nest, and the selectors of one rule in another. */
const deepest = 12
const maxNested = 50
const longestSelectors = 20_000

/** A rule of a style sheet: its layer is Infinity outside of any. One of an animation has `@` and its name, and `from` or `to` or both, as its selectors. */
interface StyleRule {
  selectors: string
  style: string
  layer: number
}

interface Block {
  /** Null for one that has no rules of its own. */
  selectors: string | null
  /** False where its rules do not hold on a usual screen. */
  holds: boolean
  layer: number
  style: string[]
  /** The name of the animation whose frames it has. */
  frames?: string
}

/** The rules of the style elements of HTML that hold on a usual screen of 1000 pixels in light colours; null where there is more than is read. */
export function* rulesOf(html: string): Generator<StyleRule | null> {
  const layers = new Map<string, number>()
  let left = maxLength
  for (const css of styleElements(html)) {
    if (css.length > left) yield null
    yield* rulesIn(withoutStrings(css.slice(0, left)).replace(/\s+/g, ' '), layers)
    left = Math.max(0, left - css.length)
  }
}

/** The contents of the style elements for a usual screen, but those in comments. */
function* styleElements(html: string): Generator<string> {
  const marks = /<!--|<style\b/gi
  for (let found = marks.exec(html); found; found = marks.exec(html)) {
    if (found[0] === '<!--') {
      const end = html.indexOf('-->', marks.lastIndex)
      if (end === -1) return
      marks.lastIndex = end + 3
      continue
    }
    const start = tagEnd(html, marks.lastIndex)
    if (start === -1) return
    const close = /<\/style/gi
    close.lastIndex = start
    const end = close.exec(html)?.index ?? html.length
    marks.lastIndex = end
    if (isUsed(html.slice(found.index, start))) yield html.slice(start + 1, end)
  }
}

/** Where a tag ends: not in the value of an attribute. */
function tagEnd(html: string, from: number): number {
  const marks = /["'>]/g
  marks.lastIndex = from
  for (let found = marks.exec(html); found; found = marks.exec(html)) {
    if (found[0] === '>') return found.index
    if (!/=\s{0,20}$/.test(html.slice(Math.max(from, found.index - 21), found.index))) continue
    const end = html.indexOf(found[0], marks.lastIndex)
    if (end === -1) return -1
    marks.lastIndex = end + 1
  }
  return -1
}

const attribute = /([^\s"'>/=]+)\s{0,20}(?:=\s{0,20}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g

/** False for the tag of a style element that is for other media, or is no CSS. */
function isUsed(tag: string): boolean {
  let [media, type]: [string?, string?] = []
  for (const [, name = '', ...values] of tag.matchAll(attribute)) {
    const value = values.find((one) => one !== undefined) ?? ''
    // the first of several attributes of one name counts
    if (name.toLowerCase() === 'media') media ??= value
    else if (name.toLowerCase() === 'type') type ??= value
  }
  return (media ?? '').split(',').some((query) => mediaHolds(query)) && /^(?:text\/css)?$/i.test((type ?? '').trim())
}

function* rulesIn(text: string, layers: Map<string, number>): Generator<StyleRule | null> {
  const open: Block[] = [{ selectors: null, holds: true, layer: Infinity, style: [] }]
  const marks = /[{};()]|\\[\s\S]/g
  let start = 0
  let round = 0
  let skipped = 0
  for (let found = marks.exec(text); found; found = marks.exec(text)) {
    const mark = found[0]
    if (mark === '(') round += 1
    else if (mark === ')') round = Math.max(0, round - 1)
    if (round > 0 || mark === ')' || mark.startsWith('\\')) continue
    const top = open.at(-1)!
    if (mark === '}' && open.length === 1) continue
    const before = text.slice(start, found.index)
    start = marks.lastIndex
    if (mark === '{') {
      if (open.length > deepest) {
        skipped += 1
        yield null
      } else open.push(blockOf(before.replace(/<!--|-->/g, '').trim(), top, layers))
    } else if (mark === ';') {
      if (top.selectors !== null) top.style.push(before)
      else if (/^\s*@layer\s/i.test(before)) for (const name of before.trim().slice(6).split(',')) layerOf(name, layers)
    } else if (skipped > 0) skipped -= 1
    else {
      top.style.push(before)
      yield* ended(open.pop()!)
    }
  }
  // blocks that are not closed end with the text
  open.at(-1)!.style.push(text.slice(start))
  for (const block of open.toReversed()) yield* ended(block)
}

function* ended({ selectors, holds, layer, style }: Block): Generator<StyleRule | null> {
  if (holds && selectors === '') yield null
  else if (holds && selectors !== null && style.length > 0) yield { selectors, layer, style: style.join(';') }
}

function blockOf(prelude: string, outer: Block, layers: Map<string, number>): Block {
  const inner = { selectors: outer.selectors, holds: outer.holds, layer: outer.layer, style: [] }
  const [, rule, given = ''] = /^@([a-z-]{1,30})([\s\S]*)$/i.exec(prelude) ?? []
  if (outer.frames !== undefined) return { ...inner, selectors: frameOf(outer.frames, prelude) }
  if (rule === undefined) return { ...inner, selectors: nested(prelude, outer.selectors) }
  switch (rule.toLowerCase()) {
    case 'media':
      return { ...inner, holds: inner.holds && given.split(',').some((query) => mediaHolds(query)) }
    case 'supports':
      return { ...inner, holds: inner.holds && supports(given) }
    case 'keyframes':
    case '-webkit-keyframes':
      return { ...inner, selectors: null, frames: given.trim().toLowerCase().replace(/\s.*/s, '') }
    case 'layer':
      return { ...inner, layer: layerOf(given, layers) }
    case 'scope':
    case 'container':
    case 'starting-style':
      return { ...inner, holds: inner.holds && rule.toLowerCase() !== 'starting-style' }
    default:
      return { ...inner, holds: false }
  }
}

/** The first or the last frame of an animation; null for one between. */
function frameOf(animation: string, prelude: string): string | null {
  const places = prelude
    .toLowerCase()
    .split(',', 20)
    .map((place) => place.trim())
  const found = [
    places.some((place) => place === 'from' || place === '0%') ? ' from' : '',
    places.some((place) => place === 'to' || place === '100%') ? ' to' : '',
  ].join('')
  return found === '' ? null : `@${animation}${found}`
}

function layerOf(given: string, layers: Map<string, number>): number {
  const name = given.trim() || `: ${layers.size}`
  const known = layers.get(name) ?? layers.size
  layers.set(name, known)
  return known
}

/** The selectors of a rule in another (CSS Nesting); '' of more than are read. */
function nested(inner: string, outer: string | null): string {
  const list = inner.split(',')
  if (outer === '' || (outer !== null && list.length > maxNested)) return ''
  const whole = `:is(${outer})`
  const all =
    outer === null
      ? inner
      : list.map((one) => (one.includes('&') ? one.replaceAll('&', whole) : `${whole} ${one.trim()}`)).join(',')
  return all.length > longestSelectors ? '' : all
}

/** True for a query that a usual screen answers. */
function mediaHolds(query: string): boolean {
  const text = query.trim().toLowerCase()
  const isNot = /^not\s/.test(text)
  const parts = text.replace(/^(?:not|only)\s{1,9}/, '').split(/\s{1,9}and\s{1,9}/)
  const holds = parts.every((part) => {
    if (!part.startsWith('(')) return part === 'screen' || part === 'all' || part === ''
    const [, name = '', value = ''] = /^\(\s*([a-z-]{1,40})\s*(?::\s*([^)]{0,60}))?\)?$/.exec(part) ?? []
    const size = measureOf(value.trim())
    switch (name) {
      case 'min-width':
        return size <= 1000
      case 'max-width':
        return size >= 1000
      case 'min-height':
        return size <= 800
      case 'max-height':
        return size >= 800
      case 'prefers-color-scheme':
        return value.trim() === 'light'
      case 'orientation':
        return value.trim() === 'landscape'
      case 'hover':
      case 'any-hover':
      case 'color':
        return true
      case 'min-device-width':
        return size <= 1000
      default:
        return false
    }
  })
  return holds !== isNot
}

const features =
  /^\(\s*(display|color|opacity|visibility|position|font-size|width|height|margin|padding)\s*:\s*(block|none|grid|flex|inline|red|black|white|\d[\w%.]{0,9}|hidden|absolute|relative|fixed)\s*\)$/

function supports(condition: string): boolean {
  const text = condition.trim().toLowerCase()
  const isNot = /^not\s/.test(text)
  return features.test(text.replace(/^not\s{1,9}/, '')) !== isNot
}
